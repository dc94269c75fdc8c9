"""Experiments as data: the schema of a TOML file, the shipped presets, and how they are loaded.

The schema takes a while to build, so the names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedwave.experiments.load import experiment_from, experiment_to_toml, load_experiment
    from fedwave.experiments.new_project import write_project
    from fedwave.experiments.preset_files import preset_names, preset_text
    from fedwave.experiments.schema import Experiment

__all__ = [
    "Experiment",
    "experiment_from",
    "experiment_to_toml",
    "load_experiment",
    "preset_names",
    "preset_text",
    "write_project",
]

# name: the module that defines it, where that is not ``load``
_HOME = {
    "Experiment": "schema",
    "preset_names": "preset_files",
    "preset_text": "preset_files",
    "write_project": "new_project",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fedwave.experiments' has no attribute {name!r}")
    return getattr(import_module(f"fedwave.experiments.{_HOME.get(name, 'load')}"), name)
