"""Whole runs over a cell: the tables add up, agree with Eq. (23)-(32), and the optimum is one."""

from __future__ import annotations

import itertools
import json
import math
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.data import DATASETS
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.run import run_experiment
from fedwave.wireless.cell import Cell
from tests.experiments.cell_tables import (
    CELL_SCHEMES,
    PAPER_CELL,
    STREET_CELL,
    cell_of,
    device_column,
    experiment,
    rows,
)

PHASES = ("downlink", "compute", "report", "upload", "idle")  # of a device's round, in order


@dataclass(frozen=True, kw_only=True)
class Radio:
    """Modem, amplifier and broadcast, as the equations want them; by default those of the paper."""

    efficiency: float = 1.0
    max_spectral_efficiency: float = math.inf
    min_snr: float = 0.0
    amplifier_efficiency: float = 1.0
    circuit_power_w: float = 0.0
    broadcast_w: float = 0.0  # 0: the model comes down at no cost
    broadcast_efficiency: float = 1.0
    broadcast_cap: float = math.inf
    broadcast_floor: float = 0.0
    device_noise_psd_w_per_hz: float = 0.0  # thermal noise, noise figure and other base stations
    receive_power_w: float = 0.0
    unit_w: float = 0.0  # of TR 38.840, in which its sleep is counted; 0: waiting costs nothing
    packet_error_waterfall: float = 0.0

    def spectral_efficiency(self, snr: np.ndarray) -> np.ndarray:
        """Eq. (25) over B, attenuated and capped; nothing below the floor."""
        rate = np.minimum(self.efficiency * np.log2(1 + snr), self.max_spectral_efficiency)
        return np.where(snr < self.min_snr, 0.0, rate)

    def rest_j(self, time_s: float) -> float:
        """TR 38.840: below 6 ms micro sleep, below 20 ms light sleep, else deep sleep, each with its ramp."""
        units = 45 * time_s if time_s < 6e-3 else 20 * time_s + 0.1 if time_s < 20e-3 else time_s + 0.45
        return self.unit_w * units


def of_3gpp(
    *, broadcast_dbm: float, noise_rise_db: float, receive_units: float, caps: tuple[float, float]
) -> Radio:
    """The radios of the 3GPP presets, which differ in the base station, its neighbours and the carrier."""
    unit_w = (10**2.3 - 1) * 1e-3 / 0.3 / 450  # the 450 units between 0 and 23 dBm with an amplifier of 30 %
    return Radio(
        efficiency=0.4,
        max_spectral_efficiency=0.98 * caps[0],  # what a plan through fading counts on,
        min_snr=10**-0.7,  # and 3 dB above the floor
        broadcast_efficiency=0.6,
        broadcast_cap=caps[1],
        broadcast_floor=0.1,
        amplifier_efficiency=0.3,
        circuit_power_w=250 * unit_w - 1e-3 / 0.3,
        broadcast_w=1e-3 * 10 ** (broadcast_dbm / 10),
        device_noise_psd_w_per_hz=1e-3 * 10 ** ((-174 + 9 + noise_rise_db) / 10),
        receive_power_w=receive_units * unit_w,
        unit_w=unit_w,
    )


NR, LTE = (2.93, 5.98), (2.0, 4.4)  # caps up and down, TR 38.803 and TR 36.942
STREET = of_3gpp(broadcast_dbm=39.6, noise_rise_db=3.0, receive_units=300 * 0.55, caps=NR)
CITY = of_3gpp(broadcast_dbm=41.6, noise_rise_db=3.0, receive_units=300 * 0.4, caps=LTE)
COUNTRYSIDE = of_3gpp(broadcast_dbm=41.6, noise_rise_db=1.5, receive_units=300 * 0.325, caps=NR)


@pytest.fixture(scope="module", params=CELL_SCHEMES)
def paper_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each scheme over the paper's cell, with three blocks."""
    settings = experiment(PAPER_CELL, scheme=request.param, name=request.param)
    return run_experiment(settings, tmp_path_factory.mktemp("paper") / request.param).path


def scheme_of(folder: Path) -> str:
    return str(json.loads((folder / "summary.json").read_text())["scheme"])


