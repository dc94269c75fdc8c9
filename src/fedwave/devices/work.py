"""What one chunk of devices computes. Everything here travels: it can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedwave.devices.pool import DevicePool
from fedwave.learning import Batch, Model, Parameters, Task, evaluate, local_update
from fedwave.learning.precision import products_in
from fedwave.learning.rules import LocalRule
from fedwave.rng import Stream, generator
from fedwave.selection import contribution
from fedwave.server import Reports
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ComputedChunk:
    """The local updates of some devices, stacked."""

    positions: IntArray
    parameters: Parameters
    gradient_norms: FloatArray  # (devices, tau)
    loss: FloatArray
    loss_lipschitz: FloatArray | None = None  # rho_i, if it is measured
    smoothness: FloatArray | None = None  # beta_i of Wang et al., likewise


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalWork:
    """How the training devices update the model and score their updates; the same in every round."""

    model: Model
    task: Task
    rule: LocalRule
    pool: DevicePool
    num_local_steps: int  # tau
    similarity_penalty: float  # lambda_1
    variance_penalty: float  # lambda_2
    query_batch_size: int | None
    seed: int
    chunk_samples: int
    precision: str = "float32"  # of products; evaluation always takes float32
    report_scale: FloatArray | None = None  # of each device's reported norms; None: all say what they found
    measures_curvature: bool = False  # one gradient more, at the model that a device ends with

    @property
    def num_gradients(self) -> int | None:
        """How many gradients a device computes where that is not the number of its steps; else None."""
        return self.num_local_steps + 1 if self.measures_curvature else None

    def chunks(self, positions: IntArray) -> list[IntArray]:
        """Return the devices in groups that are computed at once."""
        return self.pool.chunks(positions, max_samples=self.chunk_samples)

    def with_steps(self, num_local_steps: int) -> LocalWork:
        """Return the work of a round that chose its number of local steps."""
        return replace(self, num_local_steps=num_local_steps)

    def compute(self, round_index: int, parameters: Parameters, positions: IntArray) -> ComputedChunk:
        """Return the local updates of one chunk of devices, Alg. 1 lines 3-10."""
        with products_in(self.precision, self.pool.torch_device):
            update = local_update(
                self.model,
                self.task,
                self.rule,
                parameters,
                None if self.rule.pools_samples else self.pool.support(positions),
                self._batches(round_index, positions),
                measures_secant=self.measures_curvature,
            )
        found = positions, update.parameters, as_float64(update.gradient_norms), as_float64(update.loss)
        if update.secant is None:
            return ComputedChunk(*found)
        return ComputedChunk(
            *found, as_float64(update.secant.loss_lipschitz), as_float64(update.secant.smoothness)
        )

    def reports(
        self,
        positions: IntArray,
        gradient_norms: FloatArray,
        loss: FloatArray,
        loss_lipschitz: FloatArray | None = None,
        smoothness: FloatArray | None = None,
    ) -> Reports:
        """Return what these devices tell the server: their norms and losses, scored by Eq. (21)."""
        num_samples = self.pool.num_samples[positions]
        if self.report_scale is not None:
            gradient_norms = gradient_norms * self.report_scale[positions, None]
        return Reports(
            device_index=positions,
            contribution=contribution(
                gradient_norms,
                num_samples,
                similarity_penalty=self.similarity_penalty,
                variance_penalty=self.variance_penalty,
            ),
            loss=loss,
            num_samples=num_samples,
            gradient_norms=gradient_norms,
            loss_lipschitz=loss_lipschitz,
            smoothness=smoothness,
            num_gradients=self.num_gradients,
        )

    def _batches(self, round_index: int, positions: IntArray) -> list[Batch]:
        """Return the batch D' of each local step; FedAvg takes support and query together."""
        pools = self.rule.pools_samples
        if self.query_batch_size is None:
            whole = self.pool.everything(positions) if pools else self.pool.query(positions)
            return [whole] * self.num_local_steps
        ids = self.pool.device_ids[positions].tolist()
        batches = []
        for step in range(self.num_local_steps):
            rngs = [generator(self.seed, Stream.LOCAL_BATCHES, round_index, i, step) for i in ids]
            batches.append(self.pool.drawn(positions, self.query_batch_size, rngs, with_support=pools))
        return batches


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationWork:
    """How the global model is evaluated on the held-out devices."""

    model: Model
    task: Task
    pool: DevicePool
    num_steps: int
    inner_lr: float
    chunk_samples: int

    def on(self, pool: DevicePool) -> EvaluationWork:
        """Return the same evaluation of other devices."""
        return replace(self, pool=pool)

    def chunks(self) -> list[IntArray]:
        """Return all devices in groups that are computed at once."""
        everyone = np.arange(len(self.pool), dtype=np.int64)
        return self.pool.chunks(everyone, max_samples=self.chunk_samples)

    def compute(self, parameters: Parameters, positions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss and the metric of one chunk of devices, on their query sets after adaptation."""
        outcome = evaluate(
            self.model,
            self.task,
            parameters,
            self.pool.support(positions),
            self.pool.query(positions),
            num_steps=self.num_steps,
            inner_lr=self.inner_lr,
        )
        return as_float64(outcome.loss), as_float64(outcome.metric)


def as_float64(tensor: Any) -> FloatArray:
    """Return a tensor's values as a numpy array in double precision."""
    values: FloatArray = tensor.detach().cpu().numpy().astype(np.float64)
    return values
