"""Who computes: the devices of a run, their samples and work, and the threads or the cluster that does it."""

from typing import TYPE_CHECKING

from fedwave.lazy import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(__name__)
