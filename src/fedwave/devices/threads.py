"""All devices on this machine: threads work through chunks of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from fedwave.devices.chunked_devices import ChunkedDevices, Evaluated, keep_best
from fedwave.devices.model_store import ModelStore
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.learning import Parameters
from fedwave.server import Reports
from fedwave.units import IntArray

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_devices(
    local: LocalWork, evaluation: EvaluationWork, *, num_workers: int = 0
) -> ChunkedDevices[Parameters]:
    """Return devices computed by threads. Memory grows with the models kept, not with the devices."""
    return ChunkedDevices(local, evaluation, ThreadExecutor(local, evaluation, num_workers=num_workers))


class ThreadExecutor:
    """Threads that compute chunks, each with one core; the models that are kept stay in memory.

    Torch releases the interpreter while it computes, so threads scale as processes do, without copying models
    between them. A chunk is always computed by one single-threaded worker: the number of workers therefore
    changes neither the arithmetic nor its order, and results are bit-equal for any number.
    """

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, *, num_workers: int = 0) -> None:
        self.num_workers = num_workers or available_cores()
        self._local = local
        self._evaluation = evaluation
        self._threads_before = torch.get_num_threads()
        if self.num_workers == 1:  # what the server computes in between shall not take the other cores either
            torch.set_num_threads(1)
        self._pool = ThreadPoolExecutor(
            self.num_workers, thread_name_prefix="fedwave", initializer=torch.set_num_threads, initargs=(1,)
        )

    def updates(
        self,
        round_index: int,
        parameters: Parameters,
        chunks: Sequence[IntArray],
        store: ModelStore[Parameters],
        num_local_steps: int | None,
    ) -> Iterator[Reports]:
        """Yield the reports of the chunks in their order."""
        local = self._local if num_local_steps is None else self._local.with_steps(num_local_steps)
        for chunk in self.in_order(partial(local.compute, round_index, parameters), chunks):
            yield keep_best(local, round_index, chunk, store)

    def fetch(self, kept: Sequence[Parameters]) -> Iterator[Parameters]:
        """Yield the models: they are here."""
        return iter(kept)

    def evaluations(
        self, parameters: Parameters, chunks: Sequence[IntArray], *, on_training: bool
    ) -> Iterator[Evaluated]:
        """Yield the results of the chunks in their order."""
        work = self._evaluation.on(self._local.pool) if on_training else self._evaluation
        outcomes = self.in_order(partial(work.compute, parameters), chunks)
        for at, (loss, metric) in zip(chunks, outcomes, strict=True):
            yield at, loss, metric

    def in_order(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield ``function(item)`` in order, with few results in memory at any time."""
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self._pool.submit(function, item))
                if len(pending) > self.num_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # the consumer stopped early or a chunk failed
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Stop the threads and give torch its own thread count back."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(self._threads_before)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
