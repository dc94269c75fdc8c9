"""Where the devices are computed: threads of this machine or a cluster, on which processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial

import torch

from fedwave.devices import Devices, EvaluationWork, LocalWork, ThreadDevices
from fedwave.devices.ray.connection import ClusterOptions, load_ray
from fedwave.devices.ray.executor import RayDevices
from fedwave.errors import ConfigError
from fedwave.experiments.schema import ExecutionSection


def build_engine(
    section: ExecutionSection, torch_device: torch.device
) -> Callable[[LocalWork, EvaluationWork], Devices]:
    """Return what starts the threads, or joins the cluster, that compute the devices."""
    if section.engine == "threads":
        return partial(ThreadDevices, num_workers=1 if torch_device.type == "cuda" else section.workers)
    load_ray(section.address)  # if it is not installed, say so before anything is written
    names = [field.name for field in fields(ClusterOptions)]
    return partial(RayDevices, options=ClusterOptions(**{name: getattr(section, name) for name in names}))


def choose_device(section: ExecutionSection) -> torch.device:
    """Return the torch device that is asked for; ``auto`` takes a GPU where torch has one, but not on Ray."""
    name = section.device
    if name == "auto":
        on_gpu = section.engine == "threads" and torch.cuda.is_available()
        return torch.device("cuda" if on_gpu else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        if device.type == "meta":
            raise RuntimeError("a meta device holds no values")
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f'execution.device: torch cannot use "{name}" ({reason}). Use "auto", "cpu" or "cuda".'
        ) from error
    if section.engine == "ray" and device.type != "cpu":
        raise ConfigError(
            f'execution.device: engine ray computes on CPUs, got "{name}". Use "cpu", or engine threads.'
        )
    return device
