"""Planners beyond a round: the contract, queues by hand, who is asked at a price, and what each refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.selection import TopContribution
from fedwave.server import (
    BatteryReport,
    CappedRounds,
    ConstantPrices,
    DriftPlusPenalty,
    Outcome,
    Plan,
    PolicyPlanner,
    PolicyRunner,
    Reports,
    RoundCosts,
    UntilSpent,
)
from fedwave.testing import check_planner
from fedwave.testing.planner import CHANNEL, NUM_DEVICES, NUM_SAMPLES, small_cell_planner

RUNNER = PolicyRunner(TopContribution(NUM_DEVICES), NUM_SAMPLES, seed=0)
CELL = small_cell_planner(RUNNER)
EVERYBODY = np.arange(NUM_DEVICES)


def reports(contribution: Any = 50.0, who: Any = EVERYBODY) -> Reports:
    return Reports(
        device_index=np.asarray(who),
        contribution=np.broadcast_to(np.asarray(contribution, dtype=float), (len(who),)).copy(),
        loss=np.zeros(len(who)),
        num_samples=NUM_SAMPLES[who],
        gradient_norms=np.ones((len(who), 2)),
    )


def outcome(spent_j: Any, upload_j: float = 0.0) -> Outcome:
    zeros = np.zeros(NUM_DEVICES)
    spent = np.broadcast_to(np.asarray(spent_j, dtype=float), (NUM_DEVICES,))
    costs = RoundCosts(
        compute_energy_j=spent - upload_j,
        compute_time_s=zeros,
        report_energy_j=zeros,
        report_time_s=zeros,
        upload_energy_j=zeros + upload_j,
        upload_time_s=zeros,
        idle_energy_j=zeros,
        idle_time_s=zeros,
        delay_s=1.0,
        downlink_energy_j=zeros,
        downlink_time_s=zeros,
    )
    return Outcome(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), costs)


def plan_of(worth: float = 50.0) -> Plan:
    return Plan(selected=np.zeros(0, dtype=np.int64), scaled_contribution=np.full(NUM_DEVICES, worth))


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("drift-plus-penalty", {}),
        ("drift-plus-penalty", {"budget_j": 0.3, "v": 0.05, "asks": "all"}),
        ("drift-plus-penalty", {"budget_j": 0.3, "v": 0.05, "frame": 2, "growth": 1.0}),
        ("drift-plus-penalty", {"by": "battery"}),
        ("constant-prices", {"price": 3.0}),
        ("constant-prices", {"price": [1.0] * NUM_DEVICES}),
        ("capped-rounds", {"budget_j": 0.5}),
        ("capped-rounds", {"budget_j": 0.5, "saves": True}),
        ("until-spent", {"total_j": 2.0}),
        ("eafl", {}),
        ("eafl", {"total_j": 8.0, "num_asked": 2, "utility": "contribution", "pace_rounds": 1}),
        ("eafl", {"by": "battery", "exploration": 0.0, "min_exploration": 0.0}),
    ],
)
def test_the_planners_keep_the_contract_that_any_server_counts_on(part: str, options: dict[str, Any]) -> None:
    check_planner(part, **options)


def test_queues_hold_what_is_spent_beyond_the_budget() -> None:
    planner = DriftPlusPenalty(CELL, budget_j=2.0, v=4.0)
    state = planner.initial_state()
    assert planner.prices(0, state).tolist() == [1.0] * NUM_DEVICES  # eta_1 of the cell
    for spent_j, queue in ((5.0, 3.0), (1.5, 2.5), (0.0, 0.5), (0.0, 0.0), (2.25, 0.25)):
        state = planner.after(0, reports(), plan_of(), outcome(spent_j), state)
        assert state["queue_j"].tolist() == [queue] * NUM_DEVICES
        assert planner.prices(0, state).tolist() == [1.0 + queue / 4.0] * NUM_DEVICES
    assert state["spent_j"].tolist() == [8.75] * NUM_DEVICES


def test_a_frame_resets_the_queues_and_its_later_rounds_weigh_more() -> None:
    planner = DriftPlusPenalty(CELL, budget_j=1.0, v=2.0, frame=4, growth=1.0)
    state = planner.initial_state()
    for k in range(3):
        state = planner.after(k, reports(), plan_of(), outcome(2.0), state)
        weight = 1.0 + (k + 1) / 4
        np.testing.assert_allclose(planner.prices(k + 1, state), 1.0 + (k + 1) / (2.0 * weight))
    state = planner.after(3, reports(), plan_of(), outcome(2.0), state)
    assert not state["queue_j"].any()


def test_who_is_not_worth_its_joules_at_the_price_is_not_asked_until_its_queue_has_fallen() -> None:
    planner = DriftPlusPenalty(CELL, budget_j=1.0, v=1.0)
    state = planner.initial_state()
    assert planner.ask(0, state).tolist() == EVERYBODY.tolist()  # never heard of
    spent = np.full(NUM_DEVICES, 1.0)
    spent[2] = 8.0  # a queue of 7 and a price of 8: 8 J cost 64, and it contributes 50
    state = planner.after(0, reports(), plan_of(), outcome(spent), state)
    assert planner.ask(1, state).tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    others = np.delete(EVERYBODY, 2)
    rest = np.where(EVERYBODY == 2, 0.0, 1.0)
    for k, is_asked in ((1, False), (2, True)):  # the price falls to 7, then to 6: 48 of 50
        state = planner.after(k, reports(who=others), plan_of(), outcome(rest), state)
        assert (2 in planner.ask(k + 1, state)) == is_asked
    everyone = DriftPlusPenalty(CELL, budget_j=1.0, v=1.0, asks="all")
    assert everyone.ask(1, state).tolist() == EVERYBODY.tolist()


def test_what_is_remembered_of_a_device_is_a_running_mean() -> None:
    planner = DriftPlusPenalty(CELL)
    state = planner.after(0, reports(), plan_of(10.0), outcome(2.0), planner.initial_state())
    state = planner.after(1, reports(who=[3]), plan_of(20.0), outcome(4.0), state)
    assert state["mean_value"][3] == pytest.approx(0.7 * 10.0 + 0.3 * 20.0)
    assert state["asked_energy_j"][3] == pytest.approx(0.7 * 2.0 + 0.3 * 4.0)
    assert state["mean_value"][4] == 10.0


def test_with_batteries_the_price_is_what_they_lack() -> None:
    planner = DriftPlusPenalty(CELL, v=2.0, by="battery")
    state = planner.initial_state()
    assert planner.prices(0, state).tolist() == [1.0] * NUM_DEVICES  # taken for full
    report = BatteryReport(
        charge_j=np.linspace(0.0, 8.0, NUM_DEVICES),
        capacity_j=np.full(NUM_DEVICES, 8.0),
        is_awake=np.ones(NUM_DEVICES, dtype=bool),
        harvested_j=np.zeros(NUM_DEVICES),
        clock_s=1.0,
    )
    state = planner.after(0, reports(), plan_of(), replace(outcome(1.0), battery=report), state)
    np.testing.assert_allclose(planner.prices(1, state), 1.0 + np.linspace(8.0, 0.0, NUM_DEVICES) / 2.0)


def test_a_plan_says_the_prices_and_queues_that_it_was_made_at() -> None:
    planner = DriftPlusPenalty(CELL, budget_j=2.0, v=4.0)
    spent = np.linspace(0.0, 8.0, NUM_DEVICES)
    state = planner.after(0, reports(), plan_of(), outcome(spent), planner.initial_state())
    columns = planner.plan(1, EVERYBODY, reports(), CHANNEL, state).columns
    queue = np.maximum(spent - 2.0, 0.0)
    assert sorted(columns) == ["price_per_j", "queue_j"]
    np.testing.assert_allclose(columns["queue_j"], queue)
    np.testing.assert_allclose(columns["price_per_j"], 1.0 + queue / 4.0)
    by_battery = DriftPlusPenalty(CELL, by="battery")
    first = by_battery.plan(0, EVERYBODY, reports(), CHANNEL, by_battery.initial_state()).columns
    assert {name: values.tolist() for name, values in first.items()} == {"price_per_j": [1.0] * NUM_DEVICES}
    constant = ConstantPrices(CELL, price=3.0)
    told = constant.plan(0, EVERYBODY, reports(), CHANNEL, constant.initial_state()).columns
    assert {name: values.tolist() for name, values in told.items()} == {"price_per_j": [4.0] * NUM_DEVICES}


def test_dearer_joules_are_spent_by_others() -> None:
    def joules(price: list[float]) -> np.ndarray:
        planner = ConstantPrices(CELL, price=price)
        plan = planner.plan(0, EVERYBODY, reports(), CHANNEL, planner.initial_state())
        assert plan.allocation is not None
        assert plan.allocation.account is not None
        return plan.allocation.account.upload_energy_j

    cheap = joules([0.0] * NUM_DEVICES)
    first = int(np.argmax(cheap))
    price = [0.0] * NUM_DEVICES
    price[first] = 1e4
    assert cheap[first] > 0.0
    assert joules(price)[first] == 0.0


def test_a_cap_leaves_an_upload_what_the_round_has_not_taken() -> None:
    planner = CappedRounds(CELL, budget_j=3.0)
    state = planner.after(0, reports(), plan_of(), outcome(2.8, upload_j=0.3), planner.initial_state())
    np.testing.assert_allclose(state["asked_energy_j"], 2.5)
    plan = planner.plan(1, EVERYBODY, reports(), CHANNEL, state)
    assert plan.problem is not None
    np.testing.assert_allclose(plan.problem.max_energy_j, 0.5)


def test_what_is_saved_may_be_spent_later_and_who_has_saved_too_little_is_not_asked() -> None:
    planner = CappedRounds(CELL, budget_j=1.0, saves=True)
    spent = np.where(EVERYBODY < 4, 0.25, 2.5)  # of which the upload takes 0.25, and none of the others' 2.25
    state = planner.after(0, reports(), plan_of(), outcome(spent, upload_j=0.25), planner.initial_state())
    np.testing.assert_allclose(state["asked_energy_j"], np.where(EVERYBODY < 4, 0.0, 2.25))
    np.testing.assert_allclose(planner.left_j(1, state), np.where(EVERYBODY < 4, 1.75, -2.75))
    assert planner.ask(1, state).tolist() == [0, 1, 2, 3]
    plan = planner.plan(1, EVERYBODY, reports(), CHANNEL, state)
    assert plan.problem is not None
    np.testing.assert_allclose(plan.problem.max_energy_j, np.where(EVERYBODY < 4, 1.75, 0.0))
    assert len(planner.ask(3, state)) == 4  # 4 - 2.5 < 2.25
    assert len(planner.ask(4, state)) == NUM_DEVICES  # 5 - 2.5 > 2.25
    assert len(CappedRounds(CELL, budget_j=1.0).ask(1, state)) == NUM_DEVICES


def test_who_has_spent_its_total_is_not_asked() -> None:
    planner = UntilSpent(CELL, total_j=4.0)
    state = planner.initial_state()
    spent = np.where(EVERYBODY < 3, 2.0, 1.0)
    state = planner.after(0, reports(), plan_of(), outcome(spent), state)
    assert planner.ask(1, state).tolist() == EVERYBODY.tolist()
    state = planner.after(1, reports(), plan_of(), outcome(spent), state)
    assert planner.ask(2, state).tolist() == [3, 4, 5, 6, 7, 8]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="DriftPlusPenalty needs a cell, got a planner without one"):
        DriftPlusPenalty(PolicyPlanner(RUNNER))
    for wrong in ({"budget_j": 0.0}, {"v": -1.0}, {"frame": -1}, {"growth": -0.5}):
        with pytest.raises(ConfigError, match="drift-plus-penalty needs budget_j > 0, v > 0"):
            DriftPlusPenalty(CELL, **wrong)
    greedy = DriftPlusPenalty(small_cell_planner(RUNNER, "greedy"))
    with pytest.raises(ConfigError, match=r'need cell.method = "optimal", got "greedy"'):
        greedy.plan(0, EVERYBODY, reports(), CHANNEL, greedy.initial_state())
    planner = DriftPlusPenalty(CELL)
    silent = replace(outcome(1.0), costs=None)
    with pytest.raises(ProblemError, match="must hear what a round cost|need to hear what a round cost"):
        planner.after(0, reports(), plan_of(), silent, planner.initial_state())
