"""Small pools of devices with unequal numbers of samples, the work over them, and what they must compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from fedwave.data import DeviceData, dataset_from_arrays
from fedwave.devices import DevicePool, EvaluationWork, LocalWork, Standardiser, thread_devices
from fedwave.devices.chunked_devices import ChunkedDevices
from fedwave.learning import LOCAL_RULES, TASKS, Parameters, build_model
from fedwave.learning.rules import RULE
from fedwave.server import Reports
from fedwave.units import IntArray
from tests.learning.stacks import SMALL

SUPPORT_SIZES = (2, 1, 3, 1, 2, 4, 1)
QUERY_SIZES = (5, 9, 2, 1, 5, 7, 3)
SHAPE = (1, 4, 4)
NUM_DEVICES = len(QUERY_SIZES)
EVERYONE = np.arange(NUM_DEVICES)
DEVICE_IDS = np.array([11, 3, 7, 20, 5, 0, 8])  # in the whole partition
INNER_LR, META_LR = 0.3, 0.2
PENALTIES = {"similarity_penalty": 0.7, "variance_penalty": 1.3}


def small_pool(
    *,
    task: str = "classification",
    standardise: str = "pixel",
    seed: int = 0,
    query_sizes: tuple[int, ...] = QUERY_SIZES,
    shape: tuple[int, ...] = SHAPE,
) -> DevicePool:
    """Return seven devices; their samples lie in no order in the dataset."""
    rng = np.random.default_rng(seed)
    count = sum(SUPPORT_SIZES) + sum(query_sizes) + 5  # five belong to nobody
    inputs = rng.integers(0, 256, size=(count, *shape), dtype=np.uint8)
    if task == "regression":
        data = dataset_from_arrays(inputs, targets=rng.normal(size=(count, 2)))
    else:
        data = dataset_from_arrays(inputs, rng.integers(0, 3, count), num_classes=3)
    samples = iter(rng.permutation(count).tolist())
    devices = tuple(
        DeviceData(
            np.array([next(samples) for _ in range(support)]),
            np.array([next(samples) for _ in range(query)]),
            (0,),
        )
        for support, query in zip(SUPPORT_SIZES, query_sizes, strict=True)
    )
    return DevicePool(data, Standardiser.fit(data, standardise), devices, DEVICE_IDS, torch.device("cpu"))


def local_work(
    kind: str = "mlp",
    *,
    gradient: str = "exact",
    task: str = "classification",
    pool: DevicePool | None = None,
    **changes: Any,
) -> LocalWork:
    own = small_pool(task=task) if pool is None else pool
    return LocalWork(
        **{
            "model": build_model(
                kind, own.dataset.input_shape, own.dataset.num_outputs, **SMALL.get(kind, {})
            ),
            "task": TASKS[task](),
            "rule": RULE.call(LOCAL_RULES[gradient], {}, inner_lr=INNER_LR, meta_lr=META_LR),
            "pool": own,
            "num_local_steps": 2,
            "query_batch_size": None,
            "seed": 5,
            "chunk_samples": 24,
            **PENALTIES,
            **changes,
        }
    )


def evaluation_work(
    kind: str = "mlp", *, task: str = "classification", pool: DevicePool | None = None, **changes: Any
) -> EvaluationWork:
    own = small_pool(task=task, seed=1) if pool is None else pool
    return EvaluationWork(
        **{
            "model": build_model(
                kind, own.dataset.input_shape, own.dataset.num_outputs, **SMALL.get(kind, {})
            ),
            "task": TASKS[task](),
            "pool": own,
            "num_steps": 2,
            "inner_lr": INNER_LR,
            "chunk_samples": 24,
            **changes,
        }
    )


@contextmanager
def devices_of(
    local: Any, evaluation: EvaluationWork | None = None, *, num_workers: int = 2
) -> Iterator[ChunkedDevices[Parameters]]:
    devices = thread_devices(local, evaluation or evaluation_work(), num_workers=num_workers)
    try:
        yield devices
    finally:
        devices.close()


def first_model(work: Any) -> Parameters:
    return work.model.initial_parameters(np.random.default_rng(2))


def assert_equal_reports(one: Reports, other: Reports) -> None:
    names = "device_index", "contribution", "loss", "num_samples", "gradient_norms"
    for name in (*names, "loss_lipschitz", "smoothness", "num_gradients"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_equal_models(one: list[Parameters], other: list[Parameters]) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert list(mine) == list(theirs)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def by_chunks(work: LocalWork, round_index: int, theta: Parameters, who: IntArray) -> dict[int, Any]:
    """Return each device's norms, loss and model, chunk after chunk, without threads or a store."""
    found = {}
    for chunk in work.chunks(who):
        done = work.compute(round_index, theta, chunk)
        for row, position in enumerate(chunk.tolist()):
            model = {name: value[row] for name, value in done.parameters.items()}
            found[position] = (done.gradient_norms[row].tolist(), float(done.loss[row]), model)
    return found
