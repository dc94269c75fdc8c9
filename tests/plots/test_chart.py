"""Means and intervals of charts by hand; pictures are written."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedwave.plots.chart import Chart, ChartPanel, Series, paired_series, plotted_rows, series_over_seeds
from fedwave.plots.draw_chart import _labels, draw_chart

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
    assert 48.0 < low < 50.0
    assert 52.0 < high < 54.0


def test_every_plotted_number_is_a_row_and_the_picture_is_drawn(tmp_path) -> None:
    lines = ChartPanel("curves", "x", "y", paired_series([1, 2], VALUES, {}), mark_x=1.5)
    first = {name: {seed: row[:1] for seed, row in own.items()} for name, own in VALUES.items()}
    bars = ChartPanel("bars", "J", "", paired_series([0], first, {}), kind="bars", has_log_y=True)
    chart = Chart("c", "title", "caption", (lines, bars))
    rows = plotted_rows(chart)
    assert len(rows) == 4 + 2
    assert (rows[0]["panel"], rows[0]["series"], rows[0]["x"], rows[0]["mean"]) == ("curves", "a", 1.0, 4.0)
    assert (rows[-1]["panel"], rows[-1]["series"], rows[-1]["seeds"]) == ("bars", "b", 3)
    assert draw_chart(chart, tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_a_logarithmic_axis_stand_apart() -> None:
    assert _labels([1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0]) == ["1", "5", "10", "20", "30", "", "50"]
    assert _labels([0.25, 1.0, 2.0]) == ["0.25", "1", "2"]
    assert _labels([]) == []


@pytest.mark.parametrize("kind", ["line", "bars"])
@pytest.mark.parametrize(("low", "high"), [(80.0, 90.0), (80.0, 300.0), (90.0, 3_000.0), (1.0, 1e6)])
def test_labels_of_a_logarithmic_axis_do_not_touch(monkeypatch, tmp_path, kind, low, high) -> None:
    kept = []
    monkeypatch.setattr(
        "fedwave.plots.draw_chart.save_figure", lambda figure, path: kept.append(figure) or path
    )
    ends = ((low, "a"), (high, "b"))
    series = tuple(Series(name, (1.0, 2.0), (end, end), (end, end), (end, end), 1) for end, name in ends)
    panel = ChartPanel("t", "x", "y", series, kind=kind, has_log_y=True)
    draw_chart(Chart("c", "C", "", (panel,) * 3, 3), tmp_path / "c.png")
    (figure,) = kept
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis if kind == "bars" else figure.axes[0].yaxis
    view = sorted(axis.get_view_interval())
    labels = [
        label
        for tick, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
        if view[0] <= tick <= view[1] and label.get_text()
    ]
    assert len(labels) >= 1
    boxes = [label.get_window_extent() for label in labels]
    for one, other in itertools.pairwise(boxes):
        assert not one.overlaps(other)
