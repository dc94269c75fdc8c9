"""Processes that work through groups of runs. A finished run is kept at once, so nothing finished is lost."""

from __future__ import annotations

import multiprocessing as mp
import os
import queue
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedwave.errors import FedwaveError, RunError
from fedwave.experiments import Experiment, experiment_from
from fedwave.reproduce.remember import Memory
from fedwave.reproduce.result import Results
from fedwave.reproduce.trial import run_trial


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    settings: dict[str, Any]  # plain, so that it can be sent to a process
    num_rounds: int
    is_probed: bool
    command: str

    @property
    def experiment(self) -> Experiment:
        """The settings of the run."""
        return experiment_from(self.settings)


Group = Sequence[Job]  # runs that may share computations, made one after another in one process
Done = Callable[[Job], None]


def work_through(
    groups: Sequence[Group],
    results: Results,
    *,
    num_processes: int,
    data_dir: Path | None,
    done: Done,
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Make all runs; ``done`` is called after each, ``waiting`` now and then."""
    if num_processes == 1:
        for group in groups:
            _work(group, results, data_dir, done)
        return
    context = mp.get_context("spawn")
    tasks, news = context.Queue(), context.Queue()
    for group in groups:
        tasks.put(group)
    for _ in range(num_processes):
        tasks.put(None)
    processes = [
        context.Process(target=_process, args=(tasks, news, results.folder, data_dir), daemon=True)
        for _ in range(min(num_processes, len(groups)))
    ]
    try:
        for process in processes:
            process.start()
        num_left = sum(len(group) for group in groups)
        while num_left:
            try:
                kind, content = news.get(timeout=1.0)
            except queue.Empty:
                _require_alive(processes)
                waiting()
                continue
            if kind == "error":
                raise RunError(content)
            done(content)
            num_left -= 1
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _require_alive(processes: Sequence[Any]) -> None:
    for process in processes:
        if process.exitcode not in (None, 0):
            raise RunError(
                f"a process of the reproduction was ended (exit code {process.exitcode}), perhaps for "
                "lack of "
                "memory. Start the same command again with fewer --jobs: finished runs are kept."
            )


def _process(tasks: Any, news: Any, folder: Path, data_dir: Path | None) -> None:
    """Work through groups until there is none; the parent hears of every finished run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    parent = os.getppid()

    def require_parent(_: int) -> None:
        if os.getppid() != parent:  # it was killed: nobody waits for us
            os._exit(1)

    try:
        while (group := tasks.get()) is not None:
            _work(group, Results(folder), data_dir, lambda job: news.put(("done", job)), require_parent)
    except FedwaveError as error:
        news.put(("error", str(error)))


def _work(
    group: Group,
    results: Results,
    data_dir: Path | None,
    done: Done,
    round_done: Callable[[int], None] | None = None,
) -> None:
    memory = Memory()
    for job in group:
        try:
            result = run_trial(
                job.experiment,
                command=job.command,
                is_probed=job.is_probed,
                memory=memory,
                data_dir=data_dir,
                round_done=round_done,
            )
        except FedwaveError as error:
            raise type(error)(f"{error} The run was: {job.command}") from error
        results.add(result)
        done(job)
