"""The picture of what an accuracy cost: bars, dots and ratios are those of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.plots.costs import draw_costs, plot_costs
from fedwave.runs.compare import FinishedRun
from tests.experiments.cell_tables import experiment
from tests.runs.paid_runs import OURS, THEIRS, paid_runs


def test_the_picture_has_a_bar_for_each_median_and_a_dot_for_each_seed() -> None:
    figure = draw_costs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)]).figure
    left, middle, right = figure.axes
    assert [bar.get_width() for bar in middle.patches] == pytest.approx([1.5, 9.0])
    assert [bar.get_width() for bar in right.patches] == pytest.approx([4.5, 4.5])
    dots = [line.get_xdata() for line in middle.lines if line.get_marker() == "o"]
    assert [sorted(values) for values in dots] == [[1.0, 1.0, 2.0, 8.0], [1.0, 2.0, 16.0, 32.0]]
    assert middle.get_title() == "time until 80%"
    assert [label.get_text() for label in middle.get_yticklabels()] == ["a", "b"]
    assert "4.0 ×" in middle.texts[1].get_text()
    assert "×" not in middle.texts[0].get_text()
    assert figure.get_suptitle() == ""
    assert left.lines[-1].get_ydata()[0] == pytest.approx(80.0)  # the dotted target


def test_a_heading_and_more_settings_find_their_room() -> None:
    runs = [run for name in "abcdef" for run in paid_runs(name, OURS)]
    figure = draw_costs(runs, title=f"what it costs: {'no cut ' * 12}5 $").figure
    assert figure.get_suptitle() == f"what it costs: {'no cut ' * 12}5 \\$"
    assert figure.get_size_inches()[1] == pytest.approx(4.5)


def test_who_does_not_reach_the_target_is_said() -> None:
    slow = paid_runs("b", THEIRS)
    slow[0].columns["heldout_accuracy"][:] = 0.1
    figure = draw_costs([*paid_runs("a", OURS), *slow], target=0.8).figure
    assert "3 of 4 seeds" in figure.axes[1].texts[1].get_text()
    nobody = draw_costs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)], target=0.99).figure
    assert [text.get_text() for text in nobody.axes[1].texts] == ["not reached by 4 seeds"] * 2


def test_the_picture_is_written_and_needs_a_cell(tmp_path: Path) -> None:
    assert plot_costs(paid_runs("a", OURS), tmp_path / "costs.png").stat().st_size > 1000
    bare = paid_runs("a", OURS)[0]
    without = FinishedRun(
        bare.path, experiment(name="a"), {key: bare.columns[key] for key in ("round", "heldout_accuracy")}
    )
    with pytest.raises(RunError, match="counted over a cell only"):
        draw_costs([without])
