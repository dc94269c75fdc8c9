"""Charges from round to round: an account by hand, and energy that is neither made nor lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import RunError
from fedwave.server import Outcome, Plan, RoundCosts
from fedwave.simulation.power import PHASES, Charge, Power
from fedwave.wireless.battery import Batteries
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.harvest import PiecewiseConstant

ARRIVED, FLAT, DROPPED = int(UploadFate.ARRIVED), int(UploadFate.FLAT), int(UploadFate.DROPPED_OUT)


def power(num_devices: int = 4, **changes: Any) -> Power:
    batteries = Batteries(
        capacity_j=np.full(num_devices, 10.0),
        initial_charge_j=np.full(num_devices, 10.0),
        draw_w=np.zeros(num_devices),
        min_charge_j=np.zeros(num_devices),
        interval_s=0.0,
        harvest=PiecewiseConstant(np.zeros(1), np.zeros((1, num_devices))),
    )
    return Power(batteries=replace(batteries, **changes), num_samples=np.full(num_devices, 5))


def costs(energy_j: dict[str, list[float]], delay_s: float = 4.0) -> RoundCosts:
    """Every phase takes two seconds of each device."""
    size = len(next(iter(energy_j.values())))
    joules = {f"{phase}_energy_j": np.array(energy_j.get(phase, [0.0] * size)) for phase in PHASES}
    return RoundCosts(
        **joules, **{f"{phase}_time_s": np.full(size, 2.0) for phase in PHASES}, delay_s=delay_s
    )


# Each wants 1 J to listen, 2 to compute, 0.5 to report, 4 to send, 0.5 to wait: 8 in all.
WANTED = {"downlink": [1.0] * 4, "compute": [2.0] * 4, "report": [0.5] * 4, "upload": [4.0] * 4}
WANTED["idle"] = [0.5] * 4


def test_a_charge_is_spent_in_the_order_of_the_phases() -> None:
    charge = Charge(np.array([8.0, 7.75, 5.5, 2.0]), 100.0)
    plan = Plan(selected=np.arange(4))
    outcome = Outcome(np.arange(4), np.full(4, ARRIVED), costs(WANTED))
    found = power().drain(plan, outcome, charge)
    assert found.costs is not None
    assert found.costs.downlink_energy_j.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert found.costs.compute_energy_j.tolist() == [2.0, 2.0, 2.0, 1.0]
    assert found.costs.compute_time_s.tolist() == [2.0, 2.0, 2.0, 1.0]  # half the joules, half the seconds
    assert found.costs.report_energy_j.tolist() == [0.5, 0.5, 0.5, 0.0]
    assert found.costs.upload_energy_j.tolist() == [4.0, 4.0, 2.0, 0.0]
    assert found.costs.upload_time_s.tolist() == [2.0, 2.0, 1.0, 0.0]
    assert found.costs.idle_energy_j.tolist() == [0.5, 0.25, 0.0, 0.0]
    # The second ran out while it waited, after its upload: that one has arrived.
    assert found.received.tolist() == [0, 1]
    assert found.fate.tolist() == [ARRIVED, ARRIVED, FLAT, FLAT]
    assert found.battery is not None
    assert found.battery.charge_j.tolist() == [0.0] * 4
    assert found.battery.is_awake.tolist() == [False] * 4
    assert found.battery.clock_s == 104.0


def test_a_device_that_had_left_is_not_called_flat_and_one_that_does_not_send_is_no_fate() -> None:
    charge = Charge(np.full(4, 0.5), 0.0)
    plan = Plan(selected=np.array([0, 2]))
    outcome = Outcome(np.array([2]), np.array([DROPPED, ARRIVED]), costs(WANTED))
    found = power().drain(plan, outcome, charge)
    assert found.fate.tolist() == [DROPPED, FLAT]
    assert found.received.tolist() == []


def test_harvest_and_draw_count_within_the_round_and_in_the_pause() -> None:
    supply = power(
        draw_w=np.full(4, 0.25),
        interval_s=10.0,
        harvest=PiecewiseConstant(np.zeros(1), np.array([[0.0, 1.0, 1.0, 1.0]])),
    )
    charge = Charge(np.array([3.0, 3.0, 0.0, 9.5]), 0.0)
    outcome = Outcome(np.zeros(0, int), np.zeros(0, int), costs({"compute": [1.0, 1.0, 5.0, 0.0]}))
    found = supply.drain(Plan(selected=np.zeros(0, int)), outcome, charge)
    assert found.costs is not None
    assert found.battery is not None
    # In the round of 4 s: -1, +3, +3, +3 but for what is spent, of which the third has 3 J only.
    assert found.costs.compute_energy_j.tolist() == [1.0, 1.0, 3.0, 0.0]
    # After it 1, 5, 0 and 10 (12.5 does not fit); then 6 s at -0.25 or +0.75 W.
    assert found.battery.charge_j.tolist() == [0.0, 9.5, 4.5, 10.0]
    assert found.battery.harvested_j.tolist() == [0.0, 10.0, 10.0, 10.0]
    assert found.battery.clock_s == 10.0


@given(st.integers(0, 2**32 - 1))
def test_no_joule_is_made_or_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    charge_j = rng.uniform(0.0, 10.0, 4) * (rng.random(4) < 0.8)
    wanted = {phase: rng.uniform(0.0, 3.0, 4) * (rng.random(4) < 0.8) for phase in PHASES}
    asked = costs({phase: values.tolist() for phase, values in wanted.items()})
    plan = Plan(selected=np.flatnonzero(rng.random(4) < 0.6))
    outcome = Outcome(plan.selected, np.full(len(plan.selected), ARRIVED), asked)
    found = power().drain(plan, outcome, Charge(charge_j, 7.0))
    assert found.costs is not None
    assert found.battery is not None
    spent_j = found.costs.device_energy_j
    np.testing.assert_allclose(found.battery.charge_j + spent_j, charge_j, atol=1e-12)
    enough = asked.device_energy_j <= charge_j
    np.testing.assert_allclose(spent_j[enough], asked.device_energy_j[enough], atol=1e-12)
    np.testing.assert_allclose(spent_j[~enough], charge_j[~enough], atol=1e-12)
    until_sent = sum(wanted[phase] for phase in PHASES if phase != "idle")
    lost = plan.selected[found.fate == FLAT]
    assert (until_sent[lost] > charge_j[lost] - 1e-12).all()
    assert (until_sent[found.received] <= charge_j[found.received] + 1e-12).all()
    assert sorted([*lost.tolist(), *found.received.tolist()]) == plan.selected.tolist()


def test_the_planner_is_told_who_is_awake() -> None:
    told: dict[str, Any] = {}

    class Listens:
        def with_devices(self, **given: Any) -> str:
            told.update(given)
            return "the planner for these"

    supply = power(min_charge_j=np.array([0.0, 0.0, 5.0, 5.0]))
    charge = Charge(np.array([0.0, 0.1, 5.0, 5.1]), 0.0)
    assert supply.among_awake(Listens(), charge) == "the planner for these"  # type: ignore[arg-type, comparison-overlap]
    assert told["present"].tolist() == [1, 3]
    assert told["num_samples"].tolist() == [5] * 4


def test_a_charge_comes_back_from_its_arrays_and_a_damaged_one_is_refused() -> None:
    charge = Charge(np.array([1.5, 0.0]), 12.25)
    back = Charge.from_arrays(charge.to_arrays())
    assert back.charge_j.tolist() == [1.5, 0.0]
    assert back.clock_s == 12.25
    for broken in (
        {"charge_j": np.array([1.0])},
        {"charge_j": np.array([-1.0]), "clock_s": np.array([0.0])},
        {"charge_j": np.array([np.nan]), "clock_s": np.array([0.0])},
        {"charge_j": np.array([1]), "clock_s": np.array([0.0])},
        {"charge_j": np.array([1.0]), "clock_s": np.zeros((1, 1))},
    ):
        with pytest.raises(
            RunError, match="the checkpoint's batteries are damaged: .* Restore the checkpoint"
        ):
            Charge.from_arrays(broken)
