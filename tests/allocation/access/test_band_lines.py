"""The bound of a range, line by line: tangents by central differences of worths that scipy finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.area_price import at_price, best_price
from fedwave.allocation.access.band_lines import BandLines
from fedwave.allocation.access.delay_price import DelayPrice
from tests.allocation.access.access_oracles import (
    computing_cost,
    hurried_setting,
    priced_worth,
    subsets,
    upload,
)

SEEDS = range(10)


def tangent(problem: AllocationProblem, device: int, price: float, at_s: float, end_s: float) -> float:
    """Return the tangent at one delay, taken at another, by central differences."""
    step = 1e-5 * at_s
    high, low = (priced_worth(problem, device, price, at_s + sign * step) for sign in (1, -1))
    return priced_worth(problem, device, price, at_s) + (high - low) / (2 * step) * (end_s - at_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_are_tangents_and_no_worth_lies_above_them(seed: int) -> None:
    problem, band, first_s, last_s, here_s, price = hurried_setting(seed)
    must = np.zeros(5, dtype=bool)
    found = at_price(band.at(here_s), price, must, None)
    lines = BandLines.of(found, must, first_s, last_s, DelayPrice.of(problem), None)
    steep = 0
    for i in range(5):
        line = (lines.at_first[i], lines.at_last[i])
        if found.worth[i] > 0.0:
            expected = [tangent(problem, i, price, here_s, end) for end in (first_s, last_s)]
            assert line == pytest.approx(expected, rel=1e-4, abs=1e-5)
            steep += expected[1] > expected[0] + 1e-6
        for t in np.linspace(0.0, 1.0, 15):
            worth = priced_worth(problem, i, price, first_s + t * (last_s - first_s))
            above = (1 - t) * max(line[0], 0.0) + t * max(line[1], 0.0)
            assert max(worth, 0.0) <= above + 1e-7
    assert steep > 0 or seed == 3  # or the signs of the slopes would not matter


@pytest.mark.parametrize("seed", SEEDS)
def test_who_does_not_upload_here_is_bounded_by_its_tangent_at_the_end(seed: int) -> None:
    """At the node's first delay some cannot upload at all, and the tangent is the best there is."""
    problem, band, _, _, _, price = hurried_setting(seed)
    firsts = band.first_delay_s()
    here_s, last_s = float(np.sort(firsts)[2]) * 1.01, float(firsts.max()) * 1.3
    late = DelayPrice.of(problem).deadline_s
    if last_s >= late:
        last_s = late * 0.99
    if here_s >= last_s:
        here_s = 0.8 * last_s
    first_s = 0.9 * here_s
    must = np.zeros(5, dtype=bool)
    found = at_price(band.at(here_s), price, must, None)
    lines = BandLines.of(found, must, first_s, last_s, DelayPrice.of(problem), None)
    for i in np.flatnonzero(~found.moment.can & band.at(last_s).can):
        expected = [tangent(problem, i, price, last_s, end) for end in (first_s, last_s)]
        assert (lines.at_first[i], lines.at_last[i]) == pytest.approx(expected, rel=5e-3, abs=1e-5)
    for i in np.flatnonzero(found.moment.can & (found.worth <= 0.0)):
        ways = [[tangent(problem, i, price, at, end) for end in (first_s, last_s)] for at in (here_s, last_s)]
        lower = ways[1] if ways[1][0] <= 0.0 else ways[0]
        assert (lines.at_first[i], lines.at_last[i]) == pytest.approx(lower, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_who_must_has_its_own_tangent_even_below_zero(seed: int) -> None:
    problem, band, first_s, last_s, here_s, price = hurried_setting(seed)
    must = band.at(first_s).can
    found = at_price(band.at(here_s), 5.0 * price, must, None)
    lines = BandLines.of(found, must, first_s, last_s, DelayPrice.of(problem), None)
    for i in np.flatnonzero(must):
        expected = [tangent(problem, i, 5.0 * price, here_s, end) for end in (first_s, last_s)]
        assert (lines.at_first[i], lines.at_last[i]) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    open_first = np.maximum(lines.at_first[~must], 0.0).sum()
    open_last = np.maximum(lines.at_last[~must], 0.0).sum()
    delay = DelayPrice.of(problem)
    ends = []
    for end_s, open_worth, line in (
        (first_s, open_first, lines.at_first),
        (last_s, open_last, lines.at_last),
    ):
        step = 1e-5 * here_s
        steep = (delay.cost(here_s + step) - delay.cost(here_s - step)) / (2 * step)
        cost = delay.cost(here_s) + steep * (end_s - here_s)
        ends.append(line[must].sum() + open_worth + 5.0 * price * band.width_per_s * end_s - cost)
    assert lines.bound() == pytest.approx(max(ends), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [None, 2])
def test_no_shares_at_any_delay_of_a_node_are_worth_more_than_its_bound(seed: int, most: int | None) -> None:
    """Weak duality over a whole range: all sets, random shares, seven delays, by the definitions."""
    problem, band, first_s, last_s, here_s, _ = hurried_setting(seed)
    nobody = np.zeros(5, dtype=bool)
    found = best_price(band.at(here_s), nobody, start=1.0, most_uploads=most)
    assert found is not None
    bound = BandLines.of(found, nobody, first_s, last_s, DelayPrice.of(problem), most).bound()
    rng = np.random.default_rng(seed)
    total = problem.num_blocks * problem.bandwidth_hz
    free = computing_cost(problem, 0.0)
    for delay_s in np.linspace(first_s, last_s, 7):
        cost = problem.delay_weight * delay_s + computing_cost(problem, float(delay_s)) - free
        for chosen in subsets(problem):
            if not chosen or (most is not None and len(chosen) > most):
                continue
            for shares in rng.dirichlet(np.ones(len(chosen)), 12):
                joules = sum(
                    upload(problem, i, b * total, float(delay_s)) for i, b in zip(chosen, shares, strict=True)
                )
                value = problem.contribution[chosen].sum() - problem.energy_weight * joules - cost
                assert value <= bound + 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_of_one_delay_is_bounded_by_its_priced_value_exactly(seed: int) -> None:
    problem, band, _, _, here_s, price = hurried_setting(seed)
    delay = DelayPrice.of(problem)
    nobody = np.zeros(5, dtype=bool)
    found = at_price(band.at(here_s), price, nobody, None)
    worth = sum(max(priced_worth(problem, i, price, here_s), 0.0) for i in range(5))
    expected = worth + price * band.width_per_s * here_s - delay.cost(here_s)
    lines = BandLines.of(found, nobody, here_s, here_s, delay, None)
    assert lines.bound() == pytest.approx(expected, rel=1e-6)


def some_lines(rng: np.random.Generator, most: int | None, must: np.ndarray) -> BandLines:
    return BandLines(
        at_first=rng.normal(0, 2, must.size),
        at_last=rng.normal(0, 2, must.size),
        must=must,
        base_first=float(rng.normal()),
        base_last=float(rng.normal()),
        most_uploads=most,
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_that_of_the_best_set_at_each_end(seed: int) -> None:
    """All sets, both ends; and with one device decided the other way, all sets that are left."""
    rng = np.random.default_rng(seed)
    most = [None, 2, 3][seed % 3]
    must = rng.random(5) < 0.2
    if most is not None and must.sum() > most:
        must[:] = False
    lines = some_lines(rng, most, must)

    def best(having: int | None = None, lacking: int | None = None) -> float:
        values = []
        for size in range(6):
            for chosen in itertools.combinations(range(5), size):
                picked = np.isin(np.arange(5), chosen)
                if (must & ~picked).any() or (most is not None and size > most):
                    continue
                if (having is not None and not picked[having]) or (lacking is not None and picked[lacking]):
                    continue
                values.append((lines.at_first[picked].sum(), lines.at_last[picked].sum()))
        first, last = (
            (max(ends, default=-np.inf) for ends in zip(*values, strict=True)) if values else (-9e9,) * 2
        )
        return float(max(first + lines.base_first, last + lines.base_last))

    assert lines.bound() == pytest.approx(best())
    for allowed in rng.normal(float(lines.bound()), 2.0, 6):
        is_out, is_in = lines.decided(float(allowed))
        assert not (is_out & must).any()
        assert not (is_in & must).any()
        for i in np.flatnonzero(~must):
            if is_out[i]:
                assert best(having=i) <= allowed + 1e-12
            if is_in[i]:
                assert best(lacking=i) <= allowed + 1e-12
            if most is None:  # then nothing is given away either
                assert is_out[i] == (best(having=i) <= allowed)
                assert is_in[i] == (best(lacking=i) <= allowed)


def test_a_line_is_raised_by_what_it_lies_above_the_worth() -> None:
    """Three uploads a third of the way on: below 0 at one end, above it at both, and one that must."""
    lines = BandLines(
        at_first=np.array([-3.0, 1.0, -2.0]),
        at_last=np.array([6.0, 4.0, 5.0]),
        must=np.array([False, False, True]),
        base_first=0.0,
        base_last=0.0,
        most_uploads=None,
    )
    assert lines.raised(np.array([0.0, 2.0, 0.5]), 1.0 / 3.0) == pytest.approx([2.0, 0.0, 0.0])
    assert lines.raised(np.array([-3.0, 1.0, -2.0]), 0.0) == pytest.approx([0.0, 0.0, 0.0])
    assert lines.raised(np.array([-1.0, 2.0, 0.5]), 1.0 / 3.0)[0] == pytest.approx(2.0)
