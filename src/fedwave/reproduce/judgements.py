"""One global model judged by many readings of "test accuracy": steps, rate, pooling, classes, devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fedwave.devices.pool import DevicePool
from fedwave.devices.work import EvaluationWork, as_float64
from fedwave.learning import Parameters
from fedwave.learning.evaluate import adapt
from fedwave.learning.one_core import one_core
from fedwave.simulation.simulation import Simulation
from fedwave.units import FloatArray, IntArray

OWN_TEST = "one step"  # the judgement that repeats the run's own test
FIGURES = ("accuracy", "accuracy_pooled", "accuracy_own", "accuracy_own_pooled", "loss")


@dataclass(frozen=True)
class Judgement:
    """How a device adapts before its test: so many steps, the step size times ``rate_factor``."""

    num_steps: int
    rate_factor: float = 1.0
    on_training_devices: bool = False


JUDGEMENTS: dict[str, Judgement] = {
    OWN_TEST: Judgement(1),
    "no adaptation": Judgement(0),
    "5 steps": Judgement(5),
    "10 steps": Judgement(10),
    "one step, rate x 10": Judgement(1, 10.0),
    "training devices": Judgement(1, on_training_devices=True),
}


def read_test(simulation: Simulation, parameters: Parameters) -> dict[str, dict[str, float]]:
    """Return the figures of every judgement, each by its name in ``FIGURES``."""
    with one_core():  # as a worker that evaluates has it
        return {
            name: _judged(simulation.evaluation, _pool(simulation, how), parameters, how)
            for name, how in JUDGEMENTS.items()
            if len(_pool(simulation, how))
        }


def _pool(simulation: Simulation, how: Judgement) -> DevicePool:
    return simulation.train if how.on_training_devices else simulation.heldout


def _judged(
    work: EvaluationWork, pool: DevicePool, parameters: Parameters, how: Judgement
) -> dict[str, float]:
    num_devices = len(pool)
    loss, right, right_own = np.zeros(num_devices), np.zeros(num_devices), np.zeros(num_devices)
    for at in pool.chunks(np.arange(num_devices, dtype=np.int64), max_samples=work.chunk_samples):
        loss[at], right[at], right_own[at] = _chunk(work, pool, parameters, at, how)
    num_query = pool.num_query
    return {
        "accuracy": float(right.mean()),
        "accuracy_pooled": float((right * num_query).sum() / num_query.sum()),
        "accuracy_own": float(right_own.mean()),
        "accuracy_own_pooled": float((right_own * num_query).sum() / num_query.sum()),
        "loss": float(loss.mean()),
    }


def _chunk(
    work: EvaluationWork, pool: DevicePool, parameters: Parameters, at: IntArray, how: Judgement
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each device's loss, its accuracy over all classes, and over the classes that it has."""
    support, query = pool.support(at), pool.query(at)
    rate = how.rate_factor * work.inner_lr
    adapted = adapt(work.model, work.task, parameters, support, num_steps=how.num_steps, inner_lr=rate)
    with torch.no_grad():
        outputs = work.model.outputs(adapted, query.inputs)
        loss = work.task.loss(outputs, query)
        is_own = torch.zeros(outputs.shape[0], outputs.shape[2], dtype=torch.bool)
        for targets in (support.targets, query.targets):
            is_own.scatter_(1, targets, True)
        among_own = outputs.masked_fill(~is_own[:, None, :], float("-inf"))
        is_real = query.weights > 0
        shares = [
            ((answers.argmax(2) == query.targets) & is_real).sum(1).double() / is_real.sum(1)
            for answers in (outputs, among_own)
        ]
    return as_float64(loss), as_float64(shares[0]), as_float64(shares[1])
