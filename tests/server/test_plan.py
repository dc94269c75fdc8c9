"""A plan's weights: one for each selected device, and those of the devices that arrived."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import account, allocate, total_cost
from fedwave.errors import ProblemError
from fedwave.server import Plan
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import small_problem


def test_the_weights_of_those_that_arrived_are_in_their_order() -> None:
    plan = Plan(selected=np.array([2, 5, 9]), weights=np.array([1.0, 7.0, 3.0]))
    weights = plan.weights_of(np.array([2, 9]))
    assert weights is not None
    assert weights.tolist() == [1.0, 3.0]
    assert Plan(selected=np.array([2, 5])).weights_of(np.array([5])) is None


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([1.0], r"one weight for each of the 2 selected devices, got shape \(1,\)"),
        ([1.0, 0.0], r"finite and > 0, got \[1.0, 0.0\]"),
        ([1.0, -2.0], "finite and > 0"),
        ([1.0, np.nan], "finite and > 0"),
        ([1.0, np.inf], "finite and > 0"),
    ],
)
def test_weights_that_make_no_mean_are_refused(weights: list[float], why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        Plan(selected=np.array([2, 5]), weights=np.array(weights))


@pytest.mark.parametrize("name", ["", "Price", "price per joule", "1st", "a,b"])
def test_a_column_that_no_table_could_hold_is_refused(name: str) -> None:
    with pytest.raises(ProblemError, match=f'columns are named by small letters, .* got "{name}"'):
        Plan(selected=np.array([1]), columns={"price": np.zeros(3), name: np.zeros(3)})


def test_a_plan_says_what_it_costs_also_after_a_change() -> None:
    # Device 0 on block 1 (noise 2 W) and device 2 on block 0 (noise 1 W): an SNR of 1 takes one second.
    radio = RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.25)
    problem = small_problem(channel_gain=1.0, max_power_w=4.0, radio=radio)
    found = replace(
        allocate(problem),
        block_of_device=np.array([1, -1, 0]),
        transmit_power_w=np.array([2.0, 0.0, 1.0]),
        cpu_frequency_hz=np.array([1.0, 0.5, 0.5]),
    )
    plan = Plan(selected=found.selected, allocation=found, problem=problem)
    assert plan.account is not None
    # p T would be 2 and 1 J; the amplifier doubles it and the circuit adds a quarter of a joule each second.
    assert plan.account.upload_energy_j.tolist() == [4.25, 0.0, 2.25]
    assert plan.account.energy_j.tolist() == [4.5, 0.25, 2.265625]
    # At three times the power, an SNR of 3: half a second, (6 / 0.5 + 0.25) / 2 joules.
    louder = replace(plan, allocation=replace(found, transmit_power_w=np.array([6.0, 0.0, 1.0])))
    assert louder.account is not None
    assert louder.account.upload_energy_j.tolist() == [6.125, 0.0, 2.25]


def test_a_plan_without_some_devices_keeps_what_the_others_do() -> None:
    problem = small_problem(channel_gain=1.0, max_power_w=2.0)
    found = allocate(problem)
    assert found.selected.tolist() == [0, 2]
    plan = Plan(
        selected=found.selected, allocation=found, problem=problem, weights=np.array([3.0, 5.0])
    ).without(np.array([0, 1]))
    assert plan.selected.tolist() == [2]
    assert plan.weights is not None
    assert plan.weights.tolist() == [5.0]
    left = plan.allocation
    assert left is not None
    assert left.block_of_device.tolist() == [-1, -1, found.block_of_device[2]]
    assert left.transmit_power_w.tolist() == [0.0, 0.0, found.transmit_power_w[2]]
    assert left.cpu_frequency_hz.tolist() == found.cpu_frequency_hz.tolist()
    assert left.objective == total_cost(problem, left) < found.objective
    assert left.upper_bound == found.upper_bound  # nothing that is left out makes a better one
    with pytest.raises(ProblemError, match="a plan without a problem cannot be counted anew"):
        Plan(selected=found.selected, allocation=found).without(np.array([0]))
    assert Plan(selected=np.array([1, 2])).without(np.array([2])).selected.tolist() == [1]


def test_without_a_problem_the_account_is_the_allocations_own_and_without_a_radio_there_is_none() -> None:
    problem = small_problem()
    found = allocate(problem)
    plan = Plan(selected=found.selected, allocation=found)
    assert plan.account is found.account
    again = account(problem, found)
    assert plan.account is not None
    for field in fields(again):
        assert np.array_equal(getattr(plan.account, field.name), getattr(again, field.name), equal_nan=True)
    assert Plan(selected=np.array([2])).account is None
    assert Plan(selected=np.array([2]), problem=problem).account is None
