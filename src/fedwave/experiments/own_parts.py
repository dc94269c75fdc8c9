"""Parts given as Python objects: the experiment names them ``module:Name``, so that a run can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from fedwave.errors import ConfigError, shown
from fedwave.experiments.load import experiment_from
from fedwave.experiments.schema import Experiment
from fedwave.settings import merge
from fedwave.settings.chosen import chosen

OwnPart = str | Callable[..., Any]


def with_parts(
    experiment: Experiment, *, model: OwnPart | None = None, policy: OwnPart | None = None
) -> Experiment:
    """Return the experiment with another model or selection policy: a name, or your own class or function."""
    change: dict[str, Any] = {}
    if model is not None:
        change["model"] = {"kind": part_name(model, what="model")}
    if policy is not None:
        change["selection"] = {"policy": {"kind": part_name(policy, what="policy")}}
    return experiment_from(merge(chosen(experiment), change, Experiment)) if change else experiment


def part_name(part: OwnPart, *, what: str) -> str:
    """Return the name by which settings find a part: its own, or ``module:Name`` of what is defined there."""
    if isinstance(part, str):
        return part
    module, name = (str(getattr(part, key, "")) for key in ("__module__", "__qualname__"))
    if part is None or getattr(sys.modules.get(module), name, None) is not part:
        raise ConfigError(
            f"{what} must be a name, or a class or function at the top level of a module or notebook, got "
            f"{shown(part)}. Define it there: a run that is resumed finds it by its name."
        )
    return f"{module}:{name}"
