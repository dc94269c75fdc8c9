"""Experiments as data: the schema of a TOML file, the shipped presets, and how they are loaded.

The schema takes a while to build, so the names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedwave.lazy import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__)
