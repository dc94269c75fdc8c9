"""fedwave: federated meta-learning over wireless networks.

``import fedwave`` is light: the names below, and what they need, are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedwave.lazy import lazy_names

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fedwave.allocation import (
        AllocationProblem,
        allocate,
        allocate_many,
        compare_methods,
        evaluate,
        pareto_front,
        total_cost,
        violations,
    )
    from fedwave.cli.run_tables import cost_table, final_table
    from fedwave.data import dataset_from_arrays, load_dataset, read_split, user_split
    from fedwave.experiments import Experiment, experiment_from, load_experiment
    from fedwave.learning import meta_gradient
    from fedwave.plots.runs import draw_runs, plot_runs
    from fedwave.runs.compare import read_run
    from fedwave.runs.comparison import compare_runs
    from fedwave.runs.listing import read_runs
    from fedwave.runs.run import StopRun, resume_run, run_experiment
    from fedwave.selection import contribution
    from fedwave.server import problem_of_cell
    from fedwave.server.draws import compare_over_draws
    from fedwave.simulation.account import account
    from fedwave.wireless.settings.load import load_cell

__all__ = [
    "AllocationProblem",
    "Experiment",
    "StopRun",
    "__version__",
    "account",
    "allocate",
    "allocate_many",
    "compare_methods",
    "compare_over_draws",
    "compare_runs",
    "contribution",
    "cost_table",
    "dataset_from_arrays",
    "draw_runs",
    "evaluate",
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
    "read_runs",
    "read_split",
    "resume_run",
    "run_experiment",
    "total_cost",
    "user_split",
    "violations",
]

__getattr__, __dir__ = lazy_names(__name__)
