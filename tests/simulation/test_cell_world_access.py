"""A cell that plays shares, whole blocks and slots: it costs what was planned, and ends when it should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave import load_cell
from fedwave.allocation import account, violations
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, Outcome, Plan, Reports, RoundAims, Work
from fedwave.server.policy_runner import PolicyRunner
from fedwave.simulation.cell_world import CellWorld
from fedwave.simulation.round_account import Timeline, round_costs
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.phases import ReportPhase

N, BITS = 24, 2e6
OTHERS = ("shared-band", "blocks", "tdma")


def reports_of(seed: int) -> Reports:
    worth = generator(seed, Stream.SELECTION, 9).exponential(1.0, N)
    return Reports(
        device_index=np.arange(N),
        contribution=worth,
        loss=worth,
        num_samples=np.full(N, 12),
        gradient_norms=np.ones((N, 2)),
    )


def play(
    access: str, *, seed: int = 0, losses: dict[str, Any] | None = None, **changes: Any
) -> tuple[Cell, Plan, Outcome]:
    """Return one round of a street cell under the certified optimum."""
    method = changes.pop("method", "optimal")
    settings = {"access": access, "num_blocks": 6, **changes}
    if losses is not None:
        settings["losses"] = losses
    cell = load_cell("umi-3.5ghz", num_devices=N, seed=seed, overrides=settings)
    samples = np.full(N, 12)
    work = Work(model_bits=BITS, num_local_steps=1, num_samples=samples)
    runner = PolicyRunner(
        policy=TopContribution(num_selected=6 if method == "equal-split" else N),
        num_samples=samples,
        seed=seed,
    )
    planner = CellPlanner(
        runner=runner,
        fleet=cell.fleet,
        terms=cell.terms,
        aims=RoundAims(energy_weight=0.3, delay_weight=0.3),
        work=work,
        method=method,
    )
    reports, channel = reports_of(seed), cell.draw(0)
    plan = planner.plan(0, np.arange(N), reports, channel, planner.initial_state())
    world = CellWorld(cell=cell, terms=cell.terms, work=work, seed=seed)
    return cell, plan, world.answer(0, plan, reports, channel)


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("method", ["optimal", "threshold", "proportional-fair", "equal-split"])
def test_a_round_costs_what_was_planned(access: str, method: str) -> None:
    _, plan, outcome = play(access, method=method)
    assert plan.problem is not None
    assert plan.allocation is not None
    assert outcome.costs is not None
    planned = account(plan.problem, plan.allocation)
    assert plan.selected.size > 0
    assert outcome.received.tolist() == plan.selected.tolist()
    assert outcome.costs.upload_energy_j == pytest.approx(planned.upload_energy_j, rel=1e-9)
    assert outcome.costs.upload_time_s == pytest.approx(planned.upload_delay_s, rel=1e-9)
    assert outcome.costs.upload_start_s[plan.selected] == pytest.approx(planned.upload_start_s[plan.selected])
    start_s = outcome.costs.delay_s - plan.allocation.upload_delay_s
    before_s = float((outcome.costs.downlink_time_s + outcome.costs.compute_time_s).max())
    assert start_s == pytest.approx(before_s, rel=1e-6)


def test_slots_follow_each_other_and_circuits_are_off_between_them() -> None:
    _, plan, outcome = play("tdma")
    costs, who = outcome.costs, plan.selected
    assert costs is not None
    ends = costs.upload_start_s[who] + costs.upload_time_s[who]
    assert costs.upload_start_s[who][1:] == pytest.approx(ends[:-1])
    assert who.size > 6  # more than there are blocks
    schedule = plan.schedule
    assert schedule is not None
    assert schedule.end_s == pytest.approx(ends)
    assert schedule.width_hz.tolist() == [6 * 360e3] * who.size


def test_shares_lie_side_by_side_in_the_picture_of_the_plan() -> None:
    _, plan, _ = play("shared-band")
    schedule = plan.schedule
    assert schedule is not None
    assert schedule.first_hz[1:] == pytest.approx((schedule.first_hz + schedule.width_hz)[:-1])
    assert (schedule.first_hz + schedule.width_hz)[-1] <= 6 * 360e3 * (1 + 1e-9)


@pytest.mark.parametrize("access", ["one-block", "blocks"])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_fall_free_make_nobody_later_and_nothing_dearer(seed: int, access: str) -> None:
    _, plan, rigid = play(access, seed=seed)
    _, same, outcome = play(access, seed=seed, work_conserving=True)
    assert same.selected.tolist() == plan.selected.tolist()
    assert rigid.costs is not None
    assert outcome.costs is not None
    assert (outcome.costs.upload_time_s <= rigid.costs.upload_time_s * (1 + 1e-12)).all()
    assert outcome.costs.energy_j <= rigid.costs.energy_j * (1 + 1e-12)
    assert outcome.received.tolist() == rigid.received.tolist()
    schedule = outcome.costs.schedule
    assert schedule is not None
    assert schedule.end_of_device_s(N) == pytest.approx(outcome.costs.upload_time_s)
    assert plan.allocation is not None
    for device in plan.selected:  # each begins where it was planned
        first = schedule.first_hz[(schedule.device == device) & (schedule.start_s == 0.0)].min()
        assert first == plan.allocation.block_of_device[device] * 360e3
    for block in range(6):  # one after another
        here = schedule.first_hz == block * 360e3
        order = np.argsort(schedule.start_s[here])
        assert (schedule.start_s[here][order][1:] >= schedule.end_s[here][order][:-1] * (1 - 1e-12)).all()


def test_one_block_each_handed_on_is_faster_where_the_weak_are_heard_badly() -> None:
    """Strong devices stop at the modem's cap, so their blocks fall free; the slowest upload takes them."""
    shorter = []
    for seed in range(4):
        _, plan, rigid = play("one-block", seed=seed, noise_figure_db=25)
        _, _, free = play("one-block", seed=seed, noise_figure_db=25, work_conserving=True)
        assert rigid.costs is not None
        assert free.costs is not None
        assert plan.allocation is not None
        shorter.append(rigid.costs.upload_time_s.max() - free.costs.upload_time_s.max())
        sent_w = plan.allocation.transmit_power_w[plan.selected]
        if shorter[-1] > 0.0:
            last = int(np.argmax(rigid.costs.upload_time_s))
            schedule = free.costs.schedule
            assert schedule is not None
            assert np.unique(schedule.first_hz[schedule.device == last]).size > 1
        assert (sent_w > 0.0).all()
    assert max(shorter) > 0.1


