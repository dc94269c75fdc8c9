"""Anybody's messages over a cell: as a run of ours counts them, and by hand where no run of ours goes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment
from fedwave.settings import validate
from fedwave.simulation.account import PHASES, Messages, account
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.config import CellConfig
from tests.simulation.radio_by_hand import CELL

SMALL = ["num_rounds=3", "evaluation.every=3", "partition.num_devices=16", "model.kind=softmax"]
STREET = [*SMALL, "cell.preset=umi-3.5ghz", "cell.energy_weight=0.01", "cell.delay_weight=0.02"]


def messages(rows: list[dict[str, float]]) -> Messages:
    """Return these messages; what a row does not say is nothing, or not decided."""
    nothing = {"download_bytes": 0.0, "work": 0.0, "report_bytes": 0.0, "upload_bytes": 0.0}
    open_ones = {"block": np.nan, "transmit_power_w": np.nan, "cpu_frequency_hz": np.nan}
    full = [{**nothing, **open_ones, **row} for row in rows]
    columns: dict[str, Any] = {
        name: np.array([row[name] for row in full], dtype=np.float64) for name in full[0] if name in full[0]
    }
    for name in ("round_index", "device"):
        columns[name] = columns[name].astype(np.int64)
    return Messages(**columns)


def cell_of(settings: dict[str, Any] | None = None, num_devices: int = 3) -> Cell:
    """B = N0 = 1, gains 1, full power 15 W: 4 bit/s; 2 Hz and a cycle for each unit of work."""
    return Cell.build(validate(CellConfig, {**CELL, **(settings or {})}), num_devices=num_devices, seed=0)


@pytest.mark.parametrize(
    "settings",
    [
        STREET,
        [*STREET, "cell.radio.power_set=measured-x55", "cell.radio.waiting=monitor"],
        [*STREET, "cell.report_bits=4000", "cell.idle_power_w=0.1"],
        [*STREET, "cell.losses.deadline_s=0.03", "scheme=nufm-greedy"],
        [*STREET, "selection.policy=uniform", "selection.num_selected=5", "scheme=ru-random"],
        [*SMALL, "cell.preset=paper", "cell.num_blocks=4"],
    ],
    ids=["street", "monitoring modem", "reports and idling", "deadline", "few asked", "paper"],
)
def test_the_account_of_a_runs_own_decisions_is_the_runs(tmp_path: Path, settings: list[str]) -> None:
    scheme = next((word.partition("=")[2] for word in settings if word.startswith("scheme=")), "ural")
    own = [word for word in settings if not word.startswith("scheme=")]
    folder = run_experiment(load_experiment(f"digits/{scheme}", own), tmp_path / "run").path
    experiment = load_experiment(folder / "config.toml")
    assert experiment.cell is not None
    sim = build_simulation(experiment)
    work, table = sim.federation.world.work, RunFolder(folder).table("devices.csv")
    whose = np.searchsorted(np.unique(table["device"]), table["device"])
    computed, selected = np.isfinite(table["train_loss"]), table["is_selected"] == 1
    reports = experiment.cell.report_bits if scheme == "ural" else 0.0
    found = account(
        # The run's own cell: its fleet has the cycles of a sample of this model.
        sim.federation.world.cell,
        Messages(
            round_index=table["round"],
            device=whose,
            download_bytes=computed * work.model_bits / 8,
            work=computed * 1.0 * work.num_local_steps * work.num_samples[whose],
            report_bytes=computed * reports / 8,
            upload_bytes=selected * work.model_bits / 8,
            block=np.where(selected, table["block"], np.nan),
            transmit_power_w=table["transmit_power_w"],
            cpu_frequency_hz=table["cpu_frequency_hz"],
        ),
    )
    rounds = RunFolder(folder).table()
    assert found.round_index == [0, 1, 2]
    for k, row in enumerate(found.rows()):
        for name in ("delay_s", "energy_j", *(f"{phase}_energy_j" for phase in PHASES)):
            assert row[name] == pytest.approx(rounds[name][k], rel=1e-12, abs=0), name
    last = table["round"] == 2
    assert_allclose(found.device_energy_j, table["cumulative_energy_j"][last], rtol=1e-12)
    assert found.delay_s == pytest.approx(rounds["cumulative_delay_s"][-1], rel=1e-12)
    assert found.energy_j == pytest.approx(rounds["cumulative_energy_j"][-1], rel=1e-12)
    assert found.warnings == []


def test_operations_become_cycles_of_the_fleet() -> None:
    fleet = {"max_power_w": 15.0, "max_frequency_hz": 2.0, "capacitance": 2.0, "cycles_per_operation": 0.5}
    cell = Cell.build(
        validate(CellConfig, {**CELL, "fleet": fleet}), num_devices=1, seed=0, operations_per_sample=1.0
    )
    (row,) = account(cell, messages([{"round_index": 0, "device": 0, "work": 12.0}])).rows()
    assert (row["delay_s"], row["compute_energy_j"]) == (3.0, 24.0)  # 6 cycles at 2 Hz, 6 x 2^2 J


def test_more_uploads_than_blocks_take_turns_as_long_as_their_slowest() -> None:
    # Two blocks, 4 bit/s: 1, 2, 3 bytes take 2, 4, 6 s. Devices 0 and 1 first, then 2.
    rows = [{"round_index": 4, "device": i, "upload_bytes": i + 1.0} for i in (2, 0, 1)]
    found = account(cell_of({"idle_power_w": 0.5}), messages(rows))
    (costs,) = found.costs
    assert found.round_index == [4]
    assert costs.delay_s == pytest.approx(4 + 6)
    assert_allclose(costs.upload_time_s, [2, 4, 6])
    assert_allclose(costs.upload_energy_j, [30, 60, 90])
    assert_allclose(costs.idle_energy_j, [4, 3, 2])


def test_every_turn_waits_for_those_before_it() -> None:
    rows = [{"round_index": 0, "device": i, "upload_bytes": 1.0 + i % 2} for i in range(5)]
    (costs,) = account(cell_of(num_devices=5), messages(rows)).costs
    assert costs.delay_s == pytest.approx(4 + 4 + 2)  # turns of 2 and 4 s, 2 and 4 s, 2 s


def test_only_those_that_report_take_a_turn_for_it() -> None:
    rows = [{"round_index": 0, "device": i, "report_bytes": 1.0 if i == 2 else 0.0} for i in range(3)]
    (costs,) = account(cell_of(), messages(rows)).costs
    assert_allclose(costs.report_time_s, [0, 0, 2])  # 8 bits at 4 bit/s
    assert costs.delay_s == pytest.approx(2)


def test_a_block_below_the_floor_is_the_last_resort() -> None:
    # Over 0 W and 14 W of interference 15 W are SNRs of 15 and 1, of which the second is below 3 dB.
    settings = {"interference": {"kind": "listed", "power_w": [14.0, 0.0]}, "rate": {"min_sinr_db": 3.0}}
    (costs,) = account(cell_of(settings), messages([UPLOAD])).costs
    assert costs.delay_s == pytest.approx(2)


def test_undecided_uploads_get_the_blocks_of_the_least_sum_of_times() -> None:
    noise_w = [1.0, 3.0, 9.0, 0.5]
    listed = {"kind": "listed", "power_w": noise_w}
    cell = cell_of({"num_blocks": 4, "interference": listed})
    sizes = [1.0, 5.0, 2.0]
    rows = [{"round_index": 0, "device": i, "upload_bytes": size} for i, size in enumerate(sizes)]
    time_s = np.sort(account(cell, messages(rows)).costs[0].upload_time_s)

    def total(blocks: tuple[int, ...]) -> float:
        rates = [np.log2(1 + 15 / (1 + noise_w[block])) for block in blocks]
        return float(sum(8 * size / rate for size, rate in zip(sizes, rates, strict=True)))

    assert time_s.sum() == pytest.approx(min(map(total, itertools.permutations(range(4), 3))))


def test_decided_powers_blocks_and_frequencies_are_kept() -> None:
    listed = {"kind": "listed", "power_w": [0.0, 2.0]}
    rows = [
        {"round_index": 0, "device": 1, "upload_bytes": 1.0, "block": 1.0, "transmit_power_w": 9.0},
        {
            "round_index": 0,
            "device": 0,
            "upload_bytes": 1.0,
            "block": 0.0,
            "work": 3.0,
            "cpu_frequency_hz": 1.0,
        },
    ]
    (costs,) = account(cell_of({"interference": listed}), messages(rows)).costs
    assert_allclose(costs.upload_time_s, [2, 4, 0])  # 15 W over 1 W: 4 bit/s; 9 W over 3 W: 2 bit/s
    assert_allclose(costs.upload_energy_j, [30, 36, 0])
    assert_allclose(costs.compute_time_s, [3, 0, 0])
    assert costs.delay_s == pytest.approx(3 + 4)


def test_the_broadcast_is_as_long_as_its_largest_message_at_its_worst_listener() -> None:
    down = {"downlink": {"broadcast": True, "power_w": 6.0, "receive_power_w": 0.25}}
    rows = [
        {"round_index": 0, "device": 0, "download_bytes": 1.0},
        {"round_index": 0, "device": 2, "download_bytes": 2.0},
    ]
    (costs,) = account(cell_of(down), messages(rows)).costs  # SNR 3 over 2 Hz: 4 bit/s, 16 bits
    assert_allclose(costs.downlink_time_s, [4, 0, 4])
    assert_allclose(costs.downlink_energy_j, [1, 0, 1])
    assert account(cell_of(), messages(rows)).delay_s == 0.0  # a cell whose downlink is free


def test_grams_of_carbon_if_asked_for() -> None:
    rows = [{"round_index": k, "device": 0, "upload_bytes": 1.0} for k in range(2)]  # 30 J each
    found = account(cell_of({"carbon_intensity_g_per_kwh": 36e4}), messages(rows))
    assert [row["carbon_g"] for row in found.rows()] == pytest.approx([3.0, 3.0])
    assert found.carbon_g == pytest.approx(6.0)
    plain = account(cell_of(), messages(rows))
    assert plain.carbon_g is None
    assert "carbon_g" not in plain.rows()[0]


def test_who_is_below_the_floor_gets_no_slot_and_is_named() -> None:
    cell = cell_of({"rate": {"min_sinr_db": 3.0}})
    rows = [
        {"round_index": 0, "device": i, "upload_bytes": 1.0, "transmit_power_w": power}
        for i, power in enumerate([15.0, 1.0])
    ]
    found = account(cell, messages(rows))
    assert_allclose(found.costs[0].upload_time_s, [2, 0, 0])
    assert found.warnings == ["round 0: device 1 below the modem's floor: no slot, no cost."]
    risky = account(cell_of({"losses": {"dropout_probability": 0.5}}), messages(rows[:1]))
    assert risky.warnings == ["losses.dropout_probability is not drawn: the table says who sent."]
    assert risky.energy_j == 30.0


UPLOAD = {"round_index": 0, "device": 0, "upload_bytes": 1.0}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([UPLOAD, UPLOAD], "round 0 has a device twice"),
        ([{**UPLOAD, "device": 3}], "the table has device 3, but the cell has 3 devices"),
        (
            [UPLOAD | {"block": 0.0}, UPLOAD | {"device": 1}],
            "round 0 gives a block to some of its uploads only",
        ),
        (
            [UPLOAD | {"block": 0.0}, UPLOAD | {"device": 1, "block": 0.0}],
            "round 0 gives a block to two uploads",
        ),
        ([UPLOAD | {"block": 2.0}], "round 0 has block 2, but the cell has 2 blocks"),
        ([UPLOAD | {"transmit_power_w": 0.0}], "the upload of device 0 in round 0 never ends"),
    ],
)
def test_what_cannot_be_accounted_is_said_in_one_line(rows: list[dict[str, float]], message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        account(cell_of(), messages(rows))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_access_than_one_block_each_is_refused() -> None:
    with pytest.raises(ProblemError, match='accounted with one block each, got cell.access = "tdma"'):
        account(cell_of({"access": "tdma"}), messages([UPLOAD]))
    with pytest.raises(ProblemError, match="accounted with one block each, got cell.work_conserving"):
        account(cell_of({"work_conserving": True}), messages([UPLOAD]))


def test_an_empty_table_is_refused() -> None:
    empty = messages([UPLOAD])
    none = replace(empty, **{name: values[:0] for name, values in vars(empty).items()})
    with pytest.raises(ProblemError, match="no messages"):
        account(cell_of(), none)


def test_neither_torch_nor_a_trainer_is_needed() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import fedwave.cli.account; "
        "import fedwave.simulation.account_tables; from fedwave import account; print(account.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "account", done.stderr
