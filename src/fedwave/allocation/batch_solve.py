"""Many problems at once: channel draws, weights, sweeps. The answers are those of a loop, bit for bit.

Problems are shared out over processes if that pays: the first ones are solved here, and their time tells. The
processes are forked, so that they find the problems in memory and nothing but answers is sent; where a
system cannot fork, all are solved here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fedwave.allocation.methods import allocate
from fedwave.allocation.packed_answers import packed, unpacked
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.problem_draws import problem_draws
from fedwave.allocation.solution import Allocation
from fedwave.errors import ProblemError, require_type
from fedwave.rng import Stream, generator

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_TRIED_FIRST = 4  # problems solved here before it is decided whether to share the others out
_WORTH_SHARING_S = 0.1  # of work left: to start a process and to hear from it takes a tenth of that
_MOST_PORTIONS = 250  # a byte names each

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
    found, ends_s = [], []
    for index in range(tried):
        found.append(_solve(job, index))
        ends_s.append(time.perf_counter())
    left = range(tried, len(every))
    count = min(workers or _num_cores(), len(left))
    if count > 1 and hasattr(os, "fork"):
        each_s = (ends_s[-1] - ends_s[0]) / (tried - 1)  # the first may have had to build the library
        if workers is not None or each_s * len(left) > _WORTH_SHARING_S:
            return found + _share_out(job, left, count)
    return found + [_solve(job, index) for index in left]


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
    return problem_draws(problems, stacked)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _solve(job: _Job, index: int) -> Allocation:
    problems, method, seed, options = job
    rng = None if seed is None else generator(seed, Stream.ALLOCATION, index)
    return allocate(problems[index], method, rng=rng, **options)


def _share_out(job: _Job, indices: Sequence[int], workers: int) -> list[Allocation]:
    """Return the answers, found by this process and forked ones: each takes portions until none is left.

    So a core that is busy elsewhere does less. A forked process ends with its work, so none is left over if
    this one is killed.
    """
    from multiprocessing import get_context

    fork = get_context("fork")
    size = -(-len(indices) // _MOST_PORTIONS)
    portions = [indices[first : first + size] for first in range(0, len(indices), size)]
    to_do, given = os.pipe()
    os.write(given, bytes(range(len(portions))))
    os.close(given)
    running = []
    try:
        for _ in range(workers - 1):
            ours, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=_send_answers, args=(job, portions, to_do, theirs), daemon=True)
            process.start()
            theirs.close()
            running.append((process, ours))
        found, failed = _answers(job, portions, to_do)
        for _, ours in running:
            more, also_failed = _received(ours)
            found.update(more)
            failed += also_failed
    finally:
        os.close(to_do)
        for process, ours in running:
            ours.close()
            process.terminate()  # after an error; otherwise it has ended
            process.join()
    if failed:
        _solve(job, min(failed))  # raises here what it raised there
        raise ProblemError(f"problem {min(failed)} failed in one process and not in another. Use workers=1.")
    return [one for portion in range(len(portions)) for one in found[portion]]


def _answers(
    job: _Job, portions: list[Sequence[int]], to_do: int
) -> tuple[dict[int, list[Allocation]], list[int]]:
    """Return the answers to the portions that this process got hold of, and the problem that failed, if any.

    Portions are taken in order, so all problems before one that fails are solved by somebody, or fail, too.
    """
    found: dict[int, list[Allocation]] = {}
    while token := os.read(to_do, 1):
        (portion,) = token
        found[portion] = []
        for index in portions[portion]:
            try:
                found[portion].append(_solve(job, index))
            except Exception:  # whatever it is, it is raised again for the user
                os.read(to_do, _MOST_PORTIONS)  # nobody need begin what comes later
                return found, [index]
    return found, []


def _send_answers(job: _Job, portions: list[Sequence[int]], to_do: int, answer: Connection) -> None:
    found, failed = _answers(job, portions, to_do)
    sizes = {portion: len(answers) for portion, answers in found.items()}
    answer.send((sizes, packed([one for answers in found.values() for one in answers]), failed))


def _received(ours: Connection) -> tuple[dict[int, list[Allocation]], list[int]]:
    try:
        sizes, sent, failed = ours.recv()
    except EOFError:
        raise ProblemError(
            "A process of allocate_many ended before its work was done, perhaps for want of memory. "
            "Use workers=1."
        ) from None
    answers = iter(unpacked(sent))
    return {portion: [next(answers) for _ in range(size)] for portion, size in sizes.items()}, failed
