"""Experiments as data: the schema of a TOML file, the shipped presets, and how they are loaded."""

from fedwave.experiments.load import (
    experiment_from,
    experiment_to_toml,
    load_experiment,
    preset_names,
    preset_text,
)
from fedwave.experiments.new_project import write_project
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
