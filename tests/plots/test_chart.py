"""Means and intervals of charts, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedwave.plots.chart import (
    MAX_POINTS,
    Chart,
    ChartPanel,
    Series,
    looks_of,
    merged,
    paired_series,
    plotted_rows,
    series_of_runs,
    series_over_seeds,
)
from fedwave.plots.style import COLOURS, SCHEME_COLOURS

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


def test_a_paired_interval_is_that_of_the_difference_to_the_reference() -> None:
    first, second = paired_series([1, 2], VALUES, {})
    assert (first.mean, second.mean) == ((4.0, 6.0), (pytest.approx(31 / 6), 7.0))
    assert first.low == first.mean == first.high  # the reference, by default the first
    a, b = np.array([1.0, 3.0, 8.0]), np.array([2.0, 4.5, 9.0])
    assert second.high[0] - second.mean[0] == pytest.approx(half_width(b - a))
    other, reference = paired_series([1, 2], VALUES, {}, reference="b")
    assert reference.low == reference.high
    assert other.mean[0] - other.low[0] == pytest.approx(half_width(a - b))


def test_no_curve_widens_the_interval_of_another() -> None:
    wild = {**VALUES, "c": {0: [0.0, 900.0], 1: [500.0, -3.0], 2: [-70.0, 1.0]}}
    assert paired_series([1, 2], wild, {})[1] == paired_series([1, 2], VALUES, {})[1]


def test_logarithms_make_geometric_means_and_intervals_of_ratios_above_zero() -> None:
    given = {"a": {0: [1.0], 1: [100.0]}, "b": {0: [0.5], 1: [0.01]}}
    first, second = paired_series([1], given, {}, is_log=True)
    assert first.mean == pytest.approx((10.0,))
    assert second.mean == pytest.approx((math.sqrt(0.005),))
    half = half_width([math.log(0.5), math.log(0.0001)])
    assert second.low[0] == pytest.approx(math.sqrt(0.005) * math.exp(-half))
    assert second.low[0] > 0.0


def test_curves_that_coincide_everywhere_share_a_name() -> None:
    a, b, c = (Series(name, (1.0, 2.0), (3.0, 4.0), (3.0, 4.0), (3.0, 4.0)) for name in "abc")
    other = replace(b, mean=(3.0, 4.5))
    alone = merged(Chart("", "", "", (ChartPanel("", "", "", (a, b, c)),)))
    assert [one.name for one in alone.panels[0].series] == ["a = b = c"]
    both = (ChartPanel("", "", "", (a, b, c)), ChartPanel("", "", "", (a, other, c)))
    assert [one.name for one in merged(Chart("", "", "", both)).panels[1].series] == ["a = c", "b"]
    missing = (ChartPanel("", "", "", (a, b)), ChartPanel("", "", "", (a,)))
    assert [one.name for one in merged(Chart("", "", "", missing)).panels[0].series] == ["a", "b"]


def test_only_seeds_of_all_schemes_count() -> None:
    first, second = paired_series([1], {"a": {0: [1.0], 5: [9.0]}, "b": {0: [3.0]}}, {})
    assert (first.mean, first.seeds, second.mean) == ((1.0,), 1, (3.0,))
    assert paired_series([1], {"a": {0: [1.0]}, "b": {1: [3.0]}}, {}) == ()
    assert paired_series([1], {}, {}) == ()


def test_wide_intervals_do_not_flatten_the_curves() -> None:
    wide = series_over_seeds("a", [1, 2], [[0.0, 1.0], [100.0, 103.0]])
    low, high = ChartPanel("", "", "", (wide,)).y_range
    assert wide.mean == (50.0, 52.0)
    # The means with their range, 2, on each side, and 4 % of all that as a margin.
    assert (low, high) == pytest.approx((48.0 - 0.24, 54.0 + 0.24))


def test_the_lines_of_dots_are_never_cut_off() -> None:
    dots = [
        Series(name, (0.0,), (mean,), (mean - 30.0,), (mean + 40.0,))
        for name, mean in (("a", 50.0), ("b", 52.0))
    ]
    low, high = ChartPanel("", "", "", tuple(dots), kind="dots").y_range
    assert (low, high) == pytest.approx((20.0 - 0.04 * 72.0, 92.0 + 0.04 * 72.0))


def test_an_axis_does_not_make_a_cliff_of_a_thousandth() -> None:
    flat = Series("a", (1.0, 2.0), (1000.0, 1001.0), (1000.0, 1001.0), (1000.0, 1001.0))
    low, high = ChartPanel("", "", "", (flat,)).y_range
    assert (high - low) / 1.08 == pytest.approx(100.1)  # a tenth of the values, and the margins
    assert (low + high) / 2 == pytest.approx(1000.5)
    constant = replace(flat, mean=(5.0, 5.0), low=(5.0, 5.0), high=(5.0, 5.0))
    assert ChartPanel("", "", "", (constant,)).y_range == pytest.approx((4.73, 5.27))
    nothing = replace(flat, mean=(0.0, 0.0), low=(0.0, 0.0), high=(0.0, 0.0))
    assert ChartPanel("", "", "", (nothing,)).y_range is None


def test_a_mark_across_is_in_sight() -> None:
    one = Series("a", (1.0, 2.0), (5.0, 6.0), (5.0, 6.0), (5.0, 6.0))
    low, _ = ChartPanel("", "", "", (one,), mark_y=0.0).y_range
    assert low == pytest.approx(-0.24)


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


def test_a_scheme_has_its_colour_wherever_it_stands_and_others_have_free_ones() -> None:
    assert looks_of(["URAL (optimal)"])["URAL (optimal)"] == {"colour": "#009E73", "is_dashed": False}
    looks = looks_of(["mine", "URAL (optimal)", "NUFM"])
    assert looks["URAL (optimal)"]["colour"] == "#009E73"
    assert looks["mine"]["colour"] == COLOURS[0] != looks["NUFM"]["colour"] == SCHEME_COLOURS["NUFM"]
    assert len(set(SCHEME_COLOURS.values())) == len(SCHEME_COLOURS)


def test_colours_are_used_up_before_lines_are_dashed() -> None:
    names = [f"run {index}" for index in range(len(COLOURS) + 1)]
    looks = [looks_of(names)[name] for name in names]
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
