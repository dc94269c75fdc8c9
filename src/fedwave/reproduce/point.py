"""A point of a figure: settings that are run once for each seed, and what the figure calls them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fedwave.experiments import Experiment, load_experiment
from fedwave.runs.provenance import NUMERICS_VERSION

NOT_ESSENTIAL = ("name", "execution")  # they change no number
# What the devices compute does not depend on these: runs that differ in them alone may share computations.
NOT_LEARNING = ("policy", "num_selected", "everyone_computes", "options")


@dataclass(frozen=True)
class Point:
    """A preset with overrides, for any seed, and its labels."""

    preset: str
    overrides: tuple[str, ...]
    dataset: str
    scheme: str
    counting: str = ""  # of joules and seconds: "paper", "ours", or the same for both
    parameter: str = ""  # what the figure varies, e.g. "num_blocks"
    value: float | None = None
    is_probed: bool = False  # the model is also judged by other readings of the test

    def experiment(self, seed: int) -> Experiment:
        """Return the settings of one run."""
        return _loaded(self.preset, self.overrides).model_copy(update={"seed": seed})

    def command(self, seed: int) -> str:
        """Return the command that makes this run alone."""
        settings = "".join(f" -s {_quoted(setting)}" for setting in self.overrides)
        return f"fedwave run {self.preset} --seed {seed}{settings}"

    @property
    def labels(self) -> dict[str, Any]:
        """What tells this point from the others of its item."""
        return {
            "dataset": self.dataset,
            "scheme": self.scheme,
            "counting": self.counting,
            "parameter": self.parameter,
            "value": self.value,
        }


@lru_cache(maxsize=4096)
def _loaded(preset: str, overrides: tuple[str, ...]) -> Experiment:
    return load_experiment(preset, overrides)


def key_of(experiment: Experiment) -> str:
    """Return 16 hex digits: runs of one key have the same numbers."""
    settings = experiment.model_dump(mode="json", exclude_none=True)
    essential = {name: value for name, value in settings.items() if name not in NOT_ESSENTIAL}
    return _digest([NUMERICS_VERSION, essential])


def learning_key(experiment: Experiment) -> str:
    """Return 16 hex digits: the same for runs whose devices compute the same on the same global model."""
    settings = experiment.model_dump(mode="json", exclude_none=True)
    parts = {name: settings[name] for name in ("seed", "data", "partition", "model", "algorithm")}
    selection = {k: v for k, v in settings["selection"].items() if k not in NOT_LEARNING}
    evaluation = {k: v for k, v in settings["evaluation"].items() if k != "every"}
    bits = settings.get("cell", {}).get("bits_per_parameter", 32)
    return _digest([NUMERICS_VERSION, parts, selection, evaluation, bits])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _quoted(setting: str) -> str:
    return f"'{setting}'" if any(letter in setting for letter in ' "{}[]') else setting
