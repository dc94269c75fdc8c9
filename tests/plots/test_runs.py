"""Runs as a picture: what is on which axis, and a file that is written or refused in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import fedwave
from fedwave.errors import RunError
from fedwave.plots.runs import plot_runs, run_chart
from fedwave.plots.style import COLOURS
from tests.runs.written_runs import write_run


def test_without_a_cell_everything_is_drawn_against_rounds(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a1", "a", [0.2, math.nan, 0.4], seed=1),
        write_run(tmp_path / "a2", "a", [0.3, 0.5, 0.6], seed=2),
        write_run(tmp_path / "b", "b", [0.1], over_cell=True),  # one without a cell is enough
    ]
    panels = run_chart(runs).panels
    assert [(panel.x_label, panel.y_label) for panel in panels] == [
        ("rounds", "loss of the computing devices"),
        ("rounds", "held-out loss after adaptation"),
        ("rounds", "held-out accuracy [%]"),
    ]
    first, second = panels[2].series
    assert [(one.name, one.seeds, one.colour) for one in (first, second)] == [
        ("a", 2, COLOURS[0]),
        ("b", 1, COLOURS[1]),
    ]
    # What holds after the first round stands at 1; shares are drawn in per cent, and not where unmeasured.
    assert [(x.tolist(), y.tolist()) for x, y in first.runs] == [
        ([1, 3], [20, 40]),
        ([1, 2, 3], [30, 50, 60]),
    ]
    assert first.mean == pytest.approx((25.0, 40.0, 50.0))  # at 2 between 20 and 40, and 50
    assert panels[0].series[0].mean[0] == 1.0  # a loss is drawn as it is


def test_over_a_cell_seconds_and_joules_are_axes_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.2, 0.4], over_cell=True)
    panels = run_chart([run]).panels
    assert [(panel.x_label, panel.y_label) for panel in panels] == [
        (x, y)
        for y in ("held-out loss after adaptation", "held-out accuracy [%]")
        for x in (
            "rounds",
            "time on the cell's clock [normalised]",
            "energy of all devices [normalised]",
        )
    ]
    assert [panel.series[0].x for panel in panels[3:]] == [(1.0, 2.0), (10.0, 20.0), (100.0, 200.0)]
    assert not any(panel.has_log_x for panel in panels)


@pytest.mark.parametrize(("num_rounds", "is_wide"), [(8, False), (9, True)])
def test_costs_that_differ_by_more_than_eight_times_are_drawn_on_a_logarithmic_axis(
    tmp_path: Path, num_rounds: int, is_wide: bool
) -> None:
    short = write_run(tmp_path / "a", "a", [0.2], over_cell=True)
    long = write_run(tmp_path / "b", "b", [0.2] * num_rounds, over_cell=True)
    assert [panel.has_log_x for panel in run_chart([short, long]).panels] == [False, is_wide, is_wide] * 2


def test_an_error_is_drawn_as_a_number(tmp_path: Path) -> None:
    panel = run_chart([write_run(tmp_path / "a", "a", [2.0], metric="mean_absolute_error")]).panels[-1]
    assert (panel.y_label, panel.series[0].mean) == ("held-out mean absolute error", (2.0,))


@pytest.mark.parametrize("over_cell", [False, True])
def test_the_picture_is_written_or_refused_in_one_line(tmp_path: Path, over_cell: bool) -> None:
    runs = [
        write_run(tmp_path / name, name[0], values, over_cell=over_cell, seed=int(name[1]))
        for name, values in (("a1", [0.2, 0.4]), ("a2", [0.3, 0.6]), ("b1", [0.1, 0.2]))
    ]
    assert fedwave.plot_runs is plot_runs
    path = plot_runs(runs, str(tmp_path / "new" / "picture.png"))
    assert path == tmp_path / "new" / "picture.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RunError, match=r"it must be a file that ends in \.png, \.pdf, \.svg") as caught:
        plot_runs(runs, tmp_path / "picture.what")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("over_cell", [False, True])
def test_a_run_that_was_never_evaluated_has_a_picture_too(tmp_path: Path, over_cell: bool) -> None:
    run = write_run(tmp_path / "a", "a", [math.nan, math.nan], over_cell=over_cell)
    assert plot_runs([run], tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
