"""The devices of a run: what the round asks of them, and the threads or the cluster that computes it."""

from fedwave.devices.base import Devices
from fedwave.devices.pool import DevicePool, Standardiser
from fedwave.devices.threads import ThreadDevices
from fedwave.devices.work import EvaluationWork, LocalWork

__all__ = ["DevicePool", "Devices", "EvaluationWork", "LocalWork", "Standardiser", "ThreadDevices"]
