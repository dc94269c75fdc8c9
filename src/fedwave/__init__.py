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
    "pareto_front": "fedwave.allocation",
    "total_cost": "fedwave.allocation",
    "dataset_from_arrays": "fedwave.data",
    "load_dataset": "fedwave.data",
    "Experiment": "fedwave.experiments",
    "load_experiment": "fedwave.experiments",
    "read_run": "fedwave.runs.compare",
    "resume_run": "fedwave.runs.run",
    "run_experiment": "fedwave.runs.run",
    "meta_gradient": "fedwave.learning",
    "contribution": "fedwave.selection",
}

if TYPE_CHECKING:
    from fedwave.allocation import AllocationProblem, allocate, pareto_front, total_cost
    from fedwave.data import dataset_from_arrays, load_dataset
    from fedwave.experiments import Experiment, load_experiment
    from fedwave.learning import meta_gradient
    from fedwave.runs.compare import read_run
    from fedwave.runs.run import resume_run, run_experiment
    from fedwave.selection import contribution

__all__ = [
    "AllocationProblem",
    "Experiment",
    "__version__",
    "allocate",
    "contribution",
    "dataset_from_arrays",
    "load_dataset",
    "load_experiment",
    "meta_gradient",
    "pareto_front",
    "read_run",
    "resume_run",
    "run_experiment",
    "total_cost",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fedwave' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
