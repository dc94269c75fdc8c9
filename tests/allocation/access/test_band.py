"""Worths of shares of a band and their slopes in price and delay, by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation.access.band import shared_band
from tests.allocation.access.access_oracles import alike_problem, upload


@pytest.mark.parametrize("seed", range(6))
def test_worth_is_what_the_definitions_say_and_no_share_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = alike_problem(rng, "shared-band", n=3, m=2, features=("amplifier", "cap"))
    band, delay, price = shared_band(problem, np.arange(3)), 4.0, 0.2
    moment = band.at(delay)
    nats = moment.nats(price)
    worth = moment.worth(nats, price)
    unit = problem.nat_delay_s * problem.bandwidth_hz  # of area: the model's nats
    for i in np.flatnonzero(moment.can):
        area = unit / nats[i]
        joules = upload(problem, int(i), area / delay, delay)
        expected = problem.contribution[i] - problem.energy_weight * joules - price * area / unit
        assert worth[i] == pytest.approx(expected, abs=1e-9)
        for other in area * np.geomspace(0.05, 20, 200):
            joules = upload(problem, int(i), other / delay, delay)
            value = problem.contribution[i] - problem.energy_weight * joules - price * other / unit
            assert value <= worth[i] + 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_worth_is_concave_in_the_delay_with_the_slope_given(seed: int) -> None:
    problem = alike_problem(np.random.default_rng(seed), "shared-band", n=5, m=2)
    band, price = shared_band(problem, np.arange(5)), 1.5

    def worth(delay: float) -> np.ndarray:
        moment = band.at(delay)
        return moment.worth(moment.nats(price), price)

    first = float(band.first_delay_s().max())
    moment = band.at(1.5 * first)
    slope = moment.slope(moment.nats(price), price)
    step = 1e-5 * first
    assert_allclose(slope, (worth(1.5 * first + step) - worth(1.5 * first - step)) / (2 * step), atol=1e-6)
    moment = band.at(1.05 * first)
    assert moment.slope(moment.nats(1e3), 1e3).max() > 0.0  # so dear that peak powers bind
    for delay in first * np.array([1.05, 1.2, 2.0, 5.0, 20.0]):
        assert (worth(delay) <= worth(1.5 * first) + slope * (delay - 1.5 * first) + 1e-9).all()


def test_from_its_first_delay_on_an_upload_is_possible() -> None:
    problem = alike_problem(np.random.default_rng(3), "shared-band", n=6, m=2, features=("outage",))
    band = shared_band(problem, np.arange(6))
    for i, first in enumerate(band.first_delay_s()):
        assert band.at(first * (1 + 1e-6)).can[i]
        assert not band.at(first * (1 - 1e-6)).can[i]
