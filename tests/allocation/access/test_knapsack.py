"""Numbers of blocks against all choices, and against scipy's mixed-integer solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from fedwave.allocation.access import knapsack


def best_counts(table: np.ndarray, num_blocks: int, most: int | None = None) -> tuple[float, np.ndarray]:
    found = knapsack.best_counts(table, num_blocks, most)
    return found.value, found.counts


def random_table(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    table = rng.normal(0, 3, (n, 1)) + np.sort(rng.normal(0, 2, (n, m)), axis=1)
    table[rng.random((n, m)) < 0.2] = -np.inf
    return table


def by_all_choices(table: np.ndarray, num_blocks: int, most: int | None) -> float:
    best = 0.0
    for counts in itertools.product(range(table.shape[1] + 1), repeat=table.shape[0]):
        if sum(counts) <= num_blocks and (most is None or sum(k > 0 for k in counts) <= most):
            best = max(best, sum(table[i, k - 1] for i, k in enumerate(counts) if k))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    most = None if seed % 3 else int(rng.integers(0, 4))
    table = random_table(rng, n, m)
    value, counts = best_counts(table, m, most)
    assert value == pytest.approx(by_all_choices(table, m, most), abs=1e-9)
    assert value == pytest.approx(sum(table[i, k - 1] for i, k in enumerate(counts) if k), abs=1e-9)
    assert counts.sum() <= m
    assert most is None or np.count_nonzero(counts) <= most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [None, 7])
def test_the_mixed_integer_solver_finds_the_same(seed: int, most: int | None) -> None:
    rng = np.random.default_rng(seed)
    n, m = 30, 12
    table = rng.uniform(-1, 5, (n, 1)) + 6 * rng.uniform(0.2, 1, (n, 1)) * (1 - 1 / np.arange(1, m + 1))
    blocks = np.tile(np.arange(1, m + 1), n)
    rows = [LinearConstraint(np.kron(np.eye(n), np.ones(m)), ub=1), LinearConstraint(blocks[None], ub=m)]
    if most is not None:
        rows.append(LinearConstraint(np.ones((1, n * m)), ub=most))
    found = milp(-table.ravel(), constraints=rows, integrality=np.ones(n * m), bounds=Bounds(0, 1))
    assert best_counts(table, m, most)[0] == pytest.approx(-found.fun, rel=1e-6)


def test_nothing_worth_it_gets_nothing() -> None:
    value, counts = best_counts(np.array([[-1.0, -np.inf], [0.0, -2.0]]), 2)
    assert value == 0.0
    assert counts.tolist() == [0, 0]


def test_equal_devices_share_as_equals() -> None:
    value, counts = best_counts(np.tile([3.0, 4.0, 4.5], (4, 1)), 4)
    assert value == 12.0
    assert counts.tolist() == [1, 1, 1, 1]


def lumpy_table(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Return worths of one or two sizes each, about in proportion: filling up by price leaves gaps."""
    table = np.full((n, m), -np.inf)
    for row in table:
        for k in rng.choice(np.arange(2, m + 1), size=int(rng.integers(1, 3)), replace=False):
            row[k - 1] = k * float(rng.uniform(0.9, 1.2))
    return table


@pytest.mark.parametrize("seed", range(60))
def test_what_prices_leave_open_is_decided_by_the_programme(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    n, m = int(rng.integers(3, 6)), int(rng.integers(4, 8))
    table = lumpy_table(rng, n, m)
    value, counts = best_counts(table, m)
    assert value == pytest.approx(by_all_choices(table, m, None), abs=1e-9)
    assert value == pytest.approx(sum(table[i, k - 1] for i, k in enumerate(counts) if k), abs=1e-9)
    assert counts.sum() <= m


def test_two_that_fit_beat_the_one_with_the_best_price() -> None:
    none = -np.inf
    table = np.array([[none, none, none, 10.0], [none, none, 7.2, none], [none, none, 7.2, none]])
    table = np.hstack([table, np.full((3, 2), none)])
    value, counts = best_counts(table, 6)
    assert value == pytest.approx(14.4)  # 10 for four blocks is the best per block, and leaves two idle
    assert counts.tolist() == [0, 3, 3]


@pytest.mark.parametrize("seed", range(30))
def test_a_limit_on_devices_that_binds_is_kept_by_the_choice(seed: int) -> None:
    """Everybody is worth it on one block already, so the limit decides."""
    rng = np.random.default_rng([seed, 2])
    table = rng.uniform(1.0, 4.0, (5, 1)) + np.cumsum(rng.uniform(0.0, 1.0, (5, 5)), axis=1)
    most = int(rng.integers(1, 4))
    value, counts = best_counts(table, 5, most)
    assert np.count_nonzero(counts) == most
    assert counts.sum() <= 5
    assert value == pytest.approx(by_all_choices(table, 5, most), abs=1e-9)
    assert value == pytest.approx(sum(table[i, k - 1] for i, k in enumerate(counts) if k), abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most", [None, 2])
def test_no_choice_with_an_option_is_above_the_bound_of_that_option(seed: int, most: int | None) -> None:
    rng = np.random.default_rng([seed, 5])
    make = random_table if seed % 2 else lumpy_table
    table = make(rng, 4, 4)
    bound = knapsack.best_counts(table, 4, most).bound_with_each(table)
    padded = np.hstack([np.zeros((4, 1)), table])
    best = np.full(table.shape, -np.inf)
    for counts in itertools.product(range(5), repeat=4):
        if sum(counts) > 4 or (most is not None and np.count_nonzero(counts) > most):
            continue
        value = sum(padded[i, k] for i, k in enumerate(counts))
        for i, k in enumerate(counts):
            if k:
                best[i, k - 1] = max(best[i, k - 1], value)
    assert (best <= bound + 1e-9).all()
    if most is None:  # and the price is a good one: within one device's worth
        assert bound.max() <= best.max() + max(table.max(), 0.0) + 1e-9


def test_a_price_between_the_last_block_given_and_the_first_refused() -> None:
    found = knapsack.best_counts(np.array([[5.0, 8.0, 9.0], [4.0, 6.0, 6.5]]), 3)
    assert found.counts.tolist() == [2, 1]
    assert 2.0 < found.price < 3.0  # blocks are worth 5, 4, 3, 2, ...
    assert found.bound_with_each(np.array([[5.0, 8.0, 9.0], [4.0, 6.0, 6.5]])).max() == pytest.approx(12.0)
