"""Server steps: how the received models become the next global model."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.learning.server_steps.base import ServerStep
from fedwave.learning.server_steps.mean import ServerMean, average
from fedwave.learning.server_steps.momentum import ServerMomentum
from fedwave.parts import PartKind

__all__ = ["SERVER_STEP", "SERVER_STEPS", "ServerMean", "ServerMomentum", "ServerStep", "average"]

SERVER_STEPS: dict[str, Callable[..., ServerStep]] = {
    "mean": ServerMean,
    "momentum": ServerMomentum,
}
SERVER_STEP = PartKind("server step", SERVER_STEPS)