def assert_tables_add_up(folder: Path) -> None:
    """Add devices.csv up by itself and compare with rounds.csv and with the running totals."""
    clock, spent = 0.0, np.zeros(8)
    for k, row in enumerate(rows(folder, "rounds.csv")):
        by_kind = {f"{phase}_energy_j": device_column(folder, k, f"{phase}_energy_j") for phase in PHASES}
        for name, column in by_kind.items():
            assert float(row[name]) == pytest.approx(math.fsum(column), rel=1e-12, abs=0)
        own = sum(by_kind.values())
        assert float(row["energy_j"]) == pytest.approx(math.fsum(own), rel=1e-12)
        spent = spent + own
        clock += float(row["delay_s"])
        assert_allclose(device_column(folder, k, "cumulative_energy_j"), spent, rtol=1e-12)
        assert float(row["cumulative_energy_j"]) == pytest.approx(math.fsum(spent), rel=1e-12)
        assert float(row["cumulative_delay_s"]) == pytest.approx(clock, rel=1e-12)
        assert int(row["num_selected"]) == device_column(folder, k, "is_selected").sum()
        assert int(row["num_received"]) == device_column(folder, k, "is_received").sum()
    cell = json.loads((folder / "summary.json").read_text())["cell"]
    assert cell["energy_j"] == pytest.approx(math.fsum(spent), rel=1e-12)
    assert cell["delay_s"] == pytest.approx(clock, rel=1e-12)
    assert cell["uploads"] == sum(int(row["num_selected"]) for row in rows(folder, "rounds.csv"))
    assert cell["uploads_received"] == sum(int(row["num_received"]) for row in rows(folder, "rounds.csv"))


def test_the_tables_of_every_scheme_add_up(paper_run: Path) -> None:
    assert_tables_add_up(paper_run)


def test_the_tables_add_up_with_losses_reports_and_idling(tmp_path: Path) -> None:
    folder = run_experiment(experiment(STREET_CELL, num_rounds=8), tmp_path / "run").path
    assert_tables_add_up(folder)
    for k, row in enumerate(rows(folder, "rounds.csv")):
        time_s = {phase: device_column(folder, k, f"{phase}_time_s") for phase in PHASES}
        idle = time_s["idle"]
        assert_allclose(sum(time_s.values()), float(row["delay_s"]), rtol=1e-9)
        assert float(row["downlink_time_s"]) == time_s["downlink"].max() > 0.0
        listening = device_column(folder, k, "downlink_energy_j")
        assert_allclose(listening, STREET.receive_power_w * time_s["downlink"], rtol=1e-12)
        sent = STREET.broadcast_w * float(row["downlink_time_s"])
        assert float(row["broadcast_energy_j"]) == pytest.approx(sent, rel=1e-12)
        assert_allclose(device_column(folder, k, "idle_energy_j"), 0.01 * idle, rtol=1e-12)


def broadcast_time_s(radio: Radio, gain: np.ndarray | None, num_bits: float, bandwidth_hz: float) -> float:
    """A model over the whole band, as fast as the worst of the listeners in reach can follow."""
    if radio.broadcast_w == 0.0 or gain is None:
        return 0.0
    snr = radio.broadcast_w * gain / (bandwidth_hz * radio.device_noise_psd_w_per_hz)
    rate = np.minimum(radio.broadcast_efficiency * np.log2(1 + snr), radio.broadcast_cap)
    rate = bandwidth_hz * np.where(snr < radio.broadcast_floor, 0.0, rate)
    return float(num_bits / rate[rate > 0].min())


