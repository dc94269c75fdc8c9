"""From a cell to one round's problem (P): the one that a training run meets."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import METHODS, Allocation, AllocationProblem, Method, allocate
from fedwave.errors import ProblemError
from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.server import RadioTerms, Reports, RoundAims, Work, problem_of_cell, round_problem
from fedwave.simulation.cell_world import CellWorld
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.terms import ChannelDraw

FLEET = Fleet(
    max_power_w=np.array([1.0, 2.0]),
    max_frequency_hz=np.array([3.0, 4.0]),
    capacitance=np.array([5.0, 6.0]),
    cycles_per_sample=np.array([7.0, 8.0]),
)


def assert_same_problem(one: AllocationProblem, other: AllocationProblem) -> None:
    for field in fields(AllocationProblem):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        np.testing.assert_array_equal(mine, theirs, err_msg=field.name)


def test_every_number_stands_at_its_place() -> None:
    problem = round_problem(
        contribution=np.array([9.0, 10.0]),
        channel=ChannelDraw(np.array([11.0, 12.0]), np.array([13.0, 14.0, 15.0])),
        fleet=FLEET,
        terms=RadioTerms(num_blocks=3, bandwidth_hz=18.0, noise_psd_w_per_hz=19.0),
        aims=RoundAims(energy_weight=21.0, delay_weight=22.0, max_delay_s=23.0, max_energy_j=24.0),
        work=Work(model_bits=20.0, num_local_steps=2, num_samples=np.array([16, 17])),
    )
    assert problem.contribution.tolist() == [9.0, 10.0]
    assert problem.channel_gain.tolist() == [11.0, 12.0]
    assert problem.interference_w.tolist() == [13.0, 14.0, 15.0]
    assert problem.max_power_w.tolist() == [1.0, 2.0]
    assert problem.max_frequency_hz.tolist() == [3.0, 4.0]
    assert problem.capacitance.tolist() == [5.0, 6.0]
    assert problem.workload_cycles.tolist() == [2 * 7 * 16.0, 2 * 8 * 17.0]
    assert (problem.bandwidth_hz, problem.noise_psd_w_per_hz, problem.model_bits) == (18.0, 19.0, 20.0)
    assert (problem.energy_weight, problem.delay_weight) == (21.0, 22.0)
    assert problem.max_delay_s == 23.0
    assert np.broadcast_to(problem.max_energy_j, 2).tolist() == [24.0, 24.0]


def test_limits_and_floors_may_differ_between_devices() -> None:
    fleet = replace(FLEET, min_frequency_hz=np.array([0.5, 1.5]))
    problem = round_problem(
        contribution=np.array([9.0, 10.0]),
        channel=ChannelDraw(np.array([11.0, 12.0]), np.array([13.0])),
        fleet=fleet,
        terms=RadioTerms(num_blocks=1, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0),
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0, max_energy_j=np.array([2.0, np.inf])),
        work=Work(model_bits=1.0, num_local_steps=3, num_samples=np.array([10, 20])),
        computes=np.array([False, True]),
    )
    assert np.asarray(problem.max_energy_j).tolist() == [2.0, np.inf]
    assert np.asarray(problem.min_frequency_hz).tolist() == [0.5, 1.5]
    assert problem.workload_cycles.tolist() == [0.0, 3 * 8 * 20]


def test_reports_that_nobody_needs_take_no_time_of_the_deadline() -> None:
    def fixed_s(*, needs_reports: bool, computes: list[bool]) -> float:
        return round_problem(
            contribution=np.array([9.0, 10.0]),
            channel=ChannelDraw(np.array([1.0, 1.5]), np.array([0.0])),  # SNR 1 and 3: 1 and 2 bit/s
            fleet=FLEET,
            terms=RadioTerms(
                num_blocks=1,
                bandwidth_hz=1.0,
                noise_psd_w_per_hz=1.0,
                risks=UploadRisks(deadline_s=1e6),
                report_bits=4.0,
            ),
            aims=RoundAims(energy_weight=1.0, delay_weight=1.0),
            work=Work(model_bits=1.0, num_local_steps=3, num_samples=np.array([10, 20])),
            computes=np.array(computes),
            needs_reports=needs_reports,
        ).fixed_delay_s

    assert fixed_s(needs_reports=True, computes=[True, True]) == pytest.approx(4.0 + 2.0)  # in turn
    assert fixed_s(needs_reports=True, computes=[False, True]) == pytest.approx(2.0)
    assert fixed_s(needs_reports=False, computes=[True, True]) == 0.0


SETTINGS: dict[str, Any] = {
    "seed": 4,
    "data": {"dataset": {"kind": "synthetic", "num_samples": 900, "shape": [4]}},
    "partition": {"num_devices": 14},
    "model": {"kind": "softmax"},
    "algorithm": {"num_local_steps": 3},
    "cell": {
        "preset": "paper-redrawn",
        "num_blocks": 3,
        "energy_weight": 0.5,
        "delay_weight": 0.25,
        "max_delay_s": 40.0,
        "max_energy_j": 30.0,
        "model_bits": 1.5,
    },
}


@pytest.mark.parametrize("round_index", [0, 5])
def test_the_problem_of_a_cell_is_the_one_that_training_meets_in_that_round(
    round_index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[AllocationProblem] = []

    def noting(problem: AllocationProblem, *, may_upload: Any = None) -> Allocation:
        met.append(problem)
        return allocate(problem, "ives", selected=np.flatnonzero(may_upload))

    monkeypatch.setitem(METHODS, "noting", Method(noting, serves_given_devices=False))
    cell_settings = {**SETTINGS["cell"], "method": "noting"}
    sim = build_simulation(experiment_from({**SETTINGS, "cell": cell_settings}))
    planner, world, train = sim.federation.planner, sim.federation.world, sim.train
    worth = np.random.default_rng(1).uniform(50, 100, len(train))
    state = planner.initial_state()
    reports = Reports(
        device_index=planner.ask(round_index, state),
        contribution=worth,
        loss=worth,
        num_samples=train.num_samples,
        gradient_norms=np.ones((len(train), 3)),
    )
    plan = planner.plan(round_index, reports.device_index, reports, world.channel(round_index), state)

    cell = load_cell("paper-redrawn", num_devices=len(train), seed=4, overrides={"num_blocks": 3})
    problem = problem_of_cell(
        cell,
        worth,
        round_index=round_index,
        num_samples=train.num_samples,
        num_local_steps=3,
        model_bits=1.5,
        energy_weight=0.5,
        delay_weight=0.25,
        max_delay_s=40.0,
        max_energy_j=30.0,
    )
    assert_same_problem(problem, met[0])
    assert plan.allocation is not None
    expected = allocate(problem, "ives")
    assert plan.allocation.transmit_power_w.tolist() == expected.transmit_power_w.tolist()


def test_by_default_round_0_ten_samples_one_step_and_all_that_is_one() -> None:
    cell = load_cell("paper-redrawn", num_devices=4, seed=2)
    problem = problem_of_cell(cell, [1.0, 2.0, 3.0, 4.0])
    draw = cell.draw(0)
    assert problem.channel_gain.tolist() == draw.channel_gain.tolist() != cell.draw(1).channel_gain.tolist()
    assert problem.interference_w.tolist() == draw.interference_w.tolist()
    assert problem.workload_cycles.tolist() == (10 * cell.fleet.cycles_per_sample).tolist()
    assert (problem.model_bits, problem.energy_weight, problem.delay_weight) == (1.0, 1.0, 1.0)
    assert problem.max_delay_s is None
    assert problem.max_energy_j is None


STREET = {
    "preset": "umi-3.5ghz",
    "num_blocks": 3,
    "model_bits": 1e6,
    "losses": {
        "deadline_s": 30.0,
        "outage_snr_db": 3.0,
        "outage_margin_db": 2.0,
        "packet_error_waterfall": 0.02,
    },
}


def test_the_problem_of_a_street_cell_knows_its_modem_its_drain_its_losses_and_its_broadcast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: list[AllocationProblem] = []

    def noting(problem: AllocationProblem, *, may_upload: Any = None) -> Allocation:
        met.append(problem)
        return allocate(problem, "ives", selected=np.flatnonzero(may_upload))

    monkeypatch.setitem(METHODS, "noting", Method(noting, serves_given_devices=False))
    weights = {"energy_weight": 0.5, "delay_weight": 0.25}
    settings = {**SETTINGS, "cell": {**STREET, **weights, "contribution_scale": "raw", "method": "noting"}}
    sim = build_simulation(experiment_from(settings))
    planner, world, train = sim.federation.planner, sim.federation.world, sim.train
    assert isinstance(world, CellWorld)
    worth = np.random.default_rng(1).uniform(50, 100, len(train))
    reports = Reports(
        device_index=np.arange(len(train)),
        contribution=worth,
        loss=worth,
        num_samples=train.num_samples,
        gradient_norms=np.ones((len(train), 3)),
    )
    planner.plan(2, reports.device_index, reports, world.channel(2), planner.initial_state())
    sizes = {"round_index": 2, "num_samples": train.num_samples, "num_local_steps": 3, "model_bits": 1e6}
    problem = problem_of_cell(world.cell, worth, **sizes, **weights)
    assert_same_problem(problem, met[0])

    assert (problem.rate.efficiency, problem.rate.max_spectral_efficiency) == (0.4, 0.98 * 2.93)
    unit_w = (10**2.3 - 1) * 1e-3 / 0.3 / 450  # of TR 38.840: 250 at 0 dBm, 700 at 23 dBm
    assert problem.radio.drain_w(np.array([0.3])) == pytest.approx(0.299 / 0.3 + 250 * unit_w)
    assert problem.min_snr == pytest.approx(10**0.5)  # 3 dB and a margin of 2 dB
    assert problem.min_snr > 10**0.5
    assert problem.packet_error_waterfall == 0.02
    assert problem.max_round_delay_s == pytest.approx(30.0)
    assert problem.max_round_delay_s is not None
    assert problem.max_round_delay_s < 30.0
    downlink = world.cell.downlink
    assert downlink is not None
    broadcast_s = downlink.broadcast_time_s(
        world.channel(2).downlink_gain, listeners=np.arange(len(train)), model_bits=1e6
    )
    assert problem.fixed_delay_s == broadcast_s > 0.0
    own = problem_of_cell(world.cell, worth, **sizes, **weights, min_snr=0.0, max_round_delay_s=None)
    assert (own.min_snr, own.max_round_delay_s) == (0.0, None)  # what is given wins
    assert own.rate == problem.rate


def test_without_a_deadline_the_broadcast_is_no_part_of_the_problem() -> None:
    cell = load_cell("umi-3.5ghz", num_devices=4)
    assert cell.downlink is not None
    problem = problem_of_cell(cell, [1.0, 2.0, 3.0, 4.0], model_bits=1e6)
    assert (problem.max_round_delay_s, problem.fixed_delay_s) == (None, 0.0)


@pytest.mark.parametrize("wrong", [[1.0] * 3, 1.0, [[1.0] * 4]])
def test_a_contribution_for_each_device_is_needed(wrong: Any) -> None:
    cell = load_cell("paper", num_devices=4)
    with pytest.raises(ProblemError, match=r"one entry for each of the cell's 4 devices, got shape \("):
        problem_of_cell(cell, wrong)


def test_a_cell_with_units_asks_for_the_size_of_an_upload() -> None:
    cell = load_cell("umi-3.5ghz", num_devices=4, seed=2)
    with pytest.raises(ProblemError, match=r"model_bits must be given in a cell with units.*parameters"):
        problem_of_cell(cell, [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("given", [{}, {"energy_weight": 3.0}, {"delay_weight": 0.5}])
def test_weights_are_by_default_those_that_the_cell_advises(given: dict[str, float]) -> None:
    cell = load_cell("umi-3.5ghz-bare", num_devices=15, seed=2, overrides={"num_blocks": 5})
    problem = problem_of_cell(cell, np.ones(15), model_bits=2e6, **given)  # type: ignore[arg-type]
    # By hand: each device at full power on its block of middle SINR; the median device of 15 is the eighth.
    draw = cell.draw(0)
    snr = cell.fleet.max_power_w[:, None] * draw.channel_gain / (draw.interference_w + cell.noise_w)
    middle = np.sort(np.sort(snr, axis=1)[:, 2])[::-1][7]
    rate = cell.config.rate
    assert rate.max_spectral_efficiency is not None
    spectral = min(rate.efficiency * np.log2(1 + middle), rate.max_spectral_efficiency)
    delay_s = 2e6 / (cell.bandwidth_hz * spectral)
    radio = cell.config.radio
    device = int(np.argmin(np.abs(np.sort(snr, axis=1)[:, 2] - middle)))
    drain_w = cell.fleet.max_power_w[device] / radio.amplifier_efficiency + radio.circuit_power_w
    assert problem.delay_weight == pytest.approx(given.get("delay_weight", 0.25 * 5 / delay_s))
    assert problem.energy_weight == pytest.approx(given.get("energy_weight", 0.25 / (drain_w * delay_s)))


def test_no_weights_are_advised_where_the_median_device_is_never_heard() -> None:
    cell = load_cell("umi-3.5ghz", num_devices=4, seed=2, overrides={"noise_figure_db": 900.0})
    with pytest.raises(
        ProblemError, match="delay_weight must be given in a cell whose median device is never heard"
    ):
        problem_of_cell(cell, np.ones(4), model_bits=1e6, energy_weight=1.0)
    given = problem_of_cell(cell, np.ones(4), model_bits=1e6, energy_weight=1.0, delay_weight=2.0)
    assert (given.energy_weight, given.delay_weight) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("model_bit", 'Did you mean "model_bits"?'),
        ("min_sn", 'Did you mean "min_snr"?'),
        ("channel_gain", "Choose one of: contribution, round_index"),  # the cell's own
    ],
)
def test_a_misspelt_argument_says_which_was_meant(option: str, hint: str) -> None:
    cell = load_cell("paper", num_devices=2, seed=0)
    with pytest.raises(ProblemError) as caught:
        problem_of_cell(cell, [1.0, 2.0], **{option: 1.0})  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"problem_of_cell has no field '{option}'. ")
    assert hint in str(caught.value)
    assert problem_of_cell(cell, [1.0, 2.0], max_compute_delay_s=3.0).max_compute_delay_s == 3.0
