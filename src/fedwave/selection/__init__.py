"""Who uploads: the contribution score and one policy per file."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.selection.contribution import contribution, turning_point
from fedwave.selection.policy import SelectionPolicy, require_enough_devices
from fedwave.selection.top_contribution import TopContribution
from fedwave.selection.uniform import Uniform

__all__ = [
    "POLICIES",
    "SelectionPolicy",
    "TopContribution",
    "Uniform",
    "contribution",
    "require_enough_devices",
    "turning_point",
]

POLICIES: dict[str, Callable[[int], SelectionPolicy]] = {
    "uniform": Uniform,
    "top-contribution": TopContribution,
}
