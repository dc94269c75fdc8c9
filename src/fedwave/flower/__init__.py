"""The algorithm on real devices: translation between the parts of fedwave and Flower's messages.

The strategy goes into anybody's ``ServerApp``, the client app onto every node. Planner, mean and checkpoints
are those of the other executors, and so is what a device computes. Names are loaded when they are first used:
a node whose device is your own needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedwave.errors import import_extra
from fedwave.lazy import lazy_names

import_extra("flwr", purpose="training on real devices", extra="flower")

if TYPE_CHECKING:
    from fedwave.flower.client import client_app
    from fedwave.flower.device import Device, DeviceReport, RadioFacts
    from fedwave.flower.experiment import (
        device_of_experiment,
        initial_arrays,
        simulation_of,
        strategy_of_experiment,
    )
    from fedwave.flower.messages import Grant
    from fedwave.flower.pool_device import PoolDevice
    from fedwave.flower.secure import SecureSum
    from fedwave.flower.strategy import TwoPhase

__all__ = [
    "Device",
    "DeviceReport",
    "Grant",
    "PoolDevice",
    "RadioFacts",
    "SecureSum",
    "TwoPhase",
    "client_app",
    "device_of_experiment",
    "initial_arrays",
    "simulation_of",
    "strategy_of_experiment",
]

__getattr__, __dir__ = lazy_names(__name__)
