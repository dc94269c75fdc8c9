from __future__ import annotations

import os
from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, allocate, allocate_many, pareto_front
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from tests.allocation.allocation_problems import paper_problem


def same(one, other):
    """Return whether two allocations agree to the last bit."""
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "account":
            if not same(ours, theirs):
                return False
        elif not np.array_equal(ours, theirs, equal_nan=np.asarray(ours).dtype.kind == "f"):
            return False
    return True


def draws(count):
    problem = paper_problem(0, num_devices=30, num_blocks=6)
    return problem, np.random.default_rng(1).uniform(0.1, 1.0, (count, 30))


@pytest.mark.parametrize("workers", [1, 2, 3, None])
def test_stacked_draws_are_allocated_as_in_a_loop(workers):
    problem, gains = draws(40)
    found = allocate_many(problem, stacked={"channel_gain": gains}, workers=workers)
    for gain, one in zip(gains, found, strict=True):
        assert same(one, allocate(replace(problem, channel_gain=gain)))


@pytest.mark.parametrize("workers", [1, 2])
def test_problems_of_several_sizes_keep_their_order(workers):
    problems = [paper_problem(k, num_devices=5 + k, num_blocks=3) for k in range(15)]
    found = allocate_many(iter(problems), workers=workers, relative_gap=1e-3)
    assert [one.block_of_device.size for one in found] == [5 + k for k in range(15)]
    for problem, one in zip(problems, found, strict=True):
        assert same(one, allocate(problem, relative_gap=1e-3))


def test_several_fields_and_gains_per_block_may_be_stacked():
    problem, _ = draws(1)
    rng = np.random.default_rng(2)
    stacked = {"channel_gain": rng.uniform(0.1, 1, (7, 30, 6)), "delay_weight": rng.uniform(0.5, 2, 7)}
    for k, one in enumerate(allocate_many(problem, stacked=stacked)):
        again = replace(
            problem, channel_gain=stacked["channel_gain"][k], delay_weight=stacked["delay_weight"][k]
        )
        assert same(one, allocate(again))


@pytest.mark.parametrize("workers", [1, 2])
def test_methods_that_draw_have_a_generator_for_each_problem(workers):
    problem, gains = draws(12)
    found = allocate_many(problem, "random", stacked={"channel_gain": gains}, seed=5, workers=workers)
    for k, one in enumerate(found):
        rng = generator(5, Stream.ALLOCATION, k)
        assert same(one, allocate(replace(problem, channel_gain=gains[k]), "random", rng=rng))


def test_one_problem_and_none_are_many_too():
    problem, _ = draws(1)
    assert same(allocate_many(problem)[0], allocate(problem))
    assert allocate_many([]) == []


def test_work_is_shared_out_once_it_takes_long(monkeypatch):
    problem, gains = draws(30)
    shared = []
    monkeypatch.setattr("fedwave.allocation.batch_solve._WORTH_SHARING_S", 0.0)
    monkeypatch.setattr("fedwave.allocation.batch_solve._num_cores", lambda: 2)
    share_out = allocate_many.__globals__["_share_out"]
    monkeypatch.setattr(
        "fedwave.allocation.batch_solve._share_out", lambda *args: shared.append(args[2]) or share_out(*args)
    )
    allocate_many(problem, stacked={"channel_gain": gains})
    assert shared == [2]


def test_an_error_in_a_process_is_the_users_to_read():
    problems = [paper_problem(k, num_devices=5, num_blocks=2) for k in range(10)]
    with pytest.raises(ProblemError, match="needs rng="):
        allocate_many(problems, "random", workers=2)


def test_a_process_that_dies_is_told_of(monkeypatch):
    problem, gains = draws(12)
    monkeypatch.setattr("fedwave.allocation.batch_solve._solve_share", lambda job, share, answer: os._exit(1))
    with pytest.raises(ProblemError, match="ended before its work was done"):
        allocate_many(problem, stacked={"channel_gain": gains}, workers=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stacked": {"gain": np.ones((2, 5))}}, "stacked names no field of a problem, got 'gain'"),
        ({"stacked": {"channel_gain": 1.0}}, "stacked channel_gain must have an axis of draws"),
        ({"stacked": {}}, "equally many draws, got no arrays"),
        (
            {"stacked": {"channel_gain": np.ones((2, 5)), "delay_weight": np.ones(3)}},
            "equally many draws, got {'channel_gain': 2, 'delay_weight': 3}",
        ),
        ({"workers": 0}, "workers must be a whole number >= 1, got 0"),
        ({"workers": True}, "workers must be a whole number >= 1, got True"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    with pytest.raises(ProblemError, match=message.replace("{", r"\{").replace("}", r"\}")) as caught:
        allocate_many(paper_problem(0, num_devices=5, num_blocks=2), **arguments)
    assert "\n" not in str(caught.value)


def test_stacked_arrays_need_one_problem():
    problem = paper_problem(0, num_devices=5, num_blocks=2)
    with pytest.raises(ProblemError, match="stacked arrays need one problem"):
        allocate_many([problem, problem], stacked={"channel_gain": np.ones((2, 5))})
    with pytest.raises(TypeError, match="problems must be of type"):
        allocate_many([problem, "problem"])


def test_a_front_is_a_loop_over_its_weights():
    problem = paper_problem(3, num_devices=20, num_blocks=4)
    front = pareto_front(problem, weights=[(0.5, 1.0), (1.0, 1.0), (4.0, 1.0)])
    for pair, one in zip([(0.5, 1.0), (1.0, 1.0), (4.0, 1.0)], front.allocations, strict=True):
        assert same(one, allocate(replace(problem, energy_weight=pair[0], delay_weight=pair[1])))
    assert isinstance(problem, AllocationProblem)
