"""Small pools of devices with unequal numbers of samples, and the work over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fedwave.data import DeviceData, dataset_from_arrays
from fedwave.devices import DevicePool, EvaluationWork, LocalWork, Standardiser
from fedwave.learning import LOCAL_RULES, TASKS, build_model
from tests.learning.stacks import SMALL

SUPPORT_SIZES = (2, 1, 3, 1, 2, 4, 1)
QUERY_SIZES = (5, 9, 2, 1, 5, 7, 3)
SHAPE = (1, 4, 4)
NUM_DEVICES = len(QUERY_SIZES)
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
            "rule": LOCAL_RULES[gradient](inner_lr=INNER_LR, meta_lr=META_LR),
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
