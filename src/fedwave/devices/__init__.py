"""Who computes: the devices of a run, their samples and work, and the threads or the cluster that does it."""

from fedwave.devices.base import Devices, HeldOutResult
from fedwave.devices.pool import DevicePool, Standardiser
from fedwave.devices.threads import thread_devices
from fedwave.devices.work import EvaluationWork, LocalWork

__all__ = [
    "DevicePool",
    "Devices",
    "EvaluationWork",
    "HeldOutResult",
    "LocalWork",
    "Standardiser",
    "thread_devices",
]
