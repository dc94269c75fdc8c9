"""The best delay of a range: nothing on a fine grid of delays is better, and both ways find the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedwave.allocation.access.area_price import Priced, at_price, best_price
from fedwave.allocation.access.band import Band, slots
from fedwave.allocation.access.best_delay import _searched, best_delay, rise
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from tests.allocation.access.access_oracles import alike_problem, hurried_setting

SEEDS = range(20)
WAYS = {"newton": best_delay, "searched": _searched}


def value_of(found: Priced, delay: DelayPrice) -> float:
    return found.bound - delay.cost(found.moment.delay_s)


def values_on_a_grid(band: Band, must: np.ndarray, delay: DelayPrice, delays: np.ndarray) -> list[float]:
    """Return the least bound at each delay less its cost, where those that must upload can."""
    priced = [best_price(band.at(float(delay_s)), must, start=1.0) for delay_s in delays]
    return [value_of(one, delay) for one in priced if one is not None]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_saddle_of_a_set_is_its_best_delay(seed: int, way: str) -> None:
    """For those that must upload the priced value is concave: no delay of a fine grid is better."""
    problem, band, first_s, last_s, here_s, _ = hurried_setting(seed)
    delay = DelayPrice.of(problem)
    kept = band.only(band.at(first_s).can)
    must = np.ones(kept.size, dtype=bool)
    ends = DelayRange(first_s=first_s, last_s=last_s, guess_s=here_s, price=1.0)
    found = WAYS[way](kept, must, delay, ends, None)
    others = values_on_a_grid(kept, must, delay, np.linspace(first_s, last_s, 60))
    assert (found is None) == (not others)
    if found is not None:
        value = value_of(found, delay)
        assert first_s <= found.moment.delay_s <= last_s
        assert value >= max(others) - 1e-7 * (1 + abs(value))
        assert value <= max(others) + 0.05 * (1 + abs(value))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_ways_find_the_same_delay(seed: int) -> None:
    problem, band, first_s, last_s, here_s, _ = hurried_setting(seed)
    delay = DelayPrice.of(problem)
    kept = band.only(band.at(first_s).can)
    must = np.ones(kept.size, dtype=bool)
    ends = DelayRange(first_s=first_s, last_s=last_s, guess_s=here_s, price=1.0)
    quick, slow = (way(kept, must, delay, ends, None) for way in WAYS.values())
    assert (quick is None) == (slow is None)
    if quick is not None and slow is not None:
        assert value_of(quick, delay) == pytest.approx(value_of(slow, delay), rel=1e-9)
        assert quick.moment.delay_s == pytest.approx(slow.moment.delay_s, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rise_is_a_difference_of_values_at_one_price(seed: int) -> None:
    problem, band, _, _, here_s, price = hurried_setting(seed)
    delay, step = DelayPrice.of(problem), 1e-6 * here_s
    must = np.zeros(band.size, dtype=bool)
    found = best_price(band.at(here_s), must, start=price)
    assert found is not None
    sums = []
    for delay_s in (here_s - step, here_s + step):
        moment = band.at(delay_s)
        worth = moment.worth(moment.nats(found.price), found.price)[found.chosen].sum()
        sums.append(worth + found.price * moment.supply - delay.cost(delay_s))
    assert rise(found, delay) == pytest.approx((sums[1] - sums[0]) / (2 * step), rel=1e-4, abs=1e-5)


def test_who_cannot_all_upload_by_the_last_delay_has_none() -> None:
    problem, band, _, _, _, _ = hurried_setting(0)
    first_s = float(band.first_delay_s().max())
    ends = DelayRange(first_s=0.2 * first_s, last_s=0.9 * first_s, guess_s=0.5 * first_s, price=1.0)
    must = np.ones(band.size, dtype=bool)
    assert best_delay(band, must, DelayPrice.of(problem), ends, None) is None


@pytest.mark.parametrize("seed", range(40))
def test_slots_are_at_the_least_priced_value_of_all_prices(seed: int) -> None:
    """It bounds all delays of the range: no price on a grid gives less, each at the delay that it suits."""
    rng = np.random.default_rng([seed, 5])
    features = ["round", *(name for name in ("cap", "floor", "circuit", "energy") if rng.random() < 0.4)]
    problem = alike_problem(rng, "tdma", n=int(rng.integers(2, 20)), m=3, features=features)
    band, delay = slots(problem, np.arange(problem.num_devices)), DelayPrice.of(problem)
    band = band.only(band.most_nats >= band.least_nats)
    must, most = np.zeros(band.size, dtype=bool), None if seed % 3 else 2
    if seed % 4 == 1 and band.size:
        must[0] = True
    last_s = delay.deadline_s * float(rng.choice([1.0, 0.5]))
    first_s = last_s * float(rng.choice([1e-3, 0.4]))
    guess_s = float(rng.uniform(first_s, last_s))
    ends = DelayRange(first_s=first_s, last_s=last_s, guess_s=guess_s, price=1.0)
    found = best_delay(band, must, delay, ends, most)
    if found is None:
        assert must.any()
        assert float((band.load / band.most_nats)[must].sum()) > last_s * band.width_per_s
        return
    here_s = found.moment.delay_s
    assert first_s <= here_s <= last_s
    delays = np.linspace(first_s, last_s, 2001)
    costs = np.array([delay.cost(float(one)) for one in delays])

    def least(price: float) -> float:
        priced = at_price(band.at(here_s), price, must, most)
        return (
            priced.bound
            - price * priced.moment.supply
            + float((price * band.width_per_s * delays - costs).max())
        )

    value = value_of(found, delay)
    assert value <= min(least(price) for price in np.geomspace(1e-4, 1e3, 400)) + 2e-5 * (1.0 + abs(value))
    assert value >= least(found.price) - 2e-5 * (1.0 + abs(value))


def test_slots_need_few_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halving the range of delays alone takes 9.6 each, secants and tangents 3.9."""
    tried = []

    def counted(*given: Any) -> Priced:
        tried.append(1)
        return at_price(*given)

    monkeypatch.setattr("fedwave.allocation.access.best_delay.at_price", counted)
    for seed in range(40):
        test_slots_are_at_the_least_priced_value_of_all_prices(seed)
    assert len(tried) <= 5 * 40
