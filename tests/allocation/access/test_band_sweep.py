"""Bounds of many ranges of delays at once: by exact prices at single delays, and by all sets and shares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.area_price import best_price
from fedwave.allocation.access.band import Band, shared_band
from fedwave.allocation.access.band_lines import BandLines
from fedwave.allocation.access.band_search import BandSearch
from fedwave.allocation.access.band_sweep import _best_sum, _chosen, sweep
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.proof import Gap
from tests.allocation.access.access_oracles import alike_problem, best_areas, computing_cost

FEATURES = [(), ("circuit",), ("round",), ("cap", "outage"), ("energy",), ("amplifier",)]


def setting(seed: int, n: int = 9) -> tuple[AllocationProblem, Band, DelayPrice, np.ndarray]:
    """Return a problem, its band, its delay's price and edges of ranges."""
    rng = np.random.default_rng([seed, 31])
    problem = alike_problem(rng, "shared-band", n=n, m=3, features=FEATURES[seed % len(FEATURES)])
    problem = replace(problem, contribution=np.abs(problem.contribution) * 3.0)
    band = shared_band(problem, np.arange(n))
    delay = DelayPrice.of(problem)
    first_s = float(np.sort(band.first_delay_s())[0])
    last_s = max(min(delay.latest_s(float(problem.contribution.sum())), 60.0 * first_s), 1.5 * first_s)
    return problem, band, delay, np.geomspace(first_s, min(last_s, delay.deadline_s * 0.99), 6)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [None, 3])
def test_no_delay_of_a_range_has_a_priced_value_above_its_bound(seed: int, most: int | None) -> None:
    _, band, delay, edges = setting(seed)
    seen = sweep(band, delay, edges[:-1], edges[1:], np.full(5, 0.3), most)
    nobody = np.zeros(band.size, dtype=bool)
    for r in range(5):
        for delay_s in np.linspace(edges[r], edges[r + 1], 8):
            exact = best_price(band.at(float(delay_s)), nobody, start=0.3, most_uploads=most)
            assert exact is not None
            assert exact.bound - delay.cost(float(delay_s)) <= seen.bound[r] + 1e-9 * (1 + abs(exact.bound))


@pytest.mark.parametrize("seed", range(12))
def test_prices_are_close_to_the_best_and_bounds_those_of_a_node(seed: int) -> None:
    _, band, delay, edges = setting(seed)
    seen = sweep(band, delay, edges[:-1], edges[1:], np.full(5, 0.3), None)
    nobody = np.zeros(band.size, dtype=bool)
    for r in range(5):
        middle_s = math.sqrt(edges[r] * edges[r + 1])
        exact = best_price(band.at(middle_s), nobody, start=0.3)
        assert exact is not None
        best = exact.bound - delay.cost(middle_s)
        assert best - 1e-9 <= seen.value[r] <= best + 0.1 * (1.0 + abs(exact.bound))
        found = best_price(band.at(middle_s), nobody, start=float(seen.price[r]))
        assert found is not None
        lines = BandLines.of(found, nobody, float(edges[r]), float(edges[r + 1]), delay, None)
        assert seen.bound[r] <= lines.bound() + 0.1 * (1.0 + abs(lines.bound()))
        assert seen.bound[r] >= seen.value[r] - 1e-9 * (1.0 + abs(seen.value[r]))


@pytest.mark.parametrize("most", [None, 1, 2, 4, 9])
def test_the_best_sum_is_that_of_the_best_set(most: int | None) -> None:
    worth = np.random.default_rng(4).normal(0, 2, (20, 4))
    limit = 4 if most is None else most
    for row, total, chosen in zip(worth, _best_sum(worth, most), _chosen(worth, most), strict=True):
        ranked = np.sort(row)[::-1][:limit]
        assert total == pytest.approx(ranked[ranked > 0].sum())
        assert row[chosen].sum() == pytest.approx(total)


@pytest.mark.parametrize("seed", range(8))
def test_the_ranges_left_hold_the_optimum_or_it_is_the_incumbent(seed: int) -> None:
    problem, band, delay, _ = setting(seed, n=4)
    search = BandSearch(band, delay, max_uploads=None)
    gap = Gap(relative=1e-6, compute_cost=0.0, scale=float(problem.contribution.sum()))
    first_s, last_s = search._range(gap.scale)
    if not first_s <= last_s:
        return
    left = search._look_around(first_s, last_s, gap)
    best = best_areas(problem) + computing_cost(problem, 0.0)
    bound = max([search.value, search.pruned, *(-node.priority for node in left)])
    assert best <= bound + 1e-6 * (1.0 + abs(best))
    assert all(first_s <= node.within.first_s < node.within.last_s <= last_s for node in left)
    assert all(
        node.within.first_s <= node.within.guess_s <= node.within.last_s and node.within.price > 0.0
        for node in left
    )
    assert [node.priority for node in left][:1] == sorted(node.priority for node in left)[:1]