def assert_rounds_follow_from_decisions(
    folder: Path,
    *,
    num_bits: float,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
    weight: tuple[float, float],
    radio: Radio = Radio(),
) -> None:
    """Eq. (23)-(32) once more, from the decisions in devices.csv, the fleet and the channel alone."""
    sim = build_simulation(load_experiment(folder / "config.toml"))
    cell, num_devices = cell_of(sim), len(sim.train)
    fleet = cell.fleet
    for k, row in enumerate(rows(folder, "rounds.csv")):
        channel = cell.draw(k)
        computed = ~np.isnan(device_column(folder, k, "train_loss"))
        frequency = device_column(folder, k, "cpu_frequency_hz")
        power = device_column(folder, k, "transmit_power_w")
        block = device_column(folder, k, "block").astype(int)
        cycles = computed * fleet.cycles_per_sample * sim.train.num_samples
        compute_energy = fleet.capacitance / 2 * cycles * frequency**2
        compute_time = np.divide(cycles, frequency, out=np.zeros(num_devices), where=computed)
        compute_energy = (
            compute_energy + fleet.static_power_w * compute_time + fleet.joules_per_cycle * cycles
        )
        on = np.flatnonzero(block >= 0)
        gain = channel.channel_gain
        gain = gain[on] if gain.ndim == 1 else gain[on, block[on]]
        noise_w = channel.interference_w[block[on]] + bandwidth_hz * noise_psd_w_per_hz
        snr = power[on] * gain / noise_w
        assert (snr >= radio.min_snr).all()  # nobody is sent where nothing can arrive
        upload_time = num_bits / (bandwidth_hz * radio.spectral_efficiency(snr))
        drain = power[on] / radio.amplifier_efficiency + radio.circuit_power_w
        energy = compute_energy.sum() + (drain * upload_time).sum()
        delay = compute_time.max() + upload_time.max(initial=0.0)
        # The broadcast is paid by everybody who computes, whatever is decided: it is no part of (P).
        broadcast_s = broadcast_time_s(
            radio,
            None if channel.downlink_gain is None else channel.downlink_gain[computed],
            num_bits,
            cell.num_blocks * bandwidth_hz,
        )
        listening = computed.sum() * radio.receive_power_w * broadcast_s
        idle = device_column(folder, k, "idle_energy_j")
        for i in range(num_devices):
            sent_s = upload_time[list(on).index(i)] if i in on else 0.0
            rest_j = radio.unit_w * (delay + broadcast_s - sent_s)  # deep sleep, if it does not listen
            if computed[i] and broadcast_s > 0.0:
                rest_j += radio.unit_w * (0.45 - broadcast_s)
            if sent_s > 0.0:
                before_s = (
                    compute_time.max()
                )  # between broadcast and uploads, in another state if it is short
                rest_j += radio.rest_j(before_s) - radio.unit_w * before_s
            assert idle[i] == pytest.approx(rest_j, rel=1e-9, abs=0)
        assert float(row["energy_j"]) == pytest.approx(energy + listening + idle.sum(), rel=1e-9)
        assert float(row["delay_s"]) == pytest.approx(delay + broadcast_s, rel=1e-9)
        assert (power <= fleet.max_power_w).all()
        assert (frequency <= fleet.max_frequency_hz).all()
        arrives = np.exp(-radio.packet_error_waterfall / snr)
        worth = (arrives * device_column(folder, k, "scaled_contribution")[on]).sum()
        assert float(row["contribution"]) == pytest.approx(worth, rel=1e-9)
        objective = worth - weight[0] * energy - weight[1] * delay
        assert float(row["objective"]) == pytest.approx(objective, rel=1e-9)


def test_rounds_agree_with_the_definitions_of_problem_p(paper_run: Path) -> None:
    assert_rounds_follow_from_decisions(
        paper_run, num_bits=1.0, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0, weight=(0.02, 0.03)
    )


@pytest.mark.parametrize(
    ("preset", "bandwidth_hz", "noise_dbm_per_hz", "radio"),
    [
        ("umi-3.5ghz", 360e3, -174 + 5, STREET),  # thermal noise and the receiver's figure
        ("uma-2ghz", 180e3, -174 + 5, CITY),
        ("rma-700mhz", 180e3, -174 + 5, COUNTRYSIDE),
        ("chen2020", 1e6, -170, Radio(packet_error_waterfall=1.08)),  # 1e-14 W over 1 MHz
        ("fedl2021", 1e6, -130, Radio()),  # 1e-10 W over 1 MHz
    ],
)
def test_rounds_agree_with_the_definitions_in_every_cell(
    tmp_path: Path, preset: str, bandwidth_hz: float, noise_dbm_per_hz: float, radio: Radio
) -> None:
    overrides = ["num_rounds=2", "evaluation.every=2", f"cell.preset={preset}", "model.kind=softmax"]
    # Light weights, so that uploads are worth their price in every one of these cells.
    weights = ["cell.contribution_scale=normalised", "cell.energy_weight=0.01", "cell.delay_weight=0.02"]
    result = run_experiment(load_experiment("digits/ural", [*overrides, *weights]), tmp_path / "run")
    num_parameters = 64 * 10 + 10
    assert result.summary["num_parameters"] == num_parameters
    assert result.summary["cell"]["model_bits"] == 32 * num_parameters
    assert result.summary["cell"]["uploads"] > 0
    assert_rounds_follow_from_decisions(
        result.path,
        num_bits=32 * num_parameters,
        bandwidth_hz=bandwidth_hz,
        noise_psd_w_per_hz=1e-3 * 10 ** (noise_dbm_per_hz / 10),
        weight=(0.01, 0.02),
        radio=radio,
    )


