"""Jobs for tests of batches: they can be sent to processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from fedwave.errors import ProblemError
from fedwave.runs.batch import run_batch
from fedwave.runs.round_cache import RoundCache


@dataclass(frozen=True)
class SmallJob:
    name: str
    does: str = "ends"

    @property
    def command(self) -> str:
        return f"make {self.name}"


def make(job: SmallJob, cache: RoundCache, *, folder: Path) -> tuple[str, int, int]:
    """Write a file, and return who made it and how many jobs shared its cache before."""
    if job.does == "fails":
        raise ProblemError("the problem is wrong.")
    if job.does == "dies":
        while not (folder / "a.pid").exists():  # its neighbour is at work: a process may start slowly
            time.sleep(0.01)
        os._exit(3)
    (folder / f"{job.name}.pid").write_text(str(os.getpid()))
    if job.does == "lasts":
        time.sleep(60.0)
    cache.hits += 1
    return job.name, os.getpid(), cache.hits


if __name__ == "__main__":  # a batch that somebody kills
    import sys
    from functools import partial

    run_batch(
        [[SmallJob("a", "lasts")], [SmallJob("b", "lasts")]],
        partial(make, folder=Path(sys.argv[1])),
        num_processes=2,
        seconds_of=lambda _: 1.0,
        done=lambda *_: None,
        progress=lambda _: None,
    )
