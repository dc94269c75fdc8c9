"""Many problems at once: channel draws, weights, sweeps. The answers are those of a loop, bit for bit.

Problems are shared out over processes if that pays: the first ones are solved here, and their time tells. The
processes are forked, so that they find the problems in memory and nothing but answers is sent; where a
system cannot fork, all are solved here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation.methods import allocate
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.errors import FedwaveError, ProblemError, did_you_mean, require_type
from fedwave.rng import Stream, generator

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_TRIED_FIRST = 4  # problems solved here before it is decided whether to share the others out
_WORTH_SHARING_S = 0.3  # of work left: starting processes takes a tenth of that

_Job = tuple[list[AllocationProblem], str, int | None, dict[str, Any]]


def allocate_many(
    problems: Iterable[AllocationProblem] | AllocationProblem,
    method: str = "optimal",
    *,
    stacked: Mapping[str, ArrayLike] | None = None,
    seed: int | None = None,
    workers: int | None = None,
    **options: Any,
) -> list[Allocation]:
    """Return ``allocate(problem, method, **options)`` of each problem, in their order.

    ``problems`` are problems, or one problem with ``stacked`` arrays: ``{"channel_gain": gains}`` with
    ``gains[k]`` the k-th draw, and likewise for any other field. Methods that draw at random take ``seed``:
    problem k then has a generator of its own, so no answer depends on the others. ``workers`` is the number
    of processes, by default one per core where the work is worth it. It changes the time, never the answers.
    """
    every = _listed(problems, stacked)
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise ProblemError(f"workers must be a whole number >= 1, got {workers!r}. Use 1 for no processes.")
    job: _Job = (every, method, seed, options)
    tried = len(every) if workers == 1 else min(_TRIED_FIRST, len(every))
    start = time.perf_counter()
    found = [_solve(job, index) for index in range(tried)]
    left_s = (time.perf_counter() - start) / max(tried, 1) * (len(every) - tried)
    count = min(workers or _num_cores(), len(every) - tried)
    can_share = count > 1 and hasattr(os, "fork")
    if can_share and (workers is not None or left_s > _WORTH_SHARING_S):
        return found + _share_out(job, range(tried, len(every)), count)
    return found + [_solve(job, index) for index in range(tried, len(every))]


def _listed(
    problems: Iterable[AllocationProblem] | AllocationProblem, stacked: Mapping[str, ArrayLike] | None
) -> list[AllocationProblem]:
    if stacked is None:
        if isinstance(problems, AllocationProblem):
            return [problems]
        every = list(problems)
        for problem in every:
            require_type(
                problem, AllocationProblem, name="problems", fix="Give a list of AllocationProblem(...)."
            )
        return every
    if not isinstance(problems, AllocationProblem):
        raise ProblemError(
            "stacked arrays need one problem that has all other values, got several. Give the first of them."
        )
    return _unstacked(problems, stacked)


def _unstacked(problem: AllocationProblem, stacked: Mapping[str, ArrayLike]) -> list[AllocationProblem]:
    """Return the problem with each entry of the stacked arrays in turn."""
    known = [field.name for field in fields(AllocationProblem)]
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, values in stacked.items():
        if name not in known:
            raise ProblemError(
                f"stacked names no field of a problem, got {name!r}. {did_you_mean(name, known)}"
            )
        arrays[name] = np.asarray(values)
        if arrays[name].ndim == 0:
            raise ProblemError(f"stacked {name} must have an axis of draws, got one number. Use a list.")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise ProblemError(f"stacked arrays must have equally many draws, got {lengths or 'no arrays'}.")
    (num_draws,) = set(lengths.values())
    return [
        replace(problem, **{name: array[draw] for name, array in arrays.items()}) for draw in range(num_draws)
    ]


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _solve(job: _Job, index: int) -> Allocation:
    problems, method, seed, options = job
    rng = None if seed is None else generator(seed, Stream.ALLOCATION, index)
    return allocate(problems[index], method, rng=rng, **options)


def _share_out(job: _Job, indices: Sequence[int], workers: int) -> list[Allocation]:
    """Return the answers, every worker-th problem from each of the forked processes.

    A process ends with its share, so none is left over if this one is killed.
    """
    from multiprocessing import get_context

    fork = get_context("fork")
    shares = [indices[first::workers] for first in range(workers)]
    running = []
    for share in shares:
        ours, theirs = fork.Pipe(duplex=False)
        process = fork.Process(target=_solve_share, args=(job, share, theirs), daemon=True)
        process.start()
        theirs.close()
        running.append((process, ours))
    found: dict[int, Allocation] = {}
    try:
        for share, (_, ours) in zip(shares, running, strict=True):
            found.update(zip(share, _answers(ours), strict=True))
    finally:
        for process, ours in running:
            ours.close()
            process.terminate()  # after an error; otherwise it has ended
            process.join()
    return [found[index] for index in indices]


def _solve_share(job: _Job, share: Sequence[int], answer: Connection) -> None:
    try:
        answer.send([_solve(job, index) for index in share])
    except FedwaveError as error:
        answer.send(error)


def _answers(ours: Connection) -> list[Allocation]:
    try:
        answers = ours.recv()
    except EOFError:
        raise ProblemError(
            "A process of allocate_many ended before its work was done, perhaps for want of memory. "
            "Use workers=1."
        ) from None
    if isinstance(answers, FedwaveError):
        raise answers
    found: list[Allocation] = answers
    return found
