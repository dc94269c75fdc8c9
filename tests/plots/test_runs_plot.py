"""Runs as a picture: what is on which axis, and a file that is written or refused in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import fedwave
from fedwave.errors import RunError
from fedwave.plots.runs import plot_runs, run_panels
from tests.runs.written_runs import write_run


def test_without_a_cell_everything_is_drawn_against_rounds(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a1", "a", [0.2, math.nan, 0.4], seed=1),
        write_run(tmp_path / "a2", "a", [0.3, 0.5, 0.6], seed=2),
        write_run(tmp_path / "b", "b", [0.1], over_cell=True),  # one without a cell is enough
    ]
    panels = run_panels(runs)
    assert [(panel.x_label, panel.y_label, panel.is_percentage) for panel in panels] == [
        ("rounds", "loss of the computing devices", False),
        ("rounds", "held-out loss after adaptation", False),
        ("rounds", "held-out accuracy [%]", True),
    ]
    curves = panels[2].curves
    assert [(name, len(seeds)) for name, seeds in curves.items()] == [("a", 2), ("b", 1)]
    assert curves["a"][1].x.tolist() == [1.0, 2.0, 3.0]  # what holds after the first round stands at 1
    assert curves["a"][1].y.tolist() == [0.3, 0.5, 0.6]
    assert math.isnan(curves["a"][0].y[1])


def test_over_a_cell_seconds_and_joules_are_axes_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.2, 0.4], over_cell=True)
    panels = run_panels([run])
    assert [(panel.x_label, panel.y_label) for panel in panels] == [
        (x, y)
        for y in ("held-out loss after adaptation", "held-out accuracy [%]")
        for x in (
            "rounds",
            "time on the cell's clock [normalised]",
            "energy of all devices [normalised]",
        )
    ]
    assert [panel.curves["a"][0].x.tolist() for panel in panels[3:]] == [[1, 2], [10, 20], [100, 200]]
    assert not any(panel.has_log_x for panel in panels)


@pytest.mark.parametrize(("num_rounds", "is_wide"), [(8, False), (9, True)])
def test_costs_that_differ_by_more_than_eight_times_are_drawn_on_a_logarithmic_axis(
    tmp_path: Path, num_rounds: int, is_wide: bool
) -> None:
    short = write_run(tmp_path / "a", "a", [0.2], over_cell=True)
    long = write_run(tmp_path / "b", "b", [0.2] * num_rounds, over_cell=True)
    assert [panel.has_log_x for panel in run_panels([short, long])] == [False, is_wide, is_wide] * 2


def test_an_error_is_drawn_as_a_number(tmp_path: Path) -> None:
    panel = run_panels([write_run(tmp_path / "a", "a", [2.0], metric="mean_absolute_error")])[-1]
    assert (panel.y_label, panel.is_percentage) == ("held-out mean absolute error", False)
    assert panel.curves["a"][0].y.tolist() == [2.0]


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
