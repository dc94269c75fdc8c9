from __future__ import annotations

import time

import numpy as np
import pytest

from fedwave.allocation import METHODS, allocate, compare_methods, comparison
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from tests.allocation.allocation_problems import paper_problem, small_problem


def test_every_method_answers_as_it_does_alone():
    problem = paper_problem(0, num_devices=30, num_blocks=5)
    start = time.perf_counter()
    found = compare_methods(problem, seed=3)
    assert sum(timed.seconds for timed in found.values()) < time.perf_counter() - start
    assert list(found) == list(METHODS)
    for name, timed in found.items():
        alone = allocate(problem, name, rng=generator(3, Stream.ALLOCATION))
        np.testing.assert_array_equal(timed.allocation.block_of_device, alone.block_of_device)
        np.testing.assert_array_equal(timed.allocation.transmit_power_w, alone.transmit_power_w)
        assert timed.seconds > 0


def test_another_seed_draws_otherwise():
    problem = paper_problem(0, num_devices=30, num_blocks=5)
    first, second = (compare_methods(problem, ["random"], seed=seed)["random"] for seed in (0, 1))
    assert first.allocation.objective != second.allocation.objective


def test_a_method_that_is_named_often_is_computed_once(monkeypatch):
    computed = []

    def counted(problem, name, **options):
        computed.append(name)
        return allocate(problem, name, **options)

    monkeypatch.setattr(comparison, "allocate", counted)
    found = compare_methods(paper_problem(8), ["greedy", "fedl-power", *["greedy"] * 50], seed=0)
    assert list(found) == computed == ["greedy", "fedl-power"]


def test_methods_options_and_devices_may_be_chosen():
    problem = paper_problem(8)
    options = {"optimal": {"max_matchings": 5}}
    found = compare_methods(problem, ["fedl-power", "optimal"], seed=0, selected=[1, 2, 3], options=options)
    assert list(found) == ["fedl-power", "optimal"]
    assert found["fedl-power"].allocation.selected.tolist() == [1, 2, 3]
    assert set(found["optimal"].allocation.selected) <= {1, 2, 3}
    stopped = compare_methods(problem, ["optimal"], seed=0, options=options)["optimal"].allocation
    assert stopped.status.value == "limit"


def test_unknown_methods_are_named():
    with pytest.raises(ProblemError, match=r'no method "optimum".*"optimal"'):
        compare_methods(small_problem(), ["optimum"], seed=0)
    with pytest.raises(
        ProblemError, match=r"options name no method compared, got 'ives'. Choose one of: fedl-power"
    ):
        compare_methods(small_problem(), ["fedl-power"], seed=0, options={"ives": {}})
