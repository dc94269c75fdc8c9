"""Curves as they are drawn: one line a setting, the mean of its seeds, and each seed faintly behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.plots.learning_curves import Curve, Panel, _mean, plot_panels
from fedwave.plots.style import COLOURS


def curve(x: list[float], y: list[float]) -> Curve:
    return Curve(np.array(x), np.array(y))


def test_accuracy_is_drawn_in_percent_and_loss_as_it_is() -> None:
    curves = {"a": [curve([1.0, 2.0], [0.25, 0.5])]}
    figure = plot_panels([Panel("x", "accuracy", curves, is_percentage=True), Panel("x", "loss", curves)])
    drawn = [axis.lines[0].get_ydata().tolist() for axis in figure.axes]
    assert drawn == [[25.0, 50.0], [0.25, 0.5]]


def test_curves_with_different_x_are_averaged_over_the_range_they_share() -> None:
    mean = _mean([curve([0.0, 2.0], [0.0, 2.0]), curve([1.0, 3.0], [3.0, 5.0])])
    assert mean.x.tolist() == [1.0, 2.0]
    assert mean.y.tolist() == [2.0, 3.0]  # (1 + 3) / 2 and (2 + 4) / 2


def test_of_several_seeds_the_mean_is_labelled_and_each_is_drawn_behind_it() -> None:
    seeds = [curve([1.0, 2.0, 3.0], [1.0, math.nan, 5.0]), curve([1.0, 2.0, 3.0], [3.0, math.nan, 9.0])]
    figure = plot_panels([Panel("rounds", "loss", {"a": seeds, "b": [curve([1.0], [2.0])]})])
    (axis,) = figure.axes
    lines = {line.get_label(): line for line in axis.lines}
    assert lines["a (mean of 2)"].get_xdata().tolist() == [1.0, 3.0]  # where it was measured
    assert lines["a (mean of 2)"].get_ydata().tolist() == [2.0, 7.0]
    assert lines["b"].get_ydata().tolist() == [2.0]
    faint = [line for line in axis.lines if line.get_alpha() is not None]
    assert [line.get_ydata().tolist() for line in faint] == [[1.0, 5.0], [3.0, 9.0]]
    assert {line.get_color() for line in faint} == {lines["a (mean of 2)"].get_color()} == {COLOURS[0]}
    assert lines["b"].get_color() == COLOURS[1]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["a (mean of 2)", "b"]


@pytest.mark.parametrize("has_log_x", [False, True])
def test_axes_are_labelled_and_logarithmic_where_asked(has_log_x: bool) -> None:
    panels = [Panel("seconds", f"y{i}", {"a": [curve([1.0], [1.0])]}, has_log_x=has_log_x) for i in range(3)]
    figure = plot_panels(panels, title="digits", num_columns=2)
    assert len(figure.axes) == 4  # two rows of two, the last one empty
    assert [axis.get_ylabel() for axis in figure.axes] == ["y0", "y1", "y2", ""]
    assert figure.axes[0].get_xlabel() == "seconds"
    assert figure.axes[0].get_xscale() == ("log" if has_log_x else "linear")
    assert figure._suptitle.get_text() == "digits"
