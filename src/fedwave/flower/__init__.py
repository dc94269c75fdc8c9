"""The algorithm on real devices: translation between the parts of fedwave and Flower's messages.

The strategy goes into anybody's ``ServerApp``, the client app onto every node. Planner, mean and checkpoints
are those of the other engines, and so is what a device computes.
"""

from fedwave.errors import import_extra

import_extra("flwr", purpose="training on real devices", extra="flower")

from fedwave.flower.client import client_app  # noqa: E402 - only after flwr was found
from fedwave.flower.device import Device, PoolDevice, Update  # noqa: E402
from fedwave.flower.experiment import (  # noqa: E402
    device_of_experiment,
    initial_arrays,
    simulation_of,
    strategy_of_experiment,
)
from fedwave.flower.messages import Grant, Radio  # noqa: E402
from fedwave.flower.strategy import TwoPhase  # noqa: E402

__all__ = [
    "Device",
    "Grant",
    "PoolDevice",
    "Radio",
    "TwoPhase",
    "Update",
    "client_app",
    "device_of_experiment",
    "initial_arrays",
    "simulation_of",
    "strategy_of_experiment",
]
