"""A real Ray cluster of two nodes on this machine's loopback, and work that kills those who do it."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psutil
from torch import Tensor

from fedwave.devices import EvaluationWork, LocalWork
from fedwave.devices.chunked_devices import ChunkedDevices
from fedwave.devices.ray.connection import ClusterOptions, load_ray
from fedwave.devices.ray.executor import ray_devices
from fedwave.learning import Batch
from fedwave.learning.tasks.base import Metric
from fedwave.learning.tasks.classification import Classification
from tests.devices.pools import (
    EVERYONE,
    assert_equal_models,
    assert_equal_reports,
    devices_of,
    evaluation_work,
    local_work,
    small_pool,
)


@contextmanager
def nodes(*num_cpus: int) -> Iterator[Any]:
    """A cluster whose nodes have so many CPUs each; the driver will be on the first."""
    ray = load_ray()
    from ray.cluster_utils import Cluster

    first, *others = num_cpus
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": first, "include_dashboard": False})
    try:
        for count in others:
            cluster.add_node(num_cpus=count)
        # One connection for all that happens: a new one would start all workers anew.
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def devices_on(
    cluster: Any, local: LocalWork, evaluation: EvaluationWork, **options: Any
) -> Iterator[ChunkedDevices[Any]]:
    """Devices on that cluster, or for None on one of their own."""
    address = None if cluster is None else cluster.address
    devices = ray_devices(local, evaluation, options=ClusterOptions(address=address, **options))
    try:
        yield devices
    finally:
        devices.close()


def worker_processes() -> list[psutil.Process]:
    """The processes that compute in the clusters which this process has started; Ray names them so."""
    below = psutil.Process().children(recursive=True)
    return [p for p in below if (name := p.cmdline()[0]).startswith("ray::") and "Agent" not in name]


def sleep(seconds: float) -> float:
    """Take a core for some time."""
    time.sleep(seconds)
    return seconds


@dataclass(frozen=True)
class Deadly:
    """Classification whose loss kills its process with SIGKILL while there is a file to delete."""

    folder: str  # with a file for each death that is to come
    metric: ClassVar[Metric] = Classification.metric

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Die, or return what classification does."""
        for file in sorted(Path(self.folder).iterdir()):
            try:
                file.unlink()
            except FileNotFoundError:
                continue  # another process died of it
            os.kill(os.getpid(), signal.SIGKILL)
        return Classification().loss(outputs, batch)

    def scores(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return what classification does."""
        return Classification().scores(outputs, batch)


def work_of(kind: str = "cnn", **changes: Any) -> tuple[LocalWork, EvaluationWork]:
    """Work in many chunks of several devices."""
    pool = small_pool(query_sizes=(12, 13, 11, 14, 12, 10, 12), shape=(1, 8, 8))
    return (
        local_work(kind, pool=pool, chunk_samples=36, query_batch_size=9, **changes),
        evaluation_work(kind, pool=small_pool(shape=(1, 8, 8), seed=1), chunk_samples=20),
    )


def outcome(devices: Any, theta: Any, *, max_models: int = 3) -> tuple[Any, Any, Any]:
    reports = devices.report(2, theta, EVERYONE, max_models=max_models)
    models = list(devices.collect(EVERYONE))
    results = devices.evaluate(theta), devices.evaluate(theta, on_training=True)
    return reports, models, tuple(evaluated(result) for result in results)


def evaluated(result: Any) -> tuple[Any, Any, Any]:
    return result.loss.tolist(), result.metric.tolist(), result.device_ids.tolist()


def by_threads(local: LocalWork, evaluation: EvaluationWork, theta: Any) -> tuple[Any, Any, Any]:
    with devices_of(local, evaluation) as devices:
        return outcome(devices, theta)


def assert_same(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    assert_equal_reports(one[0], other[0])
    assert_equal_models(one[1], other[1])
    assert one[2] == other[2]
