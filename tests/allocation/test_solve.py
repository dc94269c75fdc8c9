from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fedwave.allocation import METHODS, Status, account, allocate, total_cost, violations
from fedwave.errors import ProblemError
from tests.allocation.allocation_cells import paper_cell, random_problem, small_problem


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_contract(method):
    for seed in range(60):
        problem = random_problem(np.random.default_rng(seed))
        before = {name: np.copy(value) for name, value in vars(problem).items() if value is not None}
        found = allocate(problem, method, rng=np.random.default_rng(seed))
        again = allocate(problem, method, rng=np.random.default_rng(seed))
        assert found.method == method
        for name in ("block_of_device", "transmit_power_w", "cpu_frequency_hz"):
            assert getattr(found, name).shape == (problem.num_devices,)
            np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
        assert violations(problem, found) == ()
        assert found.objective == pytest.approx(total_cost(problem, found), rel=1e-12, abs=1e-12)
        assert isinstance(found.status, Status)
        assert found.reason or found.status is not Status.INFEASIBLE
        assert found.upper_bound >= found.objective
        for name, value in before.items():
            np.testing.assert_array_equal(value, getattr(problem, name))


@pytest.mark.parametrize("method", METHODS)
def test_the_account_adds_up_to_the_objective(method):
    problem = paper_cell(0)
    found = allocate(problem, method, rng=np.random.default_rng(0))
    entry = account(problem, found)
    assert entry.compute_energy_j.sum() + entry.upload_energy_j.sum() == pytest.approx(found.energy_j)
    assert entry.compute_delay_s.max() == pytest.approx(found.compute_delay_s)
    assert entry.upload_delay_s.max(initial=0.0) == pytest.approx(found.upload_delay_s)
    assert problem.contribution[entry.is_selected].sum() == pytest.approx(found.contribution)
    expected = found.contribution - found.energy_j - found.delay_s
    assert found.objective == pytest.approx(expected)
    assert found.delay_s == found.compute_delay_s + found.upload_delay_s


def test_energy_counts_the_computing_of_all_devices():
    found = allocate(small_problem(contribution=[-1.0, -1.0, -1.0]))
    assert found.num_selected == 0
    assert found.energy_j > 0


def test_unknown_methods_and_options_name_the_nearest():
    with pytest.raises(ProblemError, match=r"method is not known, got 'optimum'. Did you mean \"optimal\"\?"):
        allocate(small_problem(), "optimum")
    with pytest.raises(ProblemError, match=r'method "ives" has no option \'strat\'. Did you mean "start"\?'):
        allocate(small_problem(), "ives", strat=3.0)


def test_every_method_takes_rng_and_selected():
    for method in METHODS:
        found = allocate(paper_cell(0), method, rng=np.random.default_rng(0), selected=[5, 6, 7])
        assert set(found.selected) <= {5, 6, 7}


def test_violations_are_found():
    from dataclasses import replace

    problem = small_problem(max_delay_s=3.0, max_energy_j=2.0)
    found = allocate(problem)
    broken = replace(
        found,
        block_of_device=np.array([0, 0, -1]),
        transmit_power_w=np.array([0.01, 5.0, 0.0]),
        cpu_frequency_hz=problem.max_frequency_hz * 2,
    )
    lines = "\n".join(violations(problem, broken))
    for part in (
        "more than one device",
        "outside 0..max_power_w",
        "max_frequency_hz",
        "past max_delay_s",
        "above",
    ):
        assert part in lines
    assert "must lie in" in violations(problem, replace(found, block_of_device=np.array([-2, -1, -1])))[0]


def test_gap_of_an_unproven_answer_is_infinite():
    assert allocate(small_problem(), "ives").gap == np.inf


def test_the_package_needs_numpy_and_scipy_alone():
    code = (
        "import sys, fedwave.allocation;"
        "heavy = {'torch', 'matplotlib', 'pydantic', 'typer', 'rich', 'pandas'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_docstring_example_runs():
    import doctest

    import fedwave.allocation

    assert doctest.testmod(fedwave.allocation).failed == 0