def test_blocks_that_differ_are_not_handed_on() -> None:
    with pytest.raises(ProblemError, match="must be alike, got gains or interference that differ"):
        play("one-block", work_conserving=True, interference={"averaged": False})
    cell, plan, _ = play("one-block", work_conserving=True)
    work = Work(model_bits=BITS, num_local_steps=1, num_samples=np.full(N, 12))
    world = CellWorld(cell=cell, terms=cell.terms, work=work, seed=0)
    noisy = replace(cell.draw(0), interference_w=np.linspace(1e-15, 2e-15, 6))  # the gains are alike
    with pytest.raises(ProblemError, match="must be alike, got gains or interference that differ"):
        world.answer(0, plan, reports_of(0), noisy)


def test_handing_on_pays_where_circuits_end_uploads_early() -> None:
    values = {"fleet": {"max_power_w": 0.5}, "radio": {"circuit_power_w": 3.0}, "num_blocks": 8}
    gains = []
    for seed in range(6):
        _, _, rigid = play("blocks", seed=seed, max_uploads=5, **values)
        _, _, free = play("blocks", seed=seed, max_uploads=5, work_conserving=True, **values)
        assert rigid.costs is not None
        assert free.costs is not None
        gains.append(rigid.costs.delay_s - free.costs.delay_s)
    assert max(gains) > 0.0