def test_each_round_meets_its_own_channel_on_each_block(tmp_path: Path) -> None:
    # Random powers over a cell whose interference is drawn anew: SNRs on both sides of the threshold.
    cell = {
        **STREET_CELL,
        "model_bits": 7e5,
        "losses": {"outage_snr_db": 20.0},
        "interference": {"averaged": False},
    }
    settings = experiment(cell, scheme="nufm-random", num_rounds=6)
    folder = run_experiment(settings, tmp_path / "run").path
    assert settings.cell is not None
    channel = Cell.build(settings.cell, num_devices=8, seed=5)
    noise_w = 360e3 * 10 ** ((-174 + 5 - 30) / 10)  # thermal noise and the receiver's figure
    num_lost = 0
    for k, row in enumerate(rows(folder, "rounds.csv")):
        draw = channel.draw(k)
        selected = np.flatnonzero(device_column(folder, k, "is_selected"))
        block = device_column(folder, k, "block").astype(int)[selected]
        power = device_column(folder, k, "transmit_power_w")[selected]
        snr = power * draw.channel_gain[selected, block] / (draw.interference_w[block] + noise_w)
        # Below the modems' floor there is no slot, and nothing is sent.
        rate = 360e3 * STREET.spectral_efficiency(snr)
        expected = np.divide(7e5, rate, out=np.zeros_like(rate), where=rate > 0)
        assert_allclose(device_column(folder, k, "upload_time_s")[selected], expected, rtol=1e-9)
        arrives = snr >= 10**2.0
        assert device_column(folder, k, "is_received")[selected].tolist() == arrives.tolist()
        assert int(row["num_outage"]) == np.sum(~arrives)
        num_lost += int(row["num_outage"])
    assert 0 < num_lost < 18


def test_each_scheme_selects_as_it_says(paper_run: Path) -> None:
    scheme = scheme_of(paper_run)
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        selected = np.flatnonzero(device_column(paper_run, k, "is_selected"))
        contribution = device_column(paper_run, k, "contribution")
        computed = np.flatnonzero(~np.isnan(contribution))
        if scheme.startswith("ru-"):
            assert selected.tolist() == computed.tolist()
            assert len(selected) == 3
        else:
            assert len(computed) == 8
        if scheme.startswith("nufm-"):
            assert selected.tolist() == sorted(np.argsort(-contribution, kind="stable")[:3].tolist())
        assert int(row["num_computed"]) == len(computed)


# The optimum, by brute force ------------------------------------------------------------------------------


def every_assignment(num_devices: int, num_blocks: int) -> list[tuple[tuple[int, int], ...]]:
    """All ways to give some blocks to as many devices, as (device, block) pairs; nobody is one of them."""
    return [
        tuple(zip(devices, blocks, strict=True))
        for count in range(num_blocks + 1)
        for blocks in itertools.combinations(range(num_blocks), count)
        for devices in itertools.permutations(range(num_devices), count)
    ]


def upload_values(folder: Path, k: int, delays_s: np.ndarray) -> np.ndarray:
    """What each assignment is worth if all its uploads last this long: sum of u - eta_1 E minus eta_2 delay.

    In the paper's cell a device that uploads one model in t seconds needs p = (2^(1/t) - 1) (I + 1) / h and
    so p t joules; where p exceeds its limit the assignment is impossible. No device gains by being faster
    than the slowest: a model costs the less energy the longer it takes.
    """
    cell = cell_of(build_simulation(load_experiment(folder / "config.toml")))
    channel = cell.draw(k)
    noise_over_gain = (channel.interference_w + 1.0) / channel.channel_gain[:, None]
    power = (2.0 ** (1.0 / delays_s) - 1.0) * noise_over_gain[:, :, None]  # device, block, delay
    worth = device_column(folder, k, "contribution")[:, None, None] - 0.02 * power * delays_s
    worth[power > cell.fleet.max_power_w[:, None, None] * (1 + 1e-9)] = -1e9
    return np.array(
        [
            sum(worth[pair] for pair in pairs) - 0.03 * delays_s if pairs else np.zeros_like(delays_s)
            for pairs in every_assignment(8, 3)
        ]
    )


def compute_cost(folder: Path) -> float:
    """The cheapest eta_1 E + eta_2 T of all local updates that end together after T, in closed form."""
    sim = build_simulation(load_experiment(folder / "config.toml"))
    fleet = cell_of(sim).fleet
    cycles = fleet.cycles_per_sample * sim.train.num_samples
    work = (fleet.capacitance / 2 * cycles**3).sum()  # joules are work / T^2
    slowest = (cycles / fleet.max_frequency_hz).max()
    time_s = max((2 * 0.02 * work / 0.03) ** (1 / 3), slowest)
    return float(0.02 * work / time_s**2 + 0.03 * time_s)


