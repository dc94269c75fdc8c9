"""Tasks: what a device's loss is, and the metric that people read."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.learning.tasks.base import Task
from fedwave.learning.tasks.classification import Classification
from fedwave.learning.tasks.regression import Regression
from fedwave.metric import Metric
from fedwave.parts import PartKind

__all__ = ["TASK", "TASKS", "Classification", "Metric", "Regression", "Task"]

TASKS: dict[str, Callable[..., Task]] = {
    "classification": Classification,
    "regression": Regression,
}
TASK = PartKind("task", TASKS)
