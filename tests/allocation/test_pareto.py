from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import allocate, pareto_front
from fedwave.errors import ProblemError
from tests.allocation.allocation_problems import paper_problem, small_problem


def test_dearer_energy_never_raises_energy_per_contribution_or_loses_to_another_point():
    problem = paper_problem(0, num_devices=40, num_blocks=8)
    front = pareto_front(problem)
    assert front.energy_j.shape == (17,)
    assert front.is_efficient.all()
    # The optimum for weights w is at least as good for w as every other point of the front.
    for k in range(17):
        value = (
            front.contribution
            - front.energy_weight[k] * front.energy_j
            - front.delay_weight[k] * front.delay_s
        )
        assert value[k] >= value.max() - 1e-9


def test_pairs_of_weights_are_taken_as_given():
    problem = small_problem()
    front = pareto_front(problem, [(0.25, 0.5), (1.0, 0.1)])
    assert front.energy_weight.tolist() == [0.25, 1.0]
    assert front.allocations[0].objective == allocate(problem).objective
    assert front.num_selected[0] == allocate(problem).num_selected


def test_a_ratio_of_one_is_the_problem_itself():
    problem = small_problem()
    front = pareto_front(problem, [1.0])
    assert front.energy_j[0] == allocate(problem).energy_j


@pytest.mark.parametrize("weights", [[], [-1.0], [[1.0, 2.0, 3.0]]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ProblemError, match="weights must be numbers > 0 or pairs"):
        pareto_front(small_problem(), weights)


def test_ratios_need_both_weights():
    with pytest.raises(ProblemError, match="weights as ratios need energy_weight > 0 and delay_weight > 0"):
        pareto_front(small_problem(energy_weight=0.0), [1.0])


def test_dominated_points_are_marked():
    from dataclasses import replace

    front = pareto_front(small_problem(), [0.5, 1.0])
    worse = replace(
        front,
        energy_j=np.array([1.0, 2.0]),
        delay_s=np.array([1.0, 1.0]),
        contribution=np.array([5.0, 5.0]),
    )
    assert worse.is_efficient.tolist() == [True, False]


def test_complex_weights_are_refused():
    with pytest.raises(ProblemError, match="weights must hold real numbers, got complex128"):
        pareto_front(small_problem(), [1.0 + 1j])


def test_prices_of_devices_have_no_ratio_but_pairs_replace_them():
    problem = small_problem(energy_weight=[1.0, 0.5, 2.0])
    with pytest.raises(ProblemError, match="need one energy_weight in the problem, got one for each device"):
        pareto_front(problem, weights=[0.1, 1.0])
    front = pareto_front(problem, weights=[(0.25, 0.5)])
    assert front.contribution[0] == pareto_front(small_problem(), weights=[(0.25, 0.5)]).contribution[0]
