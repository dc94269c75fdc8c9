"""What the theory must know of how the devices of a run learn: rates, steps, and sizes of batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.devices.work import LocalWork
from fedwave.theory.constants import BatchSizes, Constants, first_order_variance, meta_variance
from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Learner:
    """How devices learn, in the terms of the analysis. A rule without an inner step has alpha = 0."""

    inner_lr: float  # alpha
    meta_lr: float  # beta
    num_local_steps: int  # tau
    batches: BatchSizes  # of every device
    has_hessian: bool = True  # False: the first-order gradient, Eq. (51)

    @classmethod
    def of(cls, local: LocalWork, *, inner_lr: float, meta_lr: float) -> Learner:
        """Return the learner of a run: the rates are the settings', the batches as it draws or has them."""
        pool, rule = local.pool, local.rule
        query = pool.num_samples if rule.pools_samples else pool.num_query
        if local.query_batch_size is not None:
            query = np.minimum(query, local.query_batch_size)
        # A rule that pools its samples takes no inner step, and then D and D'' play no part.
        support = pool.num_samples if rule.pools_samples else pool.num_samples - pool.num_query
        hessian = query if getattr(rule, "has_query_hessian", False) else support
        return cls(
            inner_lr=0.0 if rule.pools_samples else inner_lr,
            meta_lr=meta_lr,
            num_local_steps=local.num_local_steps,
            batches=BatchSizes(support, query, hessian),
            has_hessian=getattr(rule, "method", "exact") != "first-order",
        )

    def meta_variances(self, constants: Constants) -> FloatArray:
        """Return sigma_F^2 of every device, Eq. (15) or Corollary 2."""
        variance = meta_variance if self.has_hessian else first_order_variance
        return variance(constants, self.batches, inner_lr=self.inner_lr)

    def meta_noise(self, constants: Constants) -> float:
        """Return the largest sigma_F of a device."""
        return math.sqrt(float(self.meta_variances(constants).max()))
