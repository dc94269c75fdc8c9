"""Many runs, some at once, each in a process; runs that may share computations follow one another in one.

A batch says which runs it makes, in groups, and how one is made and kept; what is kept stays when it stops.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from fedwave.errors import FedwaveError, RunError
from fedwave.runs.round_cache import RoundCache


class Job(Protocol):
    """One run to be made; it can be pickled."""

    @property
    def command(self) -> str:
        """The command that makes this run alone."""
        ...


JobT = TypeVar("JobT", bound=Job)
ResultT = TypeVar("ResultT")
# Makes a run, keeps what it came to, and returns that. It can be pickled.
Make = Callable[[JobT, RoundCache], ResultT]


@dataclass(frozen=True)
class Progress(Generic[JobT]):
    """How far a batch is: told before the first run and after every one."""

    num_done: int
    num_runs: int
    seconds_left: float
    last: JobT | None  # the run that is done; None before the first


def run_batch(
    groups: Sequence[Sequence[JobT]],
    make: Make[JobT, ResultT],
    *,
    num_processes: int,
    seconds_of: Callable[[JobT], float],
    done: Callable[[JobT, ResultT], None],
    progress: Callable[[Progress[JobT]], None],
) -> None:
    """Make all runs of all groups, and tell how far they are.

    ``seconds_of`` says about how long a run takes; ``done`` hears of each before the rest is estimated anew.
    """
    left = [job for group in groups for job in group]
    num_runs, num_busy = len(left), min(num_processes, len(groups))

    def tell(last: JobT | None) -> None:
        seconds = sum(map(seconds_of, left)) / max(num_busy, 1)
        progress(Progress(num_runs - len(left), num_runs, seconds, last))

    tell(None)
    runs = _one_by_one(groups, make) if num_processes == 1 else _at_once(groups, make, num_busy)
    with closing(runs):
        for job, result in runs:
            left.remove(job)
            done(job, result)
            tell(job)


def _one_by_one(
    groups: Sequence[Sequence[JobT]], make: Make[JobT, ResultT]
) -> Generator[tuple[JobT, ResultT], None, None]:
    for group in groups:
        cache = RoundCache()
        for job in group:
            yield job, _made(make, job, cache)


def _at_once(
    groups: Sequence[Sequence[JobT]], make: Make[JobT, ResultT], num_processes: int
) -> Generator[tuple[JobT, ResultT], None, None]:
    """Yield each run as it is done. A lane is one process; a group stays in its lane, with its cache."""
    context = mp.get_context("spawn")
    held, leash = context.Pipe(duplex=False)
    lanes = [
        ProcessPoolExecutor(1, mp_context=context, initializer=_on_leash, initargs=(held,))
        for _ in range(num_processes)
    ]
    waiting = deque(map(deque, groups))
    running: dict[Future[ResultT], tuple[ProcessPoolExecutor, deque[JobT]]] = {}  # with the rest of the group

    def start(lane: ProcessPoolExecutor, group: deque[JobT], *, is_new: bool) -> None:
        running[lane.submit(_in_lane, make, group[0], is_new)] = lane, group

    try:
        for lane in lanes:
            start(lane, waiting.popleft(), is_new=True)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                lane, group = running.pop(future)
                result, job = future.result(), group.popleft()
                if group:
                    start(lane, group, is_new=False)
                elif waiting:
                    start(lane, waiting.popleft(), is_new=True)
                yield job, result
    except BrokenProcessPool as error:
        raise RunError(
            "a process of the batch was ended, perhaps for lack of memory. Start the same command again with "
            "fewer --jobs: finished runs are kept."
        ) from error
    finally:
        if running:
            leash.close()  # their processes end, in the midst of whatever they do
        for lane in lanes:
            lane.shutdown(cancel_futures=True)
        leash.close()


def _on_leash(held: Any) -> None:
    """Let this process end at once when the parent lets go of the leash, or dies."""

    def end_with_it() -> None:
        with suppress(EOFError, OSError):
            held.recv()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    threading.Thread(target=end_with_it, daemon=True).start()


_worker_cache = RoundCache()  # of the group that this process is at


def _in_lane(make: Make[JobT, ResultT], job: JobT, is_new_group: bool) -> ResultT:
    global _worker_cache
    if is_new_group:
        _worker_cache = RoundCache()
    return _made(make, job, _worker_cache)


def _made(make: Make[JobT, ResultT], job: JobT, cache: RoundCache) -> ResultT:
    try:
        return make(job, cache)
    except FedwaveError as error:
        raise type(error)(f"{error} The run was: {job.command}") from error
