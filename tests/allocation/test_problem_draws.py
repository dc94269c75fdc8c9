"""Problems from stacked arrays against ``dataclasses.replace``, one at a time."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem
from fedwave.allocation.problem_draws import problem_draws
from fedwave.errors import ProblemError
from fedwave.wireless.sanity import UnitWarning
from tests.allocation.allocation_problems import paper_problem

REMEMBERED = ("block_noise_w", "counts_energy", "longest_delay_s", "fastest_compute_s")


@pytest.fixture
def problem():
    return paper_problem(0, num_devices=9, num_blocks=4)


@pytest.fixture
def num_checks(monkeypatch):
    """Return a list that grows by one each time that a problem is checked."""
    seen = []
    check = AllocationProblem.__post_init__
    monkeypatch.setattr(AllocationProblem, "__post_init__", lambda self: seen.append(1) or check(self))
    return seen


def one_by_one(problem, stacked):
    num_draws = len(next(iter(stacked.values())))
    return [
        replace(problem, **{name: np.asarray(values)[draw] for name, values in stacked.items()})
        for draw in range(num_draws)
    ]


def assert_same(draws, expected):
    assert len(draws) == len(expected)
    for draw, other in zip(draws, expected, strict=True):
        assert type(draw) is AllocationProblem
        for name in (*(field.name for field in fields(AllocationProblem)), *REMEMBERED):
            ours, theirs = getattr(draw, name), getattr(other, name)
            assert type(ours) is type(theirs), name
            assert np.array_equal(ours, theirs), name
            if isinstance(ours, np.ndarray):
                assert (ours.dtype, ours.flags.writeable) == (theirs.dtype, False), name


def gains(seed=1, shape=(6, 9)):
    return np.random.default_rng(seed).uniform(0.1, 1.0, shape)


@pytest.mark.parametrize(
    "stacked",
    [
        {"channel_gain": gains()},
        {"contribution": gains() - 0.5},
        {"channel_gain": gains(), "contribution": gains(2)},
        {"channel_gain": gains().astype(np.float32)},
        {"channel_gain": np.arange(54).reshape(6, 9)},
        {"channel_gain": gains().tolist()},
        {"channel_gain": np.zeros((0, 9))},
    ],
)
def test_gains_and_contributions_are_checked_once_for_all(problem, num_checks, stacked):
    draws = problem_draws(problem, stacked)
    assert not num_checks
    assert_same(draws, one_by_one(problem, stacked))


@pytest.mark.parametrize(
    "stacked",
    [
        {"delay_weight": [0.5, 2.0]},
        {"channel_gain": gains(shape=(2, 9)), "energy_weight": np.array([1.0, 3.0])},
        {"workload_cycles": gains(shape=(2, 9))},
        {"max_power_w": gains(shape=(2, 9))},
        {"interference_w": gains(shape=(2, 4))},
        {"channel_gain": gains(shape=(2, 9, 4))},  # the problem has one gain for each device
        {"channel_gain": [0.5, 0.7]},  # the same for all devices
    ],
)
def test_all_other_fields_and_shapes_are_checked_draw_by_draw(problem, num_checks, stacked):
    assert problem.fastest_compute_s > 0  # remembered, and not by draws with another workload
    assert_same(problem_draws(problem, stacked), one_by_one(problem, stacked))
    assert len(num_checks) == 4


def test_gains_per_block_are_checked_once_if_the_problem_has_them_too(problem, num_checks):
    selective = replace(problem, channel_gain=gains(shape=(9, 4)))
    stacked = {"channel_gain": gains(shape=(3, 9, 4))}
    num_checks.clear()
    draws = problem_draws(selective, stacked)
    assert not num_checks
    assert_same(draws, one_by_one(selective, stacked))


def test_the_stacked_array_is_neither_copied_nor_made_read_only(problem):
    stack = gains()
    draws = problem_draws(problem, {"channel_gain": stack})
    assert all(np.shares_memory(draw.channel_gain, stack[k]) for k, draw in enumerate(draws))
    assert stack.flags.writeable


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("channel_gain", -0.1),
        ("channel_gain", np.nan),
        ("channel_gain", np.inf),
        ("contribution", np.nan),
        ("contribution", -np.inf),
    ],
)
def test_a_wrong_value_is_told_as_of_its_draw(problem, name, wrong):
    stack = gains()
    stack[3, 7] = wrong
    with pytest.raises(ProblemError) as expected:
        replace(problem, **{name: stack[3]})
    with pytest.raises(ProblemError) as caught:
        problem_draws(problem, {name: stack})
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize(
    "stack", [np.full((2, 9), "1"), np.full((2, 9), 1j), np.ones((2, 9), bool), gains() > 0]
)
def test_what_is_no_number_is_refused(problem, stack):
    with pytest.raises(ProblemError, match="channel_gain must hold"):
        problem_draws(problem, {"channel_gain": stack})


def test_each_draw_warns_of_a_slip_of_units():
    with pytest.warns(UnitWarning):
        problem = replace(
            paper_problem(0, num_devices=9, num_blocks=4),
            max_power_w=23.0,
            bandwidth_hz=180e3,
            noise_psd_w_per_hz=4e-21,
        )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        problem_draws(problem, {"channel_gain": gains()})
    assert [one.category for one in said] == [UnitWarning] * 6


def test_a_class_of_its_own_is_kept(num_checks):
    class Mine(AllocationProblem):
        pass

    known = {
        field.name: getattr(paper_problem(0, num_devices=9, num_blocks=4), field.name)
        for field in fields(AllocationProblem)
    }
    num_checks.clear()
    draws = problem_draws(Mine(**known), {"channel_gain": gains()})
    assert {type(draw) for draw in draws} == {Mine}
    assert len(num_checks) == 7
