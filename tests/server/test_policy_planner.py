"""Planning on an ideal network: the policy decides alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.selection import POLICIES, PowerOfChoice
from fedwave.server import PolicyPlanner, PolicyRunner
from tests.server.radios import CONTRIBUTION, play


def planner(policy: str, num_selected: int = 3, *, everyone_computes: bool = False) -> PolicyPlanner:
    samples = np.resize(np.array([4, 8]), 9)
    return PolicyPlanner(
        PolicyRunner(POLICIES[policy](num_selected=num_selected), samples, 0, everyone_computes)
    )


def test_contributions_and_losses_reach_the_policy_that_ranks_them() -> None:
    assert play(planner("top-contribution"), CONTRIBUTION).plan.selected.tolist() == [2, 5, 8]
    everybody = play(planner("power-of-choice", 5), CONTRIBUTION)  # of ten candidates: all
    assert everybody.asked.tolist() == list(range(9))
    assert everybody.plan.selected.tolist() == [0, 1, 4, 6, 7]  # the smallest contributions: largest losses


@pytest.mark.parametrize("policy", POLICIES)
def test_everyone_may_compute_without_a_change_of_who_uploads(policy: str) -> None:
    few, everybody = (
        play(planner(policy, everyone_computes=also_others), CONTRIBUTION, 5) for also_others in (False, True)
    )
    assert everybody.asked.tolist() == list(range(9))
    assert everybody.plan.selected.tolist() == few.plan.selected.tolist()


def test_samples_weigh_in_the_draw_of_candidates() -> None:
    # Devices 1, 3, 5, 7 have twice the samples of the others: 8/52 against 4/52 for the first draw.
    runner = PolicyRunner(PowerOfChoice(1, num_candidates=1), np.resize(np.array([4, 8]), 9), seed=3)
    one = PolicyPlanner(runner)
    count = np.zeros(9)
    for k in range(4000):
        count[one.ask(k, one.initial_state())] += 1
    # Binomial counts of 4000 draws: 615 and 308 with standard deviations below 23.
    assert np.abs(count - np.resize([4000 * 4 / 52, 4000 * 8 / 52], 9)).max() < 4.5 * 23


@pytest.mark.parametrize(
    ("policy", "num_models"), [("uniform", 3), ("top-contribution", 3), ("power-of-choice", 6)]
)
def test_as_many_models_are_kept_as_may_be_asked_for(policy: str, num_models: int) -> None:
    assert planner(policy).max_models == num_models


@pytest.mark.parametrize("policy", POLICIES)
def test_the_plan_says_whether_it_needed_the_reports(policy: str) -> None:
    plan = play(planner(policy), CONTRIBUTION).plan
    assert plan.needs_reports is (policy in {"top-contribution", "power-of-choice"})
    assert plan.reason == ""
    assert plan.scaled_contribution is None
