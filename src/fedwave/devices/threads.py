"""All devices on this machine: threads work through chunks of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fedwave.devices.crew import CrewDevices, Figures, keep_best
from fedwave.devices.model_store import ModelStore
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.devices.workers import Workers
from fedwave.learning import Parameters
from fedwave.units import IntArray


class ThreadDevices(CrewDevices[Parameters]):
    """Devices computed by threads. Memory grows with the models kept, not with the devices."""

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, *, num_workers: int = 0) -> None:
        super().__init__(local, evaluation, ThreadCrew(local, evaluation, num_workers=num_workers))


class ThreadCrew:
    """Threads that compute chunks; the models that are kept stay in memory."""

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, *, num_workers: int) -> None:
        self._local = local
        self._evaluation = evaluation
        self._workers = Workers(num_workers)

    def updates(
        self,
        round_index: int,
        parameters: Parameters,
        chunks: Sequence[IntArray],
        store: ModelStore[Parameters],
    ) -> Iterator[Figures]:
        """Yield the figures of the chunks in their order."""
        for chunk in self._workers.map(partial(self._local.compute, round_index, parameters), chunks):
            yield keep_best(self._local, round_index, chunk, store)

    def fetch(self, kept: Sequence[Parameters]) -> Iterator[Parameters]:
        """Yield the models: they are here."""
        return iter(kept)

    def evaluations(self, parameters: Parameters, chunks: Sequence[IntArray]) -> Iterator[Figures]:
        """Yield the results of the chunks in their order."""
        outcomes = self._workers.map(partial(self._evaluation.compute, parameters), chunks)
        for at, (loss, metric) in zip(chunks, outcomes, strict=True):
            yield at, loss, metric

    def close(self) -> None:
        """Stop the threads."""
        self._workers.close()
