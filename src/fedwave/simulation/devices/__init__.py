"""The devices of a run: what the round asks of them, and the threads or the cluster that computes it."""

from fedwave.simulation.devices.base import Devices
from fedwave.simulation.devices.device_pool import DevicePool, Standardiser
from fedwave.simulation.devices.threads import ThreadDevices
from fedwave.simulation.devices.work import EvaluationWork, LocalWork

__all__ = ["DevicePool", "Devices", "EvaluationWork", "LocalWork", "Standardiser", "ThreadDevices"]
