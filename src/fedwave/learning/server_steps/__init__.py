"""Server steps: how the received models become the next global model."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.learning.server_steps.base import ServerStep
from fedwave.learning.server_steps.clip_norm import ServerClipNorm
from fedwave.learning.server_steps.mean import ServerMean, average
from fedwave.learning.server_steps.median import ServerMedian
from fedwave.learning.server_steps.momentum import ServerMomentum
from fedwave.learning.server_steps.trimmed_mean import ServerTrimmedMean
from fedwave.parts import PartKind

__all__ = [
    "SERVER_STEP",
    "SERVER_STEPS",
    "ServerClipNorm",
    "ServerMean",
    "ServerMedian",
    "ServerMomentum",
    "ServerStep",
    "ServerTrimmedMean",
    "average",
]

SERVER_STEPS: dict[str, Callable[..., ServerStep]] = {
    "mean": ServerMean,
    "momentum": ServerMomentum,
    "clip-norm": ServerClipNorm,
    "trimmed-mean": ServerTrimmedMean,
    "median": ServerMedian,
}
SERVER_STEP = PartKind("server step", SERVER_STEPS, fills_in=("max_models",), protocol=ServerStep)
