"""Devices that an executor computes chunk by chunk, with threads of this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol

import numpy as np

from fedwave.devices.base import HeldOutResult
from fedwave.devices.divergence import require_finite_reports
from fedwave.devices.model_store import Kept, ModelStore
from fedwave.devices.work import ComputedChunk, EvaluationWork, LocalWork
from fedwave.errors import ProblemError, RunError
from fedwave.learning import Parameters
from fedwave.learning.parameters import unstack
from fedwave.server import Reports
from fedwave.units import FloatArray, IntArray

Evaluated = tuple[IntArray, FloatArray, FloatArray]  # positions, losses and metrics of a chunk

MAX_LOSSES = 5  # how often the models of a round may be lost with their machine before the run gives up


class ChunkExecutor(Protocol[Kept]):
    """Computes chunks of devices, in any order; a chunk always at once and by one thread."""

    def updates(
        self,
        round_index: int,
        parameters: Parameters,
        chunks: Sequence[IntArray],
        store: ModelStore[Kept],
        num_local_steps: int | None,
    ) -> Iterator[Reports]:
        """Yield what each chunk's devices report; offer their models to the store.

        ``num_local_steps`` is the round's own number; None: that of the work.
        """
        ...

    def fetch(self, kept: Sequence[Kept]) -> Iterator[Parameters | None]:
        """Yield the models that a store held, in the order given; None for one that was lost."""
        ...

    def evaluations(
        self, parameters: Parameters, chunks: Sequence[IntArray], *, on_training: bool
    ) -> Iterator[Evaluated]:
        """Yield positions, losses and metrics of held-out devices, or of training devices."""
        ...

    def close(self) -> None:
        """Let go of threads, processes and connections."""
        ...


class ChunkedDevices(Generic[Kept]):
    """Devices that an executor computes. Results do not depend on where or in which order chunks run."""

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, executor: ChunkExecutor[Kept]) -> None:
        self._local = local
        self._evaluation = evaluation
        self._executor = executor
        self._round: tuple[int, Parameters] | None = None
        self._num_local_steps: int | None = None  # of the round, where it chose
        self._chunks: list[IntArray] = []  # of the round, as they were computed
        self._kept: ModelStore[Kept] = ModelStore(0)

    def report(
        self,
        round_index: int,
        parameters: Parameters,
        device_index: IntArray,
        *,
        max_models: int,
        num_local_steps: int | None = None,
    ) -> Reports:
        """Return what the devices report; the models of those that contribute most are kept."""
        self._round, self._kept = (round_index, parameters), ModelStore(max_models)
        self._num_local_steps = num_local_steps
        self._chunks = self._local.chunks(device_index)
        local = self._local if num_local_steps is None else self._local.with_steps(num_local_steps)
        pool = local.pool
        norms = np.full((len(pool), local.num_local_steps), np.nan)
        losses, scores, lipschitz, smoothness = np.full((4, len(pool)), np.nan)
        for own in self._executor.updates(round_index, parameters, self._chunks, self._kept, num_local_steps):
            at = own.device_index
            norms[at], losses[at], scores[at] = own.gradient_norms, own.loss, own.contribution
            if local.measures_curvature:
                lipschitz[at], smoothness[at] = own.loss_lipschitz, own.smoothness
        return Reports(
            device_index=device_index,
            contribution=scores[device_index],
            loss=losses[device_index],
            num_samples=pool.num_samples[device_index],
            gradient_norms=norms[device_index],
            loss_lipschitz=lipschitz[device_index] if local.measures_curvature else None,
            smoothness=smoothness[device_index] if local.measures_curvature else None,
            num_gradients=local.num_gradients,
        )

    def collect(self, device_index: IntArray) -> Iterator[Parameters]:
        """Yield the models; those that were chosen but not kept, or got lost, are computed again.

        They are computed in the same chunks as before: in other company the last bits would differ.
        """
        wanted = device_index.tolist()
        self._require_computed(wanted)
        models = self._fetched(self._kept, wanted)
        for _ in range(MAX_LOSSES):
            missing = set(wanted) - models.keys()
            if not missing:
                break
            models |= self._fetched(self._computed_again(missing), missing)
        for position in wanted:
            if position not in models:
                raise RunError(
                    f"local models of this round were lost {MAX_LOSSES} times, got no device {position}. "
                    "Machines keep failing; look after them, then resume the run."
                )
            yield models[position]

    def evaluate(self, parameters: Parameters, *, on_training: bool = False) -> HeldOutResult | None:
        """Return the results of the held-out devices, or of the training devices."""
        work = self._evaluation.on(self._local.pool) if on_training else self._evaluation
        pool = work.pool
        if len(pool) == 0:
            return None
        loss, metric = np.zeros(len(pool)), np.zeros(len(pool))
        outcomes = self._executor.evaluations(parameters, work.chunks(), on_training=on_training)
        for at, own_loss, own_metric in outcomes:
            loss[at], metric[at] = own_loss, own_metric
        return HeldOutResult(pool.device_ids, pool.num_query, loss, metric, work.task.metric)

    def close(self) -> None:
        """Let the executor go."""
        self._kept = ModelStore(0)
        self._executor.close()

    def _require_computed(self, wanted: Iterable[int]) -> None:
        computed = set(np.concatenate([*self._chunks, np.zeros(0, dtype=np.int64)]).tolist())
        for position in wanted:
            if position not in computed:
                raise ProblemError(
                    f"only devices that computed in this round can upload, got device {position}. "
                    "Let the planner ask it first."
                )

    def _fetched(self, store: ModelStore[Kept], positions: Iterable[int]) -> dict[int, Parameters]:
        """Return the models that are still there."""
        here = {position: kept for position in positions if (kept := store.get(position)) is not None}
        models = zip(here, self._executor.fetch(list(here.values())), strict=True)
        return {position: model for position, model in models if model is not None}

    def _computed_again(self, positions: Collection[int]) -> ModelStore[Kept]:
        assert self._round is not None  # report comes first
        store: ModelStore[Kept] = ModelStore(len(positions), only=positions)
        chunks = [chunk for chunk in self._chunks if np.isin(chunk, list(positions)).any()]
        for _ in self._executor.updates(*self._round, chunks, store, self._num_local_steps):
            pass
        return store


def keep_best(
    local: LocalWork, round_index: int, chunk: ComputedChunk, store: ModelStore[Parameters]
) -> Reports:
    """Return a chunk's reports, and offer its models to the store; refuse numbers that are not finite."""
    at = chunk.positions
    require_finite_reports(round_index, local.pool.device_ids[at], chunk.gradient_norms, chunk.loss)
    reports = local.reports(at, chunk.gradient_norms, chunk.loss, chunk.loss_lipschitz, chunk.smoothness)
    store.offer(at, reports.contribution, partial(unstack, chunk.parameters))
    return reports
