"""A chart as a picture: lines, bands, seeds, bars, legends and labels are those of the chart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedwave.plots.chart import Chart, ChartPanel, Series, series_of_runs, series_over_seeds
from fedwave.plots.draw_chart import _labels, draw_chart
from fedwave.plots.style import COLOURS

A = series_over_seeds("a", [1, 2], [[1.0, 4.0], [3.0, 5.0]], colour=COLOURS[0])
B = series_over_seeds("b", [1, 2], [[2.0, 5.0], [4.0, 5.0]], colour=COLOURS[1])


def drawn(*panels: ChartPanel, title: str | None = None, num_columns: int = 3):
    return draw_chart(Chart("c", "C", "", panels, num_columns), title=title).figure


def legend(figure) -> list[str]:
    return [text.get_text() for own in figure.legends for text in own.get_texts()]


def test_a_line_has_its_band_and_a_mark_where_asked() -> None:
    (axis,) = drawn(ChartPanel("t", "x", "y", (A, B), mark_x=1.5)).axes
    lines = {line.get_color(): line for line in axis.lines}
    assert lines[COLOURS[0]].get_ydata().tolist() == [2.0, 4.5]
    assert lines["#888888"].get_xdata() == [1.5, 1.5]
    assert len(axis.collections) == 2
    low, high = axis.get_ylim()
    assert low < 2.0 < 5.0 < high < 2.0 + 3 * 3.0  # the means, not all of their wide intervals


def test_of_several_runs_each_is_drawn_faintly_behind_the_mean() -> None:
    x = np.array([1.0, 3.0])
    runs = series_of_runs("a", [(x, np.array([1.0, 5.0])), (x, np.array([3.0, 90.0]))], colour=COLOURS[0])
    assert runs is not None
    figure = drawn(ChartPanel("", "rounds", "loss", (runs, B)))
    (axis,) = figure.axes
    faint = [line for line in axis.lines if line.get_alpha() is not None]
    assert [line.get_ydata().tolist() for line in faint] == [[1.0, 5.0], [3.0, 90.0]]
    assert {line.get_color() for line in faint} == {COLOURS[0]}
    assert len(axis.collections) == 1  # only the other has a band
    assert axis.get_ylim()[1] > 90.0  # nothing of a run is cut
    assert legend(figure) == ["a (mean of 2)", "b"]


def test_bars_are_named_on_their_axis_and_need_no_legend() -> None:
    first = [series_over_seeds(name, [0], [[1.0], [3.0]], is_dashed=True) for name in ("a", "b")]
    figure = drawn(ChartPanel("t", "J", "", tuple(first), kind="bars"))
    (axis,) = figure.axes
    assert [bar.get_width() for bar in axis.patches] == [2.0, 2.0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    assert axis.get_xlim()[0] == 0.0
    assert axis.patches[0].get_hatch() == "///"  # dashed
    assert legend(figure) == []


def test_a_logarithmic_axis_has_dots_as_it_has_no_zero_for_bars() -> None:
    series = tuple(
        series_over_seeds(name, [0], [[10.0], [30.0]]) for name in ("a", "b = a longer name than fits")
    )
    for panel in (
        ChartPanel("t", "s", "", series, kind="bars", has_log_y=True),
        ChartPanel("t", "points", "", series, kind="dots", mark_y=0.0),
    ):
        (axis,) = drawn(panel).axes
        assert not axis.patches
        dots = [line for line in axis.lines if line.get_marker() == "o"]
        assert [line.get_xdata().tolist() for line in dots] == [[20.0], [20.0]]
        assert axis.get_yticklabels()[1].get_text() == "b = a longer name than\nfits"
    marks = [line for line in axis.lines if line.get_color() == "#888888"]
    assert [line.get_xdata() for line in marks] == [[0.0, 0.0]]
    assert axis.get_xlim()[0] < 0.0


def test_a_legend_shows_lines_where_there_are_any() -> None:
    figure = drawn(ChartPanel("", "", "", (A, B)), ChartPanel("", "J", "", (A, B), kind="bars"))
    assert [type(handle).__name__ for handle in figure.legends[0].legend_handles] == ["Line2D", "Line2D"]


def test_a_mark_across_is_a_line() -> None:
    (axis,) = drawn(ChartPanel("t", "x", "y", (A, B), mark_y=0.0)).axes
    assert [line.get_ydata() for line in axis.lines if line.get_color() == "#888888"] == [[0.0, 0.0]]


def test_a_single_curve_is_named_under_a_title_alone() -> None:
    assert legend(drawn(ChartPanel("t", "x", "y", (A,)))) == []
    assert legend(drawn(ChartPanel("t", "x", "y", (A,)), title="digits")) == ["a"]


@pytest.mark.parametrize("has_log_x", [False, True])
def test_axes_are_labelled_and_logarithmic_where_asked(has_log_x: bool) -> None:
    panels = [ChartPanel("", "seconds", f"y{i}", (A,), has_log_x=has_log_x) for i in range(3)]
    figure = drawn(*panels, title="digits", num_columns=2)
    assert [axis.get_visible() for axis in figure.axes] == [True, True, True, False]  # two rows of two
    assert [axis.get_ylabel() for axis in figure.axes] == ["y0", "y1", "y2", ""]
    assert figure.axes[0].get_xlabel() == "seconds"
    assert figure.axes[0].get_xscale() == ("log" if has_log_x else "linear")
    assert figure._suptitle.get_text() == "digits"


def test_the_picture_is_written(tmp_path) -> None:
    picture = draw_chart(Chart("c", "title", "caption", (ChartPanel("t", "x", "y", (A, B)),)))
    assert picture.save(tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_a_logarithmic_axis_stand_apart() -> None:
    assert _labels([1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0]) == ["1", "5", "10", "20", "30", "", "50"]
    assert _labels([0.25, 1.0, 2.0]) == ["0.25", "1", "2"]
    rates = [0.0003, 0.0005, 0.001, 0.002, 0.003, 0.006, 0.012, 0.024]
    assert _labels(rates) == ["0.0003", "", "0.001", "", "0.003", "0.006", "0.012", "0.024"]  # both ends
    assert _labels([3.0]) == ["3"]
    assert _labels([]) == []


@pytest.mark.parametrize("kind", ["line", "bars"])
@pytest.mark.parametrize(("low", "high"), [(80.0, 90.0), (80.0, 300.0), (90.0, 3_000.0), (1.0, 1e6)])
def test_labels_of_a_logarithmic_axis_do_not_touch(kind, low, high) -> None:
    ends = ((low, "a"), (high, "b"))
    series = tuple(Series(name, (1.0, 2.0), (end, end), (end, end), (end, end), 1) for end, name in ends)
    panel = ChartPanel("t", "x", "y", series, kind=kind, has_log_y=True)
    figure = draw_chart(Chart("c", "C", "", (panel,) * 3, 3)).figure
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
