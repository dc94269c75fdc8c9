"""How much a sample costs to learn from: multiply-adds, counted while a local step really runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from fedwave.errors import ConfigError
from fedwave.learning.batch import Batch
from fedwave.learning.models.base import Model
from fedwave.learning.objective import objective
from fedwave.learning.parameters import stack_copies
from fedwave.learning.rules.base import LocalRule
from fedwave.learning.tasks.base import Task


@dataclass(frozen=True)
class SampleOperations:
    """Multiply-adds of one local step for each sample of a device, by what the sample is used for."""

    support: float
    query: float

    def mean(self, num_support: int, num_query: int) -> float:
        """Return the mean over a device's samples, or a fleet's: c of Eq. (23) over cycles per operation."""
        if num_support < 0 or num_query < 0 or num_support + num_query == 0:
            raise ConfigError(
                f"a device needs samples, got {num_support} support and {num_query} query. Count them all."
            )
        return (self.support * num_support + self.query * num_query) / (num_support + num_query)


def sample_operations(
    model: Model, task: Task, rule: LocalRule, *, sample: Tensor, target: Tensor
) -> SampleOperations:
    """Return what a support sample and a query sample cost, counted while the rule takes a step.

    ``sample`` and ``target`` are one sample's; the values do not matter, the shapes do. An exact
    meta-gradient differentiates the support's gradient again, so its support samples cost more. Counted are
    matrix products and convolutions, forward and backward, as torch's ``FlopCounterMode`` does (two of its
    operations are a multiply-add); sums of vectors, pooling and activations, some per cent, are not.
    """

    def count(num_support: int, num_query: int) -> float:
        support = None if rule.pools_samples else _batch(sample, target, num_support)
        query = _batch(sample, target, num_query)
        parameters = stack_copies(model.initial_parameters(np.random.default_rng(0)), 1)
        with FlopCounterMode(display=False) as counter:
            rule.step(objective(model, task), parameters, support, query, start=parameters)
        return float(counter.get_total_flops()) / 2

    query = count(1, 2) - count(1, 1)
    return SampleOperations(support=query if rule.pools_samples else count(2, 1) - count(1, 1), query=query)


def _batch(sample: Tensor, target: Tensor, size: int) -> Batch:
    return Batch(
        inputs=sample.expand(1, size, *sample.shape).contiguous(),
        targets=target.expand(1, size, *target.shape).contiguous(),
        weights=torch.full((1, size), 1.0 / size),
    )
