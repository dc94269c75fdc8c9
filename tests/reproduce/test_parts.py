"""Slopes, ratios and leads by hand."""

from __future__ import annotations

import math

import pytest

from fedwave.reproduce.parts import log_ratios, log_slopes, on, percent_below, slope
from fedwave.reproduce.seed_tables import Tables
from tests.reproduce.made_up_rows import SEEDS, rows


def test_a_slope_of_rounding_is_none() -> None:
    noise = [0.0, 3e-16, -2e-16]
    assert slope([1.0, 2.0, 3.0], [4.0 + one for one in noise]) == 0.0
    assert slope([1.0, 2.0, 3.0], [4.0, 4.0 + 1e-6, 4.0 + 2e-6]) == pytest.approx(1e-6)
    assert math.isnan(slope([1.0], [2.0]))
    assert slope([1.0, 3.0], [2.0, 1.0]) == pytest.approx(-0.5)  # two points are a line


def test_leads_and_ratios_are_of_seeds_that_have_both() -> None:
    own, other = {0: 1.0, 1: 3.0, 2: math.nan}, {0: 2.0, 1: 2.0, 2: 5.0, 9: 1.0}
    assert percent_below(own, other) == {0: 50.0, 1: -50.0}
    assert log_ratios(own, other) == pytest.approx({0: -math.log(2.0), 1: math.log(1.5)})
    assert log_ratios({0: 0.0}, {0: 1.0}) == {}
    assert on("fashion-mnist") == "on Fashion-MNIST"


def test_log_slopes_are_exponents_of_each_seed() -> None:
    every = [row for value in (1.0, 2.0, 8.0) for row in rows("A", value=value, delay_s=3.0 * value**0.4)]
    found = log_slopes(Tables({"fig-5": every}), "fig-5", "delay_s", [1.0, 2.0, 8.0], scheme="A")
    assert found == pytest.approx(dict.fromkeys(SEEDS, 0.4))
    every[0]["delay_s"] = 0.0  # has no logarithm
    assert set(log_slopes(Tables({"fig-5": every}), "fig-5", "delay_s", [1.0, 2.0, 8.0], scheme="A")) == {
        *range(1, 8)
    }