@pytest.mark.parametrize("access", OTHERS)
def test_a_deadline_is_kept_by_the_plan(access: str) -> None:
    _, _, free = play(access)
    assert free.costs is not None
    deadline_s = 0.7 * free.costs.delay_s
    _, plan, outcome = play(access, losses={"deadline_s": deadline_s})
    assert outcome.costs is not None
    assert plan.problem is not None
    assert plan.allocation is not None
    assert violations(plan.problem, plan.allocation) == ()
    assert outcome.received.tolist() == plan.selected.tolist()
    assert outcome.costs.delay_s <= deadline_s


def test_over_slots_whoever_is_last_is_late_first() -> None:
    """FEDL plans for no deadline: its slots go on past the round's end, and those after it are lost."""
    _, plan, free = play("tdma", method="fedl-power")
    assert free.costs is not None
    _, same, cut = play("tdma", method="fedl-power", losses={"deadline_s": 0.5 * free.costs.delay_s})
    assert same.selected.tolist() == plan.selected.tolist()
    late = cut.fate == UploadFate.LATE
    assert 0 < late.sum() < late.size
    assert late.tolist() == sorted(late.tolist())  # in the order of the slots
    assert cut.costs is not None
    last = int(plan.selected[-1])
    assert cut.costs.upload_energy_j[last] == 0.0  # its slot never came
    assert cut.costs.delay_s == pytest.approx(0.5 * free.costs.delay_s)


@pytest.mark.parametrize("access", OTHERS)
def test_without_a_device_the_others_keep_what_they_hold(access: str) -> None:
    _, plan, _ = play(access)
    fewer = plan.without(plan.selected[:1])
    assert fewer.allocation is not None
    assert plan.allocation is not None
    held, kept = plan.allocation.bandwidth_of_device_hz, fewer.allocation.bandwidth_of_device_hz
    assert held is not None
    assert kept is not None
    assert kept[fewer.selected] == pytest.approx(held[fewer.selected])
    assert kept[plan.selected[0]] == 0.0


def test_dropouts_leave_their_slots_empty() -> None:
    _, plan, outcome = play("tdma", losses={"dropout_probability": 0.5})
    assert outcome.costs is not None
    gone = plan.selected[outcome.fate == UploadFate.DROPPED_OUT]
    assert 0 < gone.size < plan.selected.size
    assert (outcome.costs.upload_energy_j[gone] == 0.0).all()
    assert plan.allocation is not None
    uploads_s = plan.allocation.upload_delay_s
    before_s = float((outcome.costs.downlink_time_s + outcome.costs.compute_time_s).max())
    assert outcome.costs.delay_s == pytest.approx(before_s + uploads_s)  # nobody can know that they are gone


def test_the_terms_of_a_cell_carry_its_access() -> None:
    cell, _, _ = play("blocks", work_conserving=True, max_uploads=4)
    assert (cell.terms.access, cell.terms.max_uploads, cell.terms.work_conserving) == ("blocks", 4, True)
    assert replace(cell.terms, access="tdma").access == "tdma"


def test_pieces_of_uploads_are_paid_until_the_round_s_end() -> None:
    cell, plan, outcome = play("blocks", work_conserving=True)
    assert outcome.costs is not None
    schedule = outcome.costs.schedule
    assert schedule is not None
    half_s = 0.5 * float(schedule.end_s.max())
    timeline = Timeline(
        broadcast_s=1.0,
        compute_time_s=np.zeros(N),
        reporting=ReportPhase.skipped(N),
        slot_time_s=schedule.end_of_device_s(N),
        deadline_s=1.0 + half_s,
    )
    costs = round_costs(
        timeline,
        cell=cell,
        terms=cell.terms,
        listens=np.ones(N, dtype=bool),
        sends=plan.selected,
        transmit_power_w=np.zeros(N),  # the pieces say what is sent
        cpu_frequency_hz=np.zeros(N),
        workload_cycles=np.zeros(N),
        idle_power_w=0.0,
        schedule=schedule,
    )
    assert costs.upload_energy_j == pytest.approx(
        schedule.energy_j(N, radio=cell.terms.radio, until_s=half_s)
    )
    assert costs.upload_energy_j.sum() < outcome.costs.upload_energy_j.sum()
