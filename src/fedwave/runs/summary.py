"""The final figures of a run, read from its tables: a resumed run sums up all of its rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedwave.data import Dataset
from fedwave.experiments.schema import Experiment
from fedwave.learning.parameters import Parameters, num_parameters
from fedwave.runs.batteries import lifetimes
from fedwave.runs.folder import RunFolder
from fedwave.simulation.simulation import Simulation
from fedwave.units import carbon_g


def summarise(
    simulation: Simulation,
    experiment: Experiment,
    folder: RunFolder,
    data: Dataset,
    parameters: Parameters,
) -> dict[str, Any]:
    """Return what summary.json holds."""
    columns = folder.table()
    metric = simulation.task.metric
    measured = columns[f"heldout_{metric.name}"]
    measured = measured[np.isfinite(measured)]
    best = measured.max if metric.higher_is_better else measured.min
    final = ("train_loss", "heldout_loss", f"heldout_{metric.name}", f"heldout_{metric.name}_pooled")
    return {
        "name": experiment.name,
        "scheme": experiment.scheme,
        "seed": experiment.seed,
        "num_rounds": len(columns["round"]),
        "task": type(simulation.task).__name__.lower(),
        "metric": metric.name,
        "gradient": experiment.algorithm.rule.kind,
        "selection": experiment.selection.policy.kind,
        "server_step": experiment.algorithm.server_step.kind,
        "dataset": data.name,
        "num_train_devices": len(simulation.train),
        "num_heldout_devices": len(simulation.heldout),
        "num_parameters": num_parameters(parameters),
        "final": {name: float(columns[name][-1]) for name in final if np.isfinite(columns[name][-1])},
        f"best_heldout_{metric.name}": float(best()) if measured.size else None,
        "share_below_turning_point": float(columns["share_below_turning_point"].mean()),
        **_penalties(simulation, columns),
        **_cost_summary(simulation, experiment, columns),
        **_lifetimes(simulation, columns, metric.name),
        "wall_time_s": float(columns["wall_time_s"].sum()),
        "warnings": list(simulation.warnings),
    }


def _penalties(simulation: Simulation, columns: dict[str, Any]) -> dict[str, Any]:
    """Return where estimated penalties ended, and in how many rounds the theory's put everybody below."""
    if simulation.federation.penalties is None:
        return {}
    names = ("similarity_penalty", "variance_penalty", "theory_similarity_penalty", "theory_variance_penalty")
    share = columns["theory_share_below_turning_point"]
    return {
        "penalties": {
            **{name: float(columns[name][-1]) for name in names if np.isfinite(columns[name][-1])},
            "rounds_with_everybody_below": int((share[np.isfinite(share)] == 1.0).sum()),
        }
    }


def _cost_summary(simulation: Simulation, experiment: Experiment, columns: dict[str, Any]) -> dict[str, Any]:
    """Return what a run over a cell cost in all; nothing without a cell."""
    if not simulation.federation.world.counts_costs:
        return {}
    energy_j = float(columns["cumulative_energy_j"][-1])
    intensity = None if experiment.cell is None else experiment.cell.carbon_intensity_g_per_kwh
    return {
        "cell": {
            **simulation.federation.planner.describe(),
            "energy_j": energy_j,
            **({} if intensity is None else {"carbon_g": carbon_g(energy_j, intensity)}),
            "delay_s": float(columns["cumulative_delay_s"][-1]),
            "uploads": int(columns["num_selected"].sum()),
            "uploads_received": int(columns["num_received"].sum()),
        }
    }


def _lifetimes(simulation: Simulation, columns: dict[str, Any], metric: str) -> dict[str, Any]:
    """Return when devices had no charge; nothing without batteries."""
    if simulation.federation.power is None:
        return {}
    return {"battery": lifetimes(columns, num_devices=len(simulation.train), metric=metric)}
