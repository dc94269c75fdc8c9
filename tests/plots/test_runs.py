"""Runs as a picture: what is on which axis, and a file that is written or refused in one line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import fedwave
from fedwave.errors import ConfigError, RunError
from fedwave.plots.runs import draw_runs, plot_runs, run_chart
from fedwave.plots.style import COLOURS
from fedwave.runs.compare import FinishedRun
from tests.runs.written_runs import write_run


def test_without_a_cell_everything_is_drawn_against_rounds(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a1", "a", [0.2, math.nan, 0.4], seed=1),
        write_run(tmp_path / "a2", "a", [0.3, 0.5, 0.6], seed=2),
        write_run(tmp_path / "b", "b", [0.1], over_cell=True),  # one without a cell is enough
    ]
    panels = run_chart(runs).panels
    assert [(panel.x_label, panel.y_label) for panel in panels] == [
        ("rounds", "held-out loss after adaptation"),  # training losses of two schemes are not comparable
        ("rounds", "held-out accuracy [%]"),
    ]
    first, second = panels[1].series
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
    training, loss, _ = run_chart(runs[:2]).panels
    assert training.y_label == "loss of the computing devices"
    assert training.series[0].mean[0] == 1.0  # a loss is drawn as it is
    assert loss.series[0].mean[0] == 2.0


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


def seeds(tmp_path: Path, count: int, *, over_cell: bool = True) -> list[FinishedRun]:
    """Return runs of two schemes, "b" better by five points in every seed and a sixth one more."""
    return [
        write_run(
            tmp_path / f"{name}{seed}",
            name,
            [0.1, 0.2 + 0.02 * seed + lead + (0.01 if seed == 5 and lead else 0.0), 0.5 + lead],
            over_cell=over_cell,
            seed=seed,
        )
        for name, lead in (("a", 0.0), ("b", 0.05))
        for seed in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "bands", "faint"), [(5, None, 5), (6, None, 0), (3, True, 0), (6, False, 6)]
)
def test_beyond_five_seeds_a_band_stands_for_the_threads(
    tmp_path: Path, count: int, bands: bool | None, faint: int
) -> None:
    picture = draw_runs(seeds(tmp_path, count), by="rounds", metric="accuracy", bands=bands)
    (axis,) = picture.figure.axes
    assert sum(line.get_alpha() is not None for line in axis.lines) == 2 * faint
    assert bool(axis.collections) == (faint == 0)
    (legend,) = picture.figure.legends
    shown = "faint lines: single seeds." if faint else "bands: 95 % intervals."
    assert legend.get_title().get_text().replace("\n", " ").endswith(shown)
    assert f"means of {count} seeds" in legend.get_title().get_text().replace("\n", " ")


@pytest.mark.parametrize(
    ("by", "metric", "axes"),
    [
        ("joules", "accuracy", [("energy of all devices [normalised]", "held-out accuracy [%]")]),
        ("rounds", "loss", [("rounds", "held-out loss after adaptation")]),
        ("rounds", None, [("rounds", "held-out loss after adaptation"), ("rounds", "held-out accuracy [%]")]),
    ],
)
def test_one_pair_of_axes_can_be_chosen(
    tmp_path: Path, by: str, metric: str | None, axes: list[tuple[str, str]]
) -> None:
    panels = run_chart(seeds(tmp_path, 2), by=by, metric=metric).panels
    assert [(panel.x_label, panel.y_label) for panel in panels] == axes


@pytest.mark.parametrize(("width", "inches"), [("column", 3.5), ("page", 7.16), (5.0, 5.0)])
def test_a_picture_for_a_paper_has_its_width_small_type_and_no_heading(
    tmp_path: Path, width: str | float, inches: float
) -> None:
    figure = draw_runs(seeds(tmp_path, 2), width=width, style="paper").figure
    assert figure.get_figwidth() == pytest.approx(inches)
    assert figure._suptitle is None
    assert {axis.xaxis.label.get_fontsize() for axis in figure.axes} == {8.5 * 8 / 9}
    figure.draw_without_rendering()
    edges = [axis.get_tightbbox().x1 / figure.dpi for axis in figure.axes]
    assert max(edges) <= inches + 0.02  # nothing is cut off


def test_a_slide_has_one_panel_large_type_and_a_message(tmp_path: Path) -> None:
    figure = draw_runs(seeds(tmp_path, 6), style="slides").figure
    (axis,) = figure.axes
    assert axis.get_xlabel() == "time on the cell's clock [normalised]"
    assert axis.xaxis.label.get_fontsize() == 17.0
    heading = figure._suptitle.get_text().replace("\n", " ")
    assert heading == "b and a cannot be told apart: 1.0 × (1.0–1.0) the seconds to 50% (6 seeds)"
    own = draw_runs(seeds(tmp_path / "own", 1), style="slides", title="Mine").figure
    assert own._suptitle.get_text() == "Mine"
    alone = draw_runs(seeds(tmp_path / "alone", 1)[:1]).figure
    assert alone._suptitle.get_text() == "digits"  # nothing to compare with


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"by": "second"}, r'runs are drawn by "second" never\. Did you mean "seconds"\?'),
        ({"metric": "acuracy"}, r'no run was measured by "acuracy"\. Did you mean "accuracy"\?'),
        ({"style": "paperr"}, r'there is no style "paperr"\. Did you mean "paper"\?'),
        ({"width": "wide"}, 'width must be "column", "page" or inches above 0'),
        ({"width": -1.0}, "width must be"),
        ({"baseline": "c"}, 'no run is called "c"'),
    ],
)
def test_what_cannot_be_drawn_is_one_line(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        draw_runs(seeds(tmp_path, 2), **options)


def test_seconds_are_drawn_over_a_cell_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='runs are drawn by "seconds" over a cell alone'):
        draw_runs(seeds(tmp_path, 1, over_cell=False), by="seconds")


def test_a_scheme_whose_seeds_share_no_range_keeps_its_single_seeds(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"a{seed}", "a", [0.2, 0.3], over_cell=True, seed=seed) for seed in range(7)]
    far = [write_run(tmp_path / f"b{seed}", "b", [0.2, 0.3], over_cell=True, seed=seed) for seed in range(7)]
    for index, run in enumerate(far):  # each begins where the one before has ended
        run.columns["cumulative_delay_s"] += 20.0 * index
    axes = draw_runs([*runs, *far], by="seconds", metric="accuracy").figure.axes[0]
    drawn = [line.get_xdata().tolist() for line in axes.lines if len(line.get_xdata()) > 1]
    assert [[10.0 + 20.0 * index, 20.0 + 20.0 * index] for index in range(7)] == drawn[1:]
    (legend,) = axes.figure.legends
    shown = legend.get_title().get_text().replace("\n", " ")
    assert shown.endswith("bands: 95 % intervals; faint lines: single seeds.")
