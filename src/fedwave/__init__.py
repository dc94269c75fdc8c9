"""fedwave: federated meta-learning over wireless networks.

``import fedwave`` is light: the names below, and what they need, are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name: the module that defines it
_HOME = {
    "AllocationProblem": "fedwave.allocation",
    "allocate": "fedwave.allocation",
    "allocate_many": "fedwave.allocation",
    "compare_methods": "fedwave.allocation",
    "pareto_front": "fedwave.allocation",
    "total_cost": "fedwave.allocation",
    "violations": "fedwave.allocation",
    "dataset_from_arrays": "fedwave.data",
    "load_dataset": "fedwave.data",
    "user_split": "fedwave.data",
    "read_split": "fedwave.data",
    "Experiment": "fedwave.experiments",
    "experiment_from": "fedwave.experiments",
    "load_experiment": "fedwave.experiments",
    "meta_gradient": "fedwave.learning",
    "draw_runs": "fedwave.plots.runs",
    "plot_runs": "fedwave.plots.runs",
    "read_run": "fedwave.runs.compare",
    "cost_table": "fedwave.runs.report",
    "final_table": "fedwave.runs.report",
    "StopRun": "fedwave.runs.run",
    "resume_run": "fedwave.runs.run",
    "run_experiment": "fedwave.runs.run",
    "contribution": "fedwave.selection",
    "problem_of_cell": "fedwave.server",
    "load_cell": "fedwave.wireless.load",
}

if TYPE_CHECKING:
    from fedwave.allocation import (
        AllocationProblem,
        allocate,
        allocate_many,
        compare_methods,
        pareto_front,
        total_cost,
        violations,
    )
    from fedwave.data import dataset_from_arrays, load_dataset, read_split, user_split
    from fedwave.experiments import Experiment, experiment_from, load_experiment
    from fedwave.learning import meta_gradient
    from fedwave.plots.runs import draw_runs, plot_runs
    from fedwave.runs.compare import read_run
    from fedwave.runs.report import cost_table, final_table
    from fedwave.runs.run import StopRun, resume_run, run_experiment
    from fedwave.selection import contribution
    from fedwave.server import problem_of_cell
    from fedwave.wireless.load import load_cell

__all__ = [
    "AllocationProblem",
    "Experiment",
    "StopRun",
    "__version__",
    "allocate",
    "allocate_many",
    "compare_methods",
    "contribution",
    "cost_table",
    "dataset_from_arrays",
    "draw_runs",
    "experiment_from",
    "final_table",
    "load_cell",
    "load_dataset",
    "load_experiment",
    "meta_gradient",
    "pareto_front",
    "plot_runs",
    "problem_of_cell",
    "read_run",
    "read_split",
    "resume_run",
    "run_experiment",
    "total_cost",
    "user_split",
    "violations",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fedwave' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
