from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, linear_sum_assignment, milp

from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.uploads import assignment
from fedwave.allocation.uploads.assignment import assign_blocks, assign_devices, best_matching
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor
from tests.allocation.allocation_problems import paper_problem


def largest_by_brute_force(weight):
    num_rows, num_columns = weight.shape
    best = 0.0
    for columns in itertools.product(range(-1, num_columns), repeat=num_rows):
        used = [column for column in columns if column >= 0]
        if len(set(used)) == len(used):
            best = max(best, sum(weight[row, column] for row, column in enumerate(columns) if column >= 0))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_assignment_is_worth_as_much_as_the_best_of_all(num_rows, num_columns, seed, has_ties):
    rng = np.random.default_rng(seed)
    weight = rng.integers(-3, 4, (num_rows, num_columns)).astype(float)
    if not has_ties:
        weight += rng.normal(size=weight.shape)
    row, column = assign_blocks(weight)
    assert np.unique(row).size == row.size
    assert np.unique(column).size == column.size
    assert (weight[row, column] > 0).all()
    assert_allclose(weight[row, column].sum(), largest_by_brute_force(weight), atol=1e-12)


def test_assignment_agrees_with_an_integer_program():
    weight = np.random.default_rng(4).normal(1.0, 2.0, (6, 9))
    rows, columns = weight.shape
    each_row = np.kron(np.eye(rows), np.ones(columns))
    each_column = np.kron(np.ones(rows), np.eye(columns))
    constraint = LinearConstraint(np.vstack([each_row, each_column]), ub=1.0)
    exact = milp(-weight.ravel(), constraints=constraint, integrality=1, bounds=(0, 1))
    row, column = assign_blocks(weight)
    assert_allclose(weight[row, column].sum(), -exact.fun, rtol=1e-9)


def test_pruned_table_gives_the_same_value_at_every_delay():
    for seed in range(3):
        for changes in (
            {},
            {"channel_gain": np.random.default_rng(seed).uniform(0.1, 1, (300, 6))},
            {"max_energy_j": np.random.default_rng(seed).uniform(0.5, 3, 300), "max_delay_s": 8.0},
        ):
            problem = paper_problem(seed, num_devices=300, num_blocks=6, **changes)
            few, every = candidate_pairs(problem), all_pairs(problem)
            assert few.snr_cap.size < every.snr_cap.size / 2
            for snr in 10.0 ** np.linspace(-3, 0, 8):
                keywords = {"energy_factor": energy_factor(snr), "smallest_cap": snr}
                value = best_matching(few, **keywords).value(energy_factor(snr))
                assert_allclose(value, best_matching(every, **keywords).value(energy_factor(snr)), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 8, 12, 40, 900]), st.booleans())
def test_columns_that_are_left_out_are_never_missed(seed, num_devices, has_ties):
    problem = paper_problem(seed % 1000, num_devices=num_devices, num_blocks=6)
    if has_ties:  # many devices are equally good, and some bring nothing
        problem = replace(
            problem, contribution=np.rint(problem.contribution / 4), channel_gain=0.5, max_power_w=0.5
        )
    table = all_pairs(problem)
    snr = 10.0 ** np.random.default_rng(seed).uniform(-3, 0)
    weight = np.maximum(table.contribution - table.unit_cost * energy_factor(snr), 0.0)
    weight[table.snr_cap < snr] = 0.0
    row, column = linear_sum_assignment(weight, maximize=True)
    found = best_matching(table, energy_factor=energy_factor(snr), smallest_cap=snr)
    assert np.unique(found.column).size == found.column.size
    assert_allclose(found.best_value, weight[found.row, found.column].sum(), rtol=1e-12, atol=1e-12)
    assert_allclose(found.best_value, weight[row, column].sum(), rtol=1e-12, atol=1e-12)
    assert (found.caps >= snr).all()


def test_it_is_the_assignment_of_scipy():
    rng = np.random.default_rng(0)
    for shape in [(1, 1), (3, 7), (7, 3), (20, 60)]:
        cost = rng.normal(size=shape)
        for ours, theirs in zip(assignment._load_alone()(cost), linear_sum_assignment(cost), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_the_public_name_is_used_where_the_file_is_elsewhere(monkeypatch):
    monkeypatch.setattr(assignment, "find_spec", lambda name: None)
    assert assignment._load_alone() is None
    monkeypatch.setattr(assignment, "_load_alone", lambda: None)
    monkeypatch.delitem(sys.modules, "scipy.optimize", raising=False)
    assert assignment._load() is importlib.import_module("scipy.optimize").linear_sum_assignment


def test_scipy_optimize_can_be_imported_before_and_after():
    before = (
        "import scipy.optimize, fedwave.allocation.uploads.assignment as l; l.linear_sum_assignment([[1.0]])"
    )
    after = (
        "import fedwave.allocation.uploads.assignment as l, scipy.optimize as o;"
        "assert o.linear_sum_assignment([[1.0]]) == l.linear_sum_assignment([[1.0]])"
    )
    for code in (before, after):
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("seed", range(60))
def test_barred_rows_stay_empty_and_the_others_are_worth_most(seed):
    rng = np.random.default_rng(seed)
    num_rows, num_columns = (int(value) for value in rng.integers(1, 5, 2))
    weight = rng.integers(-2, 6, (num_rows, num_columns)) * (1.0 if seed % 2 else rng.random())
    num_barred = int(rng.integers(0, num_rows + 1))
    row, column = assign_blocks(weight, num_barred=num_barred)
    assert len(set(row)) == len(set(column)) == row.size <= num_rows - num_barred
    best = 0.0
    most = min(num_rows - num_barred, num_columns)
    for count in range(1, most + 1):
        for rows in itertools.combinations(range(num_rows), count):
            for columns in itertools.permutations(range(num_columns), count):
                best = max(best, weight[list(rows), list(columns)].sum())
    assert weight[row, column].sum() == pytest.approx(best, abs=1e-12)
    device, block = assign_devices(weight.T, num_barred=num_barred)
    assert weight[block, device].sum() == pytest.approx(best, abs=1e-12)
