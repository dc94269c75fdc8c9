"""Threads that work through chunks of devices, and hand the results back in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """A pool of threads, each of which computes with one core.

    Torch releases the interpreter while it computes, so threads scale as processes do, without copying models
    between them. A chunk is always computed by one single-threaded worker: the number of workers therefore
    changes neither the arithmetic nor its order, and results are bit-equal for any number.
    """

    def __init__(self, num_workers: int = 0) -> None:
        self.num_workers = num_workers or available_cores()
        self._threads_before = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(
            self.num_workers, thread_name_prefix="fedwave", initializer=torch.set_num_threads, initargs=(1,)
        )

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
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

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
