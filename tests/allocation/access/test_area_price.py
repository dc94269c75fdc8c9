"""The price of area at a delay: least of all prices, and a bound on everything that can be done."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedwave.allocation.access.area_price import at_price, best_price, choose
from fedwave.allocation.access.band import shared_band, slots
from tests.allocation.access.access_oracles import alike_problem, upload

SEEDS = range(12)


def test_choose_takes_the_best_where_there_is_room_for_few() -> None:
    worth = np.array([3.0, -1.0, 2.0, 5.0])
    must = np.array([False, True, False, False])
    assert choose(worth, must, None).tolist() == [True, True, True, True]
    assert choose(worth, must, 2).tolist() == [False, True, False, True]
    assert choose(worth, ~must & False, 2).tolist() == [True, False, False, True]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [None, 2])
def test_no_other_price_has_a_lower_bound(seed: int, most: int | None) -> None:
    rng = np.random.default_rng(seed)
    problem = alike_problem(rng, "shared-band", n=6, m=2, features=("cap", "floor") if seed % 2 else ())
    moment = shared_band(problem, np.arange(6)).at(float(rng.uniform(2, 8)))
    nobody = np.zeros(moment.can.size, dtype=bool)
    found = best_price(moment, nobody, start=1.0, most_uploads=most)
    assert found is not None
    others = [at_price(moment, price, nobody, most).bound for price in [0.0, *np.geomspace(1e-6, 1e3, 300)]]
    assert found.bound <= min(others) * (1 + 1e-8) + 1e-9
    assert found.bound >= max(0.0, min(others) - 0.05 * abs(min(others)))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_shares_are_worth_more_than_the_bound(seed: int) -> None:
    """Weak duality, against the definitions: every set of devices with random shares of the band."""
    rng = np.random.default_rng(seed)
    problem = alike_problem(
        rng, "shared-band", n=4, m=3, features=("amplifier", "outage") if seed % 2 else ()
    )
    delay = float(rng.uniform(2, 8))
    band = shared_band(problem, np.arange(4))
    found = best_price(band.at(delay), np.zeros(band.size, dtype=bool), start=1.0)
    assert found is not None
    total = problem.num_blocks * problem.bandwidth_hz
    for size in range(1, 5):
        for chosen in itertools.combinations(range(4), size):
            for shares in rng.dirichlet(np.ones(size), 50):
                joules = [upload(problem, i, s * total, delay) for i, s in zip(chosen, shares, strict=True)]
                value = sum(problem.contribution[list(chosen)]) - problem.energy_weight * sum(joules)
                assert value <= found.bound + 1e-9


def test_who_must_but_cannot_all_have_a_share_is_said() -> None:
    problem = alike_problem(np.random.default_rng(0), "shared-band", n=5, m=1)
    band = shared_band(problem, np.arange(5))
    first = float(band.first_delay_s().max())
    everybody = np.ones(band.size, dtype=bool)
    assert best_price(band.at(0.9 * first), everybody, start=1.0) is None
    assert best_price(band.at(100.0 * first), everybody, start=1.0) is not None


def test_slots_know_no_delay() -> None:
    problem = alike_problem(np.random.default_rng(1), "tdma", n=4, m=2, features=("circuit",))
    band = slots(problem, np.arange(4))
    early, late = band.at(1.0), band.at(9.0)
    assert (early.nats(0.3) == late.nats(0.3)).all()
    assert (early.slope(early.nats(0.3), 0.3) == 0.0).all()
