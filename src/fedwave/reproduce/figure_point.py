"""A point of a figure: the preset and settings of its runs, what the figure calls it, keys and commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fedwave.experiments import Experiment, load_experiment
from fedwave.reproduce.profile import PAPER, QUICK
from fedwave.reproduce.steps import arm_key
from fedwave.runs.provenance import run_key

EVALUATE_TRAINING = "evaluation.training_devices=true"


@dataclass(frozen=True)
class FigurePoint:
    """A point of a figure: a preset with overrides, run once for each seed, and what the figure calls it."""

    preset: str
    overrides: tuple[str, ...]
    dataset: str
    scheme: str
    counting: str = ""  # of joules and seconds: "paper", "ours", or the same for both
    parameter: str = ""  # what the figure varies, e.g. "num_blocks"
    value: float | None = None
    with_readings: bool = False  # the model is also judged by other readings of the test
    curves: tuple[str, ...] = ()  # that the item needs of a finished run, beside what every run has
    arm: str = ""  # of ``steps.ARMS``, which no command makes alone

    @property
    def settings(self) -> tuple[str, ...]:
        """The overrides, and what records the curves."""
        return (*self.overrides, EVALUATE_TRAINING) if "training_loss" in self.curves else self.overrides

    def experiment(self, seed: int) -> Experiment:
        """Return the settings of one run."""
        return _loaded(self.preset, self.settings).model_copy(update={"seed": seed})

    def key(self, experiment: Experiment) -> str:
        """Return the key of one run."""
        return arm_key(experiment, self.arm) if self.arm else run_key(experiment)

    def command(self, seed: int) -> str:
        """Return the command that makes this run alone; of an arm, with those that it follows."""
        if self.arm:
            profile = QUICK if self.preset.startswith(f"{QUICK.family}/") else PAPER
            return f"{profile.command('steps')} --dataset {self.dataset} --seeds {seed + 1}"
        settings = "".join(f" -s {_quoted(setting)}" for setting in self.settings)
        return f"fedwave run {self.preset} --seed {seed}{settings}"

    def merged(self, other: FigurePoint) -> FigurePoint:
        """Return the point whose run serves another point of the same key too."""
        return replace(
            self,
            with_readings=self.with_readings or other.with_readings,
            curves=tuple(dict.fromkeys((*self.curves, *other.curves))),
        )

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


def _quoted(setting: str) -> str:
    return f"'{setting}'" if any(letter in setting for letter in ' "{}[]') else setting
