"""Newton's method on price and delay: its answer is a saddle by the definition, and it needs few looks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation.access.area_price import Priced, at_price, best_price
from fedwave.allocation.access.band import Band, shared_band
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from fedwave.allocation.access.saddle import _Walk, newton_saddle
from tests.allocation.access.access_oracles import FEATURES, alike_problem

SEEDS = range(60)


def some_range(seed: int) -> tuple[Band, DelayPrice, float, float, float]:
    """Return uploads with any features, a range of delays at which half of them can, and a guess."""
    for attempt in itertools.count():
        rng = np.random.default_rng([seed, 11, attempt])
        features = [name for name in FEATURES if rng.random() < 0.3 and name not in ("few", "deadline")]
        problem = alike_problem(rng, "shared-band", n=int(rng.integers(2, 30)), m=4, features=features)
        problem = replace(problem, contribution=np.abs(problem.contribution) * float(rng.uniform(1, 6)))
        everybody = np.arange(problem.num_devices)
        band = shared_band(problem, everybody)
        band = band.only((band.contribution > band.energy_price) & (band.most_nats >= band.least_nats))
        delay = DelayPrice.of(problem)
        most_s = delay.latest_s(float(band.contribution.sum()))
        firsts = np.sort(band.first_delay_s())
        if band.size == 0 or not firsts[band.size // 2] < 0.5 * most_s:
            continue
        first_s = max(float(firsts[band.size // 2]), 1e-3 * most_s)
        last_s = min(first_s * float(rng.uniform(1.2, 30.0)), most_s)
        guess_s = float(rng.choice([first_s, last_s, np.sqrt(first_s * last_s)]))
        return band, delay, first_s, last_s, guess_s
    raise AssertionError("there is always a next attempt")


def found_in(seed: int, price: float = 1.0) -> tuple[Priced | None, Band, DelayPrice, float, float]:
    band, delay, first_s, last_s, guess_s = some_range(seed)
    found = newton_saddle(
        band,
        np.zeros(band.size, dtype=bool),
        delay,
        DelayRange(first_s=first_s, last_s=last_s, guess_s=guess_s, price=price),
    )
    return found, band, delay, first_s, last_s


def priced_value(band: Band, delay: DelayPrice, price: float, delay_s: float) -> float:
    """Return G(mu, delta) by its definition."""
    nobody = np.zeros(band.size, dtype=bool)
    return at_price(band.at(delay_s), price, nobody, None).bound - delay.cost(delay_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_price_bounds_less_and_no_delay_nearby_is_better(seed: int) -> None:
    found, band, delay, first_s, last_s = found_in(seed)
    if found is None:
        return
    price, here_s = found.price, found.moment.delay_s
    value = priced_value(band, delay, price, here_s)
    assert first_s <= here_s <= last_s
    for factor in (0.3, 0.9, 0.999, 1.001, 1.1, 3.0):
        assert priced_value(band, delay, price * factor, here_s) >= value - 1e-9 * (1.0 + abs(value))
    step = 1e-6 * here_s
    before, after = (priced_value(band, delay, price, here_s + sign * step) for sign in (-1, 1))
    slopes = sorted(((value - before) / step, (after - value) / step))
    near = 1e-4 * (price * band.width_per_s + delay.slope(here_s))
    # Level; or, where somebody is indifferent, level for a share of it; or an end of the range is best.
    assert slopes[0] <= near or here_s == last_s
    assert slopes[1] >= -near or here_s == first_s


def test_few_looks_find_most_saddles_of_a_narrow_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the search: the best price in the middle is known. best_delay.py searches for the others."""
    looks = []
    look = _Walk.look

    def counted(walk: _Walk) -> object:
        looks.append(1)
        return look(walk)

    monkeypatch.setattr(_Walk, "look", counted)
    failed = 0
    for seed in SEEDS:
        band, delay, first_s, _, _ = some_range(seed)
        last_s = 1.1 * first_s
        nobody, middle_s = np.zeros(band.size, dtype=bool), float(np.sqrt(first_s * last_s))
        known = best_price(band.at(middle_s), nobody, start=1.0)
        assert known is not None
        if known.price > 0.0:
            ends = DelayRange(first_s=first_s, last_s=last_s, guess_s=middle_s, price=known.price)
            failed += newton_saddle(band, nobody, delay, ends) is None
    assert failed <= 12
    assert len(looks) <= 8 * len(SEEDS)


@pytest.mark.parametrize("factor", [0.05, 0.5, 2.0, 20.0])
def test_a_wrong_price_to_begin_with_leads_to_the_same_saddle_of_a_set(factor: float) -> None:
    same = 0
    for seed in SEEDS:
        band, delay, first_s, last_s, _ = some_range(seed)
        band = band.only(band.first_delay_s() < 0.9 * first_s)
        must = np.ones(band.size, dtype=bool)
        middle_s = float(np.sqrt(first_s * last_s))
        ends = DelayRange(first_s=first_s, last_s=last_s, guess_s=middle_s, price=1.0)
        right = newton_saddle(band, must, delay, ends)
        if right is None:
            continue
        found = newton_saddle(band, must, delay, replace(ends, price=factor * right.price))
        if found is not None:
            value, other = (one.bound - delay.cost(one.moment.delay_s) for one in (right, found))
            assert found.moment.delay_s == pytest.approx(right.moment.delay_s, rel=1e-6)
            assert other == pytest.approx(value, rel=1e-9, abs=1e-9)
            same += 1
    assert same >= 25


def test_at_no_price_there_is_nothing_to_take_logarithms_of() -> None:
    assert found_in(0, 0.0)[0] is None
