"""Whether a user's module is faster with many devices at once or one after the other: measured."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from fedwave.devices.work import LocalWork
from fedwave.learning.models import UserModel
from fedwave.learning.one_core import one_core
from fedwave.units import IntArray

NUM_TRIALS = 3
# vmap is left only for a loop that is clearly faster: a choice that hangs on noise would not repeat.
CLEARLY = 0.7
# What was measured in this process: the same module, rule and shapes take the same way again.
_measured: dict[tuple[str, str, tuple[tuple[int, ...], ...]], bool] = {}


def choose_batching(local: LocalWork, *, one_by_one: int) -> int:
    """Let the model of ``local`` run the faster way; return the samples of a chunk for it.

    Tried is the first chunk of devices with the rule, task and data of the run, on one core, as workers have.
    In a loop every device is a chunk of its own (``one_by_one`` samples), so that none is padded.
    """
    model = local.model
    if not isinstance(model, UserModel):
        return local.chunk_samples
    if not model.is_vectorised:
        return one_by_one
    shapes = tuple(
        tuple(value.shape) for value in model.initial_parameters(np.random.default_rng(0)).values()
    )
    key = (repr(local.rule), model.name, shapes)
    if key not in _measured:
        chunk = local.chunks(np.arange(len(local.pool), dtype=np.int64))[0]
        alone = replace(local, chunk_samples=one_by_one).chunks(chunk)
        loop_s = _seconds(local, alone, is_loop=True)
        _measured[key] = loop_s < CLEARLY * _seconds(local, [chunk], is_loop=False)
    model.use_loop(_measured[key])
    return local.chunk_samples if model.is_vectorised else one_by_one


def _seconds(local: LocalWork, chunks: list[IntArray], *, is_loop: bool) -> float:
    """Return the shortest of several processor times of these chunks: a busy machine changes little."""
    assert isinstance(local.model, UserModel)
    parameters = local.model.initial_parameters(np.random.default_rng(0))
    parameters = {name: value.to(local.pool.torch_device) for name, value in parameters.items()}
    local.model.use_loop(is_loop)
    found = []
    with one_core():
        for _ in range(NUM_TRIALS + 1):  # the first one warms up
            start = time.process_time()
            for chunk in chunks:
                local.compute(0, parameters, chunk)
            found.append(time.process_time() - start)
    return min(found[1:])
