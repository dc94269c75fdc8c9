"""Runs as a picture: loss and metric against rounds and, over a cell, against seconds and joules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedwave.plots.learning_curves import Curve, Panel, plot_panels
from fedwave.plots.style import Picture
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name, read_run

WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis


def plot_runs(runs: Sequence[FinishedRun], path: Path | str) -> Path:
    """Draw the runs' curves to a file; runs of one name are averaged over their seeds."""
    return draw_runs(runs).save(path)


def draw_runs(runs: Sequence[FinishedRun]) -> Picture:
    """Return the runs' curves as a picture that a notebook shows; ``plot_runs`` writes it to a file."""
    panels = run_panels(runs)
    datasets = ", ".join(sorted({run.experiment.data.dataset for run in runs}))
    return Picture(plot_panels(panels, title=datasets, num_columns=3))


def draw_folder(path: Path) -> Picture:
    """Return the curves of the run in a folder; ``.plot()`` of a run calls it."""
    return draw_runs([read_run(path)])


def run_panels(runs: Sequence[FinishedRun]) -> list[Panel]:
    """Return the panels of the picture."""
    metric = common_metric(runs)
    loss, judged = "held-out loss after adaptation", f"held-out {metric.name.replace('_', ' ')}"
    judged += " [%]" if metric.is_share else ""
    measured = f"heldout_{metric.name}"
    if not all(run.has_cell for run in runs):
        return [
            _panel(runs, "round", "rounds", "train_loss", "loss of the computing devices"),
            _panel(runs, "round", "rounds", "heldout_loss", loss),
            _panel(runs, "round", "rounds", measured, judged, is_percentage=metric.is_share),
        ]
    cells = [run.experiment.cell for run in runs]
    is_normalised = all(cell is not None and cell.normalised for cell in cells)
    second, joule = ("normalised", "normalised") if is_normalised else ("s", "J")
    axes = [
        ("round", "rounds"),
        ("cumulative_delay_s", f"time on the cell's clock [{second}]"),
        ("cumulative_energy_j", f"energy of all devices [{joule}]"),
    ]
    return [
        *(_panel(runs, x_name, x_label, "heldout_loss", loss) for x_name, x_label in axes),
        *(
            _panel(runs, x_name, x_label, measured, judged, is_percentage=metric.is_share)
            for x_name, x_label in axes
        ),
    ]


def _panel(
    runs: Sequence[FinishedRun],
    x_name: str,
    x_label: str,
    y_name: str,
    y_label: str,
    *,
    is_percentage: bool = False,
) -> Panel:
    offset = 1 if x_name == "round" else 0  # a row holds what is true after its round
    curves = {
        name: [Curve(run.curve(x_name) + offset, run.curve(y_name)) for run in group]
        for name, group in group_by_name(runs).items()
    }
    ends = [curve.x[-1] for group in curves.values() for curve in group]
    is_wide = x_name != "round" and max(ends) > WIDE * min(ends)
    return Panel(x_label, y_label, curves, is_percentage=is_percentage, has_log_x=is_wide)


def round_curves(runs: Sequence[FinishedRun], y_name: str) -> list[Curve]:
    """Return each run's column against the number of rounds that were played."""
    return [Curve(run.curve("round") + 1, run.curve(y_name)) for run in runs]
