"""The bound of a range of delays for whole blocks: tangents by differences, all numbers of blocks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.block_options import block_options
from fedwave.allocation.access.block_search import BlockSearch, _falling_root, _Node
from fedwave.allocation.access.delay_price import DelayPrice
from tests.allocation.access.access_oracles import alike_problem, computing_cost, option_worth

FEATURES = [(), ("circuit",), ("round",), ("cap", "circuit"), ("outage", "amplifier")]


def setting(seed: int) -> tuple[AllocationProblem, BlockSearch, float, float]:
    """Return a problem, its search before the first step, and a range of delays."""
    rng = np.random.default_rng([seed, 11])
    problem = alike_problem(rng, "blocks", n=3, m=3, features=FEATURES[seed % len(FEATURES)])
    options = block_options(problem, np.arange(3))
    delay = DelayPrice.of(problem)
    search = BlockSearch(options, delay, num_blocks=3, max_uploads=None)
    able = np.sort(options.first_s[np.isfinite(options.first_s)])
    first_s = float(able[able.size // 3]) * float(rng.uniform(0.9, 1.1))
    last_s = min(first_s * float(rng.uniform(1.5, 4.0)), delay.deadline_s * 0.98)
    return problem, search, first_s, last_s


def node(
    search: BlockSearch, first_s: float, last_s: float, bound: float = math.inf, *, ends: bool = True
) -> _Node:
    return search._node(search.options, np.arange(3), first_s, last_s, bound, ends=ends)


def all_counts() -> list[tuple[int, ...]]:
    return [counts for counts in itertools.product(range(4), repeat=3) if sum(counts) <= 3]


@pytest.mark.parametrize("seed", range(20))
def test_a_range_is_bounded_by_the_best_sum_of_tangents_at_its_ends(seed: int) -> None:
    problem, search, first_s, last_s = setting(seed)
    if not first_s < last_s:
        first_s = 0.6 * last_s
    here = math.sqrt(first_s * last_s)
    step = 1e-5 * here
    lines: dict[tuple[int, int], tuple[float, float]] = {}
    for i, k in itertools.product(range(3), range(1, 4)):
        touch = max(here, float(search.options.first_s[i, k - 1]) * (1 + 1e-9))
        if touch > last_s:
            lines[i, k] = (-math.inf, -math.inf)
            continue
        low = option_worth(problem, i, k, touch - step)
        now, high = option_worth(problem, i, k, touch), option_worth(problem, i, k, touch + step)
        slope = (high - low) / (2 * step) if math.isfinite(low) else (high - now) / step
        lines[i, k] = (now + slope * (first_s - touch), now + slope * (last_s - touch))
    delay = DelayPrice.of(problem)
    steep = (delay.cost(here + step) - delay.cost(here - step)) / (2 * step)
    ends = []
    for number, end in enumerate((first_s, last_s)):
        best = max(sum(lines[i, k][number] for i, k in enumerate(counts) if k) for counts in all_counts())
        ends.append(best - delay.cost(here) - steep * (end - here))
    assert -node(search, first_s, last_s).priority == pytest.approx(max(ends), rel=2e-3, abs=1e-4)
    assert -node(search, first_s, last_s, -7.0).priority == min(-7.0, -node(search, first_s, last_s).priority)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_within_a_range_is_above_its_bound(seed: int) -> None:
    problem, search, first_s, last_s = setting(seed)
    if not first_s < last_s:
        first_s = 0.6 * last_s
    bound = -node(search, first_s, last_s).priority
    free = computing_cost(problem, 0.0)
    for delay_s in np.linspace(first_s, last_s, 9):
        cost = problem.delay_weight * delay_s + computing_cost(problem, float(delay_s)) - free
        worth = {(i, k): option_worth(problem, i, k, float(delay_s)) for i in range(3) for k in (1, 2, 3)}
        for counts in all_counts():
            value = sum(worth[i, k] for i, k in enumerate(counts) if k) - cost
            assert value <= bound + 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_what_begins_at_the_last_delay_is_the_next_node_s(seed: int) -> None:
    problem, search, first_s, _ = setting(seed)
    later = search.options.first_s[np.isfinite(search.options.first_s) & (search.options.first_s > first_s)]
    if later.size == 0:
        first_s *= 0.5
        later = search.options.first_s[np.isfinite(search.options.first_s)]
    last_s = float(later.min())
    bound = -node(search, first_s, last_s, ends=False).priority
    search.value, search.delay_s = 0.0, 0.0  # from before
    assert bound <= -node(search, first_s, last_s).priority + 1e-12
    free = computing_cost(problem, 0.0)
    for delay_s in np.linspace(first_s, last_s * (1 - 1e-9), 5):
        cost = problem.delay_weight * delay_s + computing_cost(problem, float(delay_s)) - free
        worth = {(i, k): option_worth(problem, i, k, float(delay_s)) for i in range(3) for k in (1, 2, 3)}
        for counts in all_counts():
            assert sum(worth[i, k] for i, k in enumerate(counts) if k) - cost <= bound + 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_whatever_beats_the_incumbent_within_a_range_is_made_of_options_kept(seed: int) -> None:
    problem, search, first_s, last_s = setting(seed)
    if not first_s < last_s:
        first_s = 0.6 * last_s
    found = node(search, first_s, last_s)
    for _ in range(3):  # once more, with a better incumbent and what is left of the options
        found = search._node(found.options, found.row, first_s, last_s, math.inf)
    kept = np.zeros((3, 3), dtype=bool)
    kept[found.row, : found.options.num_blocks] = np.isfinite(found.options.first_s)
    free, num_better = computing_cost(problem, 0.0), 0
    for delay_s in [*np.linspace(first_s, last_s, 40), search.delay_s]:
        if not first_s <= delay_s <= last_s:
            continue
        cost = problem.delay_weight * delay_s + computing_cost(problem, float(delay_s)) - free
        worth = {(i, k): option_worth(problem, i, k, float(delay_s)) for i in range(3) for k in (1, 2, 3)}
        for counts in all_counts():
            if sum(worth[i, k] for i, k in enumerate(counts) if k) - cost > search.value + 1e-9:
                num_better += 1
                assert all(kept[i, k - 1] for i, k in enumerate(counts) if k)
    assert num_better == 0 or kept.any()


def test_options_far_below_the_incumbent_are_left_out() -> None:
    _, search, first_s, last_s = setting(11)
    node(search, first_s, last_s)
    first_s, last_s = 0.99 * search.delay_s, 1.01 * search.delay_s
    node(search, first_s, last_s)
    search.value -= 1e-6  # what was found lies above it
    found = node(search, first_s, last_s)
    num_left = int(np.isfinite(found.options.first_s).sum())
    assert 0 < num_left < int((search.options.first_s <= last_s).sum())
    search.value = 1e9
    assert node(search, first_s, last_s).row.size == 0


@pytest.mark.parametrize("few", [None, 2])
def test_no_uploads_contribute_more_than_the_most(few: int | None) -> None:
    problem, search, _, _ = setting(0)
    search.max_uploads = few
    best = np.sort(np.maximum(problem.contribution, 0.0))[::-1]
    assert search._most() == pytest.approx(best[:few].sum())
    search.num_blocks = 1
    assert search._most() == pytest.approx(best[0])


@pytest.mark.parametrize("seed", range(20))
def test_worth_and_slope_of_an_option_are_those_of_the_definitions(seed: int) -> None:
    problem, search, first_s, last_s = setting(seed)
    options = search.options
    for delay_s in np.linspace(first_s, max(last_s, 2 * first_s), 5):
        worth, slope = options.worth(options.sending_s(float(delay_s)))
        for i, k in itertools.product(range(3), range(1, 4)):
            begin = options.first_s[i, k - 1]
            expected = option_worth(problem, i, k, float(delay_s))
            assert math.isfinite(expected) == (delay_s >= begin)
            if delay_s < begin * (1 + 1e-3) or abs(delay_s / options.last_s[i, k - 1] - 1.0) < 1e-3:
                continue
            assert worth[i, k - 1] == pytest.approx(expected, rel=1e-7, abs=1e-8)
            step = 1e-4 * float(delay_s)
            rise = option_worth(problem, i, k, delay_s + step) - option_worth(problem, i, k, delay_s - step)
            assert slope[i, k - 1] == pytest.approx(rise / (2 * step), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_the_delay_of_given_blocks_is_their_best(seed: int) -> None:
    problem, search, first_s, _ = setting(seed)
    delay = DelayPrice.of(problem)
    counts = np.array([1, 2, 0]) if seed % 2 else np.array([1, 1, 1])

    def value(delay_s: float) -> float:
        worths = [option_worth(problem, i, int(k), delay_s) for i, k in enumerate(counts) if k]
        return sum(worths) - delay.cost(delay_s)

    kept = search.options.only(np.flatnonzero(counts), counts[counts > 0])
    low, high = float(kept.first_s.max()), delay.latest_s(float(np.maximum(problem.contribution, 0).sum()))
    found_s = search._try(counts, first_s)
    if low > high:
        assert search.value == 0.0
        return
    best = max(value(t) for t in np.geomspace(low * (1 + 1e-12), high, 400))
    if kept.contribution.sum() * problem.delay_weight > 0 and best > 0:
        assert search.value == pytest.approx(value(found_s), rel=1e-7, abs=1e-8)
        assert search.value >= best - 1e-8
        assert search.value <= best + 0.05 * (1 + abs(best))


def test_a_falling_root_is_found_from_either_side() -> None:
    for guess in (0.5, 1.9, 3.0, 9.0):
        assert _falling_root(lambda x: 2.0 - x, 1.0, 8.0, guess) == pytest.approx(2.0, rel=1e-12)
        assert _falling_root(lambda x: 1.0 if x < 5.0 else -1.0, 1.0, 8.0, guess) == pytest.approx(5.0)
