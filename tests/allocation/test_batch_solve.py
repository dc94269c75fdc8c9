from __future__ import annotations

import os
from dataclasses import fields, replace
from multiprocessing.context import ForkProcess

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, allocate, allocate_many, batch_solve, pareto_front
from fedwave.allocation.methods import METHODS, Method
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


@pytest.mark.parametrize(("worth_s", "expected"), [(0.0, [2]), (1e3, [])])
def test_work_is_shared_out_once_it_takes_long(monkeypatch, worth_s, expected):
    problem, gains = draws(30)
    shared = []
    monkeypatch.setattr("fedwave.allocation.batch_solve._WORTH_SHARING_S", worth_s)
    monkeypatch.setattr("fedwave.allocation.batch_solve._num_cores", lambda: 2)
    share_out = allocate_many.__globals__["_share_out"]
    monkeypatch.setattr(
        "fedwave.allocation.batch_solve._share_out", lambda *args: shared.append(args[2]) or share_out(*args)
    )
    allocate_many(problem, stacked={"channel_gain": gains})
    assert shared == expected


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_is_allocated_as_in_a_loop(method):
    problem, gains = draws(14)
    found = allocate_many(problem, method, stacked={"channel_gain": gains}, seed=3, workers=2)
    for k, one in enumerate(found):
        rng = generator(3, Stream.ALLOCATION, k)
        assert same(one, allocate(replace(problem, channel_gain=gains[k]), method, rng=rng))


def test_more_problems_than_portions_keep_their_order():
    problem = paper_problem(0, num_devices=5, num_blocks=2)
    gains = np.random.default_rng(1).uniform(0.1, 1.0, (611, 5))
    found = allocate_many(problem, "threshold", stacked={"channel_gain": gains}, workers=3)
    assert [one.objective for one in found] == [
        allocate(replace(problem, channel_gain=gain), "threshold").objective for gain in gains
    ]


def test_this_process_works_as_well_and_forks_one_less(monkeypatch):
    problem, gains = draws(40)
    here, forked = [], []
    start = ForkProcess.start
    monkeypatch.setattr(ForkProcess, "start", lambda process: forked.append(1) or start(process))
    solve = allocate_many.__globals__["_solve"]
    monkeypatch.setattr(
        "fedwave.allocation.batch_solve._solve", lambda job, index: here.append(index) or solve(job, index)
    )
    monkeypatch.setattr("fedwave.allocation.batch_solve._send_answers", lambda *_: os._exit(1))
    with pytest.raises(ProblemError, match="ended before its work was done"):
        allocate_many(problem, stacked={"channel_gain": gains}, workers=2)
    assert here == list(range(40))  # nobody else took a portion
    assert len(forked) == 1


def failing_at(*wrong):
    """Return a method that fails on some problems, which it knows by their delay weight."""

    def solve(problem, *, may_upload=None):
        if problem.delay_weight in wrong:
            raise wrong[problem.delay_weight](f"problem {problem.delay_weight:g} fails")
        return allocate(problem, "ives")

    wrong = dict(wrong)
    return Method(solve, serves_given_devices=False)


@pytest.mark.parametrize("kind", [ProblemError, ValueError, KeyError])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_first_error_is_raised_as_in_a_loop(monkeypatch, workers, kind):
    other = {8.0: kind, 9.0: RuntimeError, 31.0: RuntimeError}
    monkeypatch.setitem(METHODS, "failing", failing_at(*other.items()))
    problem = paper_problem(0, num_devices=5, num_blocks=2)
    weights = np.arange(1.0, 41.0)
    with pytest.raises(kind, match="problem 8 fails"):
        allocate_many(problem, "failing", stacked={"delay_weight": weights}, workers=workers)


def test_nobody_begins_what_comes_after_an_error(monkeypatch):
    tried = []
    solve = allocate_many.__globals__["_solve"]
    monkeypatch.setitem(METHODS, "failing", failing_at((8.0, ValueError)))
    monkeypatch.setattr("fedwave.allocation.batch_solve._send_answers", lambda *_: os._exit(1))
    monkeypatch.setattr(
        "fedwave.allocation.batch_solve._solve", lambda job, index: tried.append(index) or solve(job, index)
    )
    monkeypatch.setattr("fedwave.allocation.batch_solve._received", lambda _: ({}, []))
    with pytest.raises(ValueError, match="problem 8 fails"):
        allocate_many(
            paper_problem(0, num_devices=5, num_blocks=2),
            "failing",
            stacked={"delay_weight": np.arange(1.0, 41.0)},
            workers=2,
        )
    assert tried == [*range(8), 7]  # the last time to raise it here


def test_who_fails_leaves_nothing_for_others_to_begin(monkeypatch):
    monkeypatch.setitem(METHODS, "failing", failing_at((3.0, ValueError)))
    problem = paper_problem(0, num_devices=5, num_blocks=2)
    job = ([replace(problem, delay_weight=k + 1.0) for k in range(6)], "failing", None, {})
    to_do, given = os.pipe()
    os.write(given, bytes([1, 2]))
    os.close(given)
    found, failed = batch_solve._answers(job, [range(2), range(2, 4), range(4, 6)], to_do)
    assert (failed, list(found), os.read(to_do, 9)) == ([2], [1], b"")
    os.close(to_do)


def test_of_several_failures_the_first_problem_is_told_of(monkeypatch):
    other = {8.0: ValueError, 10.0: RuntimeError}
    monkeypatch.setitem(METHODS, "failing", failing_at(*other.items()))
    monkeypatch.setattr(batch_solve, "_answers", lambda *_: ({}, [9]))
    monkeypatch.setattr(batch_solve, "_received", lambda _: ({}, [7]))
    problem, weights = paper_problem(0, num_devices=5, num_blocks=2), np.arange(1.0, 41.0)
    with pytest.raises(ValueError, match="problem 8 fails"):
        allocate_many(problem, "failing", stacked={"delay_weight": weights}, workers=2)


def test_a_problem_that_fails_only_once_is_told_of(monkeypatch):
    problem, gains = draws(12)
    monkeypatch.setattr("fedwave.allocation.batch_solve._received", lambda _: ({}, [6]))
    with pytest.raises(ProblemError, match="problem 6 failed in one process and not in another"):
        allocate_many(problem, stacked={"channel_gain": gains}, workers=2)


def test_an_error_in_a_process_is_the_users_to_read():
    problems = [paper_problem(k, num_devices=5, num_blocks=2) for k in range(10)]
    with pytest.raises(ProblemError, match="needs rng="):
        allocate_many(problems, "random", workers=2)


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