@pytest.mark.parametrize("paper_run", ["ural"], indirect=True)
def test_ural_is_worth_as_much_as_the_best_of_all_assignments_powers_and_frequencies(paper_run: Path) -> None:
    cell = cell_of(build_simulation(load_experiment(paper_run / "config.toml")))
    channel = cell.draw(0)
    snr = (cell.fleet.max_power_w * channel.channel_gain)[:, None] / (channel.interference_w + 1.0)
    # The best delay lies where a derivative vanishes, or where a device comes to its largest power.
    delays_s = np.concatenate([np.geomspace(0.5, 500.0, 1000), (1.0 / np.log2(1.0 + snr)).ravel()])
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        best = upload_values(paper_run, k, delays_s).max() - compute_cost(paper_run)
        # The grid comes close to the optimum from below.
        assert best - 1e-9 <= float(row["objective"]) <= best + 1e-4
        assert int(row["num_selected"]) > 0


@pytest.mark.parametrize("paper_run", ["ural-ives"], indirect=True)
def test_ives_ends_where_no_other_assignment_is_worth_more_at_its_own_delay(paper_run: Path) -> None:
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        delay_s = device_column(paper_run, k, "upload_time_s").max()
        best = upload_values(paper_run, k, np.array([delay_s])).max() - compute_cost(paper_run)
        assert float(row["objective"]) >= best - 1e-9
        assert int(row["num_selected"]) > 0


# Records, presets, real data ------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "constant"), [("raw", 0.0), ("constant", 12.5), ("normalised", 0.0)])
def test_the_scale_is_recorded_and_decides_what_the_allocation_sees(
    tmp_path: Path, scale: str, constant: float
) -> None:
    cell = {**PAPER_CELL, "contribution_scale": scale, "contribution_constant": constant}
    folder = run_experiment(experiment(cell, num_rounds=1), tmp_path / "run").path
    recorded = tomllib.loads((folder / "config.toml").read_text())["cell"]
    summary = json.loads((folder / "summary.json").read_text())["cell"]
    for record in (recorded, summary):
        assert (record["contribution_scale"], record["contribution_constant"]) == (scale, constant)
    raw = device_column(folder, 0, "contribution")
    expected = {"raw": raw, "constant": raw + 12.5, "normalised": raw / np.abs(raw).mean()}[scale]
    assert_allclose(device_column(folder, 0, "scaled_contribution"), expected, rtol=1e-14)


@pytest.mark.parametrize("scheme", CELL_SCHEMES)
def test_the_papers_schemes_run_on_the_digits(tmp_path: Path, scheme: str) -> None:
    overrides = ["num_rounds=2", "evaluation.every=2", "model.kind=softmax"]
    settings = load_experiment(f"digits/{scheme}", overrides)
    assert settings.cell is not None
    assert (settings.cell.method.kind, settings.selection.policy.kind) == CELL_SCHEMES[scheme]
    result = run_experiment(settings, tmp_path / "run")
    table = rows(result.path, "rounds.csv")
    assert [row["num_computed"] for row in table] == (["10"] if scheme.startswith("ru") else ["30"]) * 2
    if not scheme.startswith("ural"):
        assert [row["num_selected"] for row in table] == ["10", "10"]  # n_k = M
    assert result.summary["scheme"] == scheme
    assert result.summary["cell"]["energy_j"] > 0
    assert len(rows(result.path, "devices.csv")) == 2 * 30


def test_the_paper_runs_on_real_fashion_mnist(tmp_path: Path) -> None:
    if "FEDWAVE_DATA" not in os.environ:
        pytest.skip("FEDWAVE_DATA is not set: no real datasets to read")
    find = DATASETS["fashion-mnist"].find
    assert find is not None
    if find(None) is None:
        pytest.skip("FEDWAVE_DATA holds no fashion-mnist")
    for scheme in ("ural", "ru-random"):
        result = run_experiment(load_experiment(f"paper/{scheme}", ["num_rounds=1"]), tmp_path / scheme)
        (row,) = rows(result.path, "rounds.csv")
        assert int(row["num_computed"]) == (50 if scheme == "ural" else 20)
        assert int(row["num_received"]) == int(row["num_selected"]) > 0
        assert float(row["energy_j"]) > 0
