"""What the run tab draws of several seeds: the runs of each setting together, as pictures average them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedwave.errors import RunError
from fedwave.json_values import json_value
from fedwave.plots.chart import series_of_runs
from fedwave.runs.compare import FinishedRun, group_by_name
from fedwave.units import FloatArray

AXES = ("rounds", "cumulative_delay_s", "cumulative_energy_j")
CURVES = ("heldout_loss", "metric", "train_loss")


def seed_means(runs: Sequence[FinishedRun | None]) -> dict[str, Any]:
    """Return which runs belong together, and by axis and curve each group's mean with its 95 % interval.

    ``None`` stands for a run that cannot be read: places count. Without any other there are no groups, and
    one run that is given twice is a reason to average nothing.
    """
    known = [run for run in runs if run is not None]
    place = {id(run): k for k, run in enumerate(runs)}
    try:
        groups = group_by_name(known) if known else {}
    except RunError as error:
        return {"groups": [], "curves": {}, "reason": str(error)}
    return {
        "groups": [
            {"name": name, "runs": [place[id(run)] for run in group]} for name, group in groups.items()
        ],
        "curves": {
            axis: {curve: _means(list(groups.items()), axis, curve) for curve in CURVES} for axis in AXES
        },
        "reason": "",
    }


def _means(groups: Sequence[tuple[str, list[FinishedRun]]], axis: str, curve: str) -> list[dict[str, Any]]:
    found = []
    for at, (name, group) in enumerate(groups):
        usable = [run for run in group if run.num_rounds > 0 and (axis == "rounds" or run.has_cell)]
        series = series_of_runs(name, [(_x(run, axis), _y(run, curve)) for run in usable], colour="")
        if series is not None:
            kept = {name: json_value(getattr(series, name)) for name in ("x", "mean", "low", "high")}
            found.append({"group": at, "seeds": len(usable), **kept})
    return found


def _x(run: FinishedRun, axis: str) -> FloatArray:
    return run.curve("round") + 1.0 if axis == "rounds" else run.curve(axis)  # a row is true after its round


def _y(run: FinishedRun, curve: str) -> FloatArray:
    return run.heldout_metric if curve == "metric" else run.curve(curve)
