from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import METHODS, allocate
from fedwave.allocation.selected import devices_to_serve, upload_mask
from fedwave.errors import ProblemError
from tests.allocation.allocation_problems import paper_problem, small_problem

SERVING = [name for name, method in METHODS.items() if method.serves_given_devices]
CHOOSING = [name for name, method in METHODS.items() if not method.serves_given_devices]


def test_by_default_the_largest_contributions_are_served_one_per_block():
    problem = paper_problem(1)
    largest = np.sort(np.argsort(-problem.contribution)[:20])
    np.testing.assert_array_equal(devices_to_serve(problem, None), largest)
    assert devices_to_serve(small_problem(contribution=[1.0, 1.0, 1.0]), None).tolist() == [0, 1]  # ties
    assert devices_to_serve(paper_problem(1, num_devices=3), None).tolist() == [0, 1, 2]  # more blocks


def test_given_devices_come_back_sorted_or_as_a_mask():
    assert devices_to_serve(paper_problem(1), [9, 4, 77]).tolist() == [4, 9, 77]
    assert devices_to_serve(small_problem(), []).tolist() == []
    assert devices_to_serve(small_problem(), [2, 0]).tolist() == [0, 2]  # as many as there are blocks
    assert upload_mask(small_problem(), [2, 0]).tolist() == [True, False, True]
    assert upload_mask(small_problem(), []).tolist() == [False, False, False]
    assert upload_mask(small_problem(), None) is None


@pytest.mark.parametrize("method", SERVING)
def test_serving_methods_serve_exactly_the_given_devices(method):
    problem = paper_problem(1)
    found = allocate(problem, method, rng=np.random.default_rng(0), selected=[9, 4, 77])
    assert found.selected.tolist() == [4, 9, 77]
    unasked = allocate(problem, method, rng=np.random.default_rng(0))
    assert set(unasked.selected) == set(np.argsort(-problem.contribution)[:20])


@pytest.mark.parametrize("method", CHOOSING)
def test_choosing_methods_choose_among_the_given_devices(method):
    problem = paper_problem(1)
    many = np.arange(0, 100, 2)  # more than there are blocks
    found = allocate(problem, method, selected=many)
    assert found.num_selected > 0
    assert set(found.selected) <= set(many)
    assert set(allocate(problem, method).selected) - set(many)
    assert allocate(problem, method, selected=[]).num_selected == 0


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        ([0, 1, 2], r"selected must not exceed the 2 blocks, got 3 devices. One block carries one device"),
        ([0, 1, 3], r"selected must lie in 0..2, got 3"),
        ([-1, 1], r"selected must lie in 0..2, got -1"),
        ([1, 1], r"selected must name each device once"),
        ([True, False, True], r"selected must be a list of device indices, got bool .*numpy.flatnonzero"),
        ([0.0, 1.0], r"selected must be a list of device indices, got float64"),
        ([[0, 1]], r"selected must be a list of device indices, got int64 of shape \(1, 2\)"),
    ],
)
def test_bad_selections_are_refused(selected, message):
    with pytest.raises(ProblemError, match=message):
        allocate(small_problem(), "fedl", selected=selected)
