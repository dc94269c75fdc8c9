"""Means and intervals of charts, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedwave.plots.chart import (
    MAX_POINTS,
    Chart,
    ChartPanel,
    nth_look,
    paired_series,
    plotted_rows,
    series_of_runs,
    series_over_seeds,
)
from fedwave.plots.style import COLOURS

VALUES = {
    "a": {0: [1.0, 4.0], 1: [3.0, 5.0], 2: [8.0, 9.0]},
    "b": {0: [2.0, 5.0], 1: [4.5, 5.0], 2: [9.0, 11.0]},
}


def half_width(values) -> float:
    return stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)


def test_a_series_has_the_mean_and_students_interval_of_its_seeds() -> None:
    one = series_over_seeds("a", [1, 2], list(VALUES["a"].values()))
    assert (one.x, one.mean, one.seeds) == ((1.0, 2.0), (4.0, 6.0), 3)
    assert one.high[1] - one.mean[1] == pytest.approx(half_width([4.0, 5.0, 9.0]))
    assert one.mean[1] - one.low[1] == pytest.approx(half_width([4.0, 5.0, 9.0]))


def test_one_seed_has_no_interval() -> None:
    one = series_over_seeds("a", [1], [[2.0]])
    assert one.low == one.mean == one.high == (2.0,)


def test_paired_intervals_leave_out_what_a_seed_has_in_common() -> None:
    first, second = paired_series([1, 2], VALUES, {})
    assert (first.mean, second.mean) == ((4.0, 6.0), (pytest.approx(31 / 6), 7.0))
    # At x = 1: each seed's two values minus their mean, plus the mean of all.
    a, b = np.array([1.0, 3.0, 8.0]), np.array([2.0, 4.5, 9.0])
    levelled = a - (a + b) / 2 + np.mean((a + b) / 2)
    assert first.high[0] - first.mean[0] == pytest.approx(math.sqrt(2) * half_width(levelled))
    # Two schemes: what is left is half their paired difference, so that both have the same interval.
    assert second.high[0] - second.mean[0] == pytest.approx(math.sqrt(2) * half_width((b - a) / 2))


def test_one_level_for_all_points_of_a_panel() -> None:
    first, _ = paired_series([1, 2], VALUES, {}, is_one_level=True)
    cube = np.array([[VALUES[name][seed] for seed in range(3)] for name in "ab"])
    levelled = cube[0, :, 0] - cube.mean(axis=(0, 2)) + cube.mean()
    assert first.high[0] - first.mean[0] == pytest.approx(math.sqrt(4 / 3) * half_width(levelled))


def test_logarithms_make_geometric_means() -> None:
    (one,) = paired_series([1], {"a": {0: [1.0], 1: [100.0]}}, {}, is_log=True)
    assert one.mean == pytest.approx((10.0,))
    assert one.high[0] * one.low[0] == pytest.approx(100.0)


def test_only_seeds_of_all_schemes_count() -> None:
    first, second = paired_series([1], {"a": {0: [1.0], 5: [9.0]}, "b": {0: [3.0]}}, {})
    assert (first.mean, first.seeds, second.mean) == ((1.0,), 1, (3.0,))
    assert paired_series([1], {"a": {0: [1.0]}, "b": {1: [3.0]}}, {}) == ()
    assert paired_series([1], {}, {}) == ()


def test_wide_intervals_do_not_flatten_the_curves() -> None:
    wide = series_over_seeds("a", [1, 2], [[0.0, 1.0], [100.0, 103.0]])
    low, high = ChartPanel("", "", "", (wide,)).y_range
    assert wide.mean == (50.0, 52.0)
    # The means with half of their range, 1, on each side, and 4 % of all that as a margin.
    assert (low, high) == pytest.approx((49.0 - 0.16, 53.0 + 0.16))


def curve(x: list[float], y: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(x), np.array(y)


def test_curves_with_different_x_are_averaged_over_the_range_they_share() -> None:
    one = series_of_runs("a", [curve([0.0, 2.0], [0.0, 2.0]), curve([1.0, 3.0], [3.0, 5.0])])
    assert one is not None
    assert one.x == (1.0, 2.0)
    assert one.mean == (2.0, 3.0)  # (1 + 3) / 2 and (2 + 4) / 2
    assert one.high[0] - one.mean[0] == pytest.approx(half_width([1.0, 3.0]))
    assert [(x.tolist(), y.tolist()) for x, y in one.runs] == [([0, 2], [0, 2]), ([1, 3], [3, 5])]


def test_curves_count_where_they_were_measured() -> None:
    seeds = [curve([1.0, 2.0, 3.0], [1.0, math.nan, 5.0]), curve([1.0, 2.0, 3.0], [3.0, math.nan, 9.0])]
    one = series_of_runs("a", [*seeds, curve([1.0], [math.nan])], colour="#000000")
    assert one is not None
    assert (one.x, one.mean, one.seeds, one.colour) == ((1.0, 3.0), (2.0, 7.0), 2, "#000000")
    assert series_of_runs("a", [curve([1.0], [math.nan])]) is None
    single = series_of_runs("a", seeds[:1])
    assert single is not None
    assert (single.mean, single.low, single.runs) == ((1.0, 5.0), (1.0, 5.0), ())


def test_a_mean_of_many_different_x_has_no_more_points_than_a_picture_shows() -> None:
    x = np.linspace(0.0, 1.0, 2 * MAX_POINTS)
    one = series_of_runs("a", [(x, x), (x + 1e-6, x)])
    assert one is not None
    assert len(one.x) == MAX_POINTS
    assert (one.x[0], one.x[-1]) == (1e-6, 1.0)
    assert one.mean == pytest.approx(np.array(one.x) - 0.5e-6)


def test_colours_are_used_up_before_lines_are_dashed() -> None:
    looks = [nth_look(index) for index in range(len(COLOURS) + 1)]
    assert [look["colour"] for look in looks] == [*COLOURS, COLOURS[0]]
    assert [look["is_dashed"] for look in looks] == [False] * len(COLOURS) + [True]


def test_every_plotted_number_is_a_row() -> None:
    lines = ChartPanel("curves", "x", "y", paired_series([1, 2], VALUES, {}), mark_x=1.5)
    first = {name: {seed: row[:1] for seed, row in own.items()} for name, own in VALUES.items()}
    bars = ChartPanel("bars", "J", "", paired_series([0], first, {}), kind="bars", has_log_y=True)
    rows = plotted_rows(Chart("c", "title", "caption", (lines, bars)))
    assert len(rows) == 4 + 2
    assert (rows[0]["panel"], rows[0]["series"], rows[0]["x"], rows[0]["mean"]) == ("curves", "a", 1.0, 4.0)
    assert (rows[-1]["panel"], rows[-1]["series"], rows[-1]["seeds"]) == ("bars", "b", 3)
