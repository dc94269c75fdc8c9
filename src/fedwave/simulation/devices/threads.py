"""All devices on this machine: threads work through chunks of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from fedwave.errors import ProblemError
from fedwave.learning import Parameters
from fedwave.learning.parameters import unstack
from fedwave.server import Reports
from fedwave.simulation.devices.model_store import ModelStore
from fedwave.simulation.devices.work import ComputedChunk, EvaluationWork, LocalWork
from fedwave.simulation.devices.workers import Workers
from fedwave.simulation.divergence import require_finite_reports
from fedwave.simulation.records import HeldOutResult
from fedwave.units import IntArray


class ThreadDevices:
    """Devices computed by threads. Memory grows with the models kept, not with the devices."""

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, *, num_workers: int = 0) -> None:
        self._local = local
        self._evaluation = evaluation
        self._workers = Workers(num_workers)
        self._round: tuple[int, Parameters] | None = None
        self._chunks: list[IntArray] = []  # of the round, as they were computed
        self._kept = ModelStore(0)

    def report(
        self, round_index: int, parameters: Parameters, device_index: IntArray, *, max_models: int
    ) -> Reports:
        """Return what the devices report; the models of those that contribute most are kept."""
        self._round, self._kept = (round_index, parameters), ModelStore(max_models)
        self._chunks = self._local.chunks(device_index)
        num_devices = len(self._local.pool)
        norms = np.full((num_devices, self._local.num_local_steps), np.nan)
        losses = np.full(num_devices, np.nan)
        for chunk in self._updates(self._chunks):
            at = chunk.positions
            norms[at], losses[at] = chunk.gradient_norms, chunk.loss
            scores = self._local.reports(at, chunk.gradient_norms, chunk.loss).contribution
            self._kept.offer(at, scores, chunk.parameters)
        return self._local.reports(device_index, norms[device_index], losses[device_index])

    def collect(self, device_index: IntArray) -> Iterator[Parameters]:
        """Yield the models; those that were not kept, in spite of being chosen, are computed again.

        They are computed in the same chunks as before: in other company the last bits would differ.
        """
        forgotten = self._kept.missing(device_index.tolist())
        recomputed: dict[int, Parameters] = {}
        for chunk in self._updates([chunk for chunk in self._chunks if np.isin(chunk, forgotten).any()]):
            for row in np.flatnonzero(np.isin(chunk.positions, forgotten)).tolist():
                recomputed[int(chunk.positions[row])] = unstack(chunk.parameters, row)
        for position in forgotten:
            if position not in recomputed:
                raise ProblemError(
                    f"only devices that computed in this round can upload, got device {position}. "
                    "Let the planner ask it first."
                )
        for position in device_index.tolist():
            if position in recomputed:
                yield recomputed[position]
            else:
                yield from self._kept.models([position])

    def evaluate(self, parameters: Parameters) -> HeldOutResult | None:
        """Return the held-out devices' results."""
        pool = self._evaluation.pool
        if len(pool) == 0:
            return None
        loss, metric = np.zeros(len(pool)), np.zeros(len(pool))
        chunks = self._evaluation.chunks()
        outcomes = self._workers.map(partial(self._evaluation.compute, parameters), chunks)
        for at, (own_loss, own_metric) in zip(chunks, outcomes, strict=True):
            loss[at], metric[at] = own_loss, own_metric
        return HeldOutResult(pool.device_ids, pool.num_query, loss, metric, self._evaluation.task.metric)

    def close(self) -> None:
        """Stop the threads."""
        self._workers.close()

    def _updates(self, chunks: list[IntArray]) -> Iterator[ComputedChunk]:
        """Yield the local updates of the given chunks of devices, in their order."""
        assert self._round is not None  # report comes first
        round_index, parameters = self._round
        work = partial(self._local.compute, round_index, parameters)
        for chunk in self._workers.map(work, chunks):
            ids = self._local.pool.device_ids[chunk.positions]
            require_finite_reports(round_index, ids, chunk.gradient_norms, chunk.loss)
            yield chunk
