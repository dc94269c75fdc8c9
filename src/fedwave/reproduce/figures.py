"""The figures of a whole run, from the columns of its rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fedwave.units import FloatArray

ROUND_OF_THE_PAPER = 19  # Fig. 2 and 3 are read there: "in round 19"

# Means over the rounds: the figure's name, and its column in rounds.csv.
MEANS = {
    "energy_j": "energy_j",
    "delay_s": "delay_s",
    "compute_energy_j": "compute_energy_j",
    "upload_energy_j": "upload_energy_j",
    "received": "num_received",
    "objective": "objective",
    "contribution": "contribution",
    "iterations": "iterations",
    "share_below_turning_point": "share_below_turning_point",
    "gradient_norm": "gradient_norm_mean",
}


# All columns of rounds.csv that figures are made of.
COLUMNS = (
    "heldout_loss",
    "heldout_accuracy",
    "heldout_accuracy_pooled",
    "train_loss",
    *(name for name in MEANS.values() if name != "iterations"),  # which is the planner's
)


def figures_of(columns: Mapping[str, FloatArray], *, is_timed: bool) -> dict[str, float]:
    """Return accuracy and loss at the end and in the paper's round, and means; NaN where there is none.

    ``columns`` have a value for each round, NaN where nothing was measured. Rounds that were remembered from
    another run say nothing about time: such a run is not timed.
    """
    last = len(columns["heldout_loss"])
    falls = columns.get("falls")
    return {
        "accuracy": _after(columns, "heldout_accuracy", last),
        "accuracy_pooled": _after(columns, "heldout_accuracy_pooled", last),
        "loss": _after(columns, "heldout_loss", last),
        "loss_19": _after(columns, "heldout_loss", ROUND_OF_THE_PAPER),
        "train_loss_19": _after(columns, "train_loss", ROUND_OF_THE_PAPER),
        **{name: _mean(columns, column) for name, column in MEANS.items()},
        "falls": math.nan if falls is None else float(np.nansum(falls)),
        "cpu_time_s": float(np.median(columns["cpu_time_s"])) if is_timed else math.nan,
    }


def _after(columns: Mapping[str, FloatArray], name: str, rounds: int) -> float:
    values = columns.get(name)
    return math.nan if values is None or len(values) < rounds else float(values[rounds - 1])


def _mean(columns: Mapping[str, FloatArray], name: str) -> float:
    values = columns.get(name, np.zeros(0))
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan
