"""Many runs into run folders: several seeds, and every combination of several values of settings.

Each run is a folder like any other, made by ``run_experiment``. What is finished is left alone, and what was
killed is gone on with, to the same bits: the same call makes what is missing. Processes are those of
``batch``, as in a reproduction, which keeps figures of its runs in place of folders.
"""

from __future__ import annotations

import itertools
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fedwave.devices.threads import available_cores
from fedwave.errors import ConfigError, DivergenceError, RunError
from fedwave.experiments.build import with_part_defaults
from fedwave.experiments.load import load_experiment
from fedwave.experiments.schema import Experiment
from fedwave.files import read_bytes
from fedwave.runs.batch import Progress, run_batch
from fedwave.runs.compare import read_run
from fedwave.runs.folder import CONFIG, RunFolder
from fedwave.runs.listing import is_finished
from fedwave.runs.provenance import flatten, run_key, setting_differences
from fedwave.runs.round_cache import RoundCache
from fedwave.runs.run import resume_run, run_experiment
from fedwave.runs.tables import ROUNDS

MAX_RUNS = 10_000  # of one sweep: more is a slip of the fingers
FIRST_GUESS_S = 30.0  # of a run, before the first has ended
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_UNFIT = re.compile(r"[^\w.=+,-]+")  # in the name of a folder


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep: what is asked for, and where it lies."""

    source: str
    settings: tuple[str, ...]  # also its seed
    folder: Path
    experiment: Experiment = field(compare=False, repr=False)

    @property
    def command(self) -> str:
        """The command that makes this run alone."""
        return f"fedwave run {self.source} {' '.join(f'-s {one}' for one in self.settings)} -o {self.folder}"

    @property
    def rounds_done(self) -> int:
        """Rounds whose rows are on disk."""
        try:
            return max(0, read_bytes(self.folder / ROUNDS).count(b"\n") - 1)
        except OSError:  # not begun
            return 0


@dataclass(frozen=True)
class SweepResult:
    """What a sweep came to: the folders of all its runs, those that diverged, and how many were made now."""

    folders: tuple[Path, ...]
    diverged: dict[Path, str]
    num_made: int


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of "0-9", "0,3,7" or "0-4,10"."""
    seeds: list[int] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part.strip())
        if match is None:
            raise ConfigError(f'--seeds takes numbers and spans, got "{text}". For example: --seeds 0-9.')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MAX_RUNS:
            raise ConfigError(
                f'--seeds goes from a lower to a higher seed, got "{part}". Try {last}-{first}.'
            )
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))


def split_values(text: str) -> list[str]:
    """Return the values of "a,b,c"; commas within brackets or quotes belong to a value."""
    values, inside, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in _BRACKETS:
            inside += 1
        elif sign in _BRACKETS.values():
            inside -= 1
        elif sign == "," and inside == 0:
            values.append("")
            continue
        values[-1] += sign
    return [value.strip() for value in values]


def plan_sweep(
    source: str,
    words: Sequence[str] = (),
    *,
    fixed: Sequence[str] = (),
    seeds: Sequence[int] = (),
    out: Path | str = "runs",
) -> list[SweepRun]:
    """Return every combination of the words' values ("key=a,b,c") with every seed, each with its folder.

    ``fixed`` settings are those of all runs. Settings that a run cannot have are refused here, before any run
    is made. Without ``seeds``, the source's own.
    """
    keys, choices = [], []
    for word in words:
        key, equals, text = word.partition("=")
        own = split_values(text) if equals else [""]
        if not equals or not all([key.strip(), *own]):
            raise ConfigError(
                f'-s takes KEY=VALUE or KEY=A,B,C, got "{word}". For example: -s num_rounds=5,10.'
            )
        keys.append(key.strip())
        choices.append(list(dict.fromkeys(own)))
    combinations = list(itertools.product(*choices))
    given_seeds = seeds or (load_experiment(source, [*fixed, *_words(keys, combinations[0])]).seed,)
    count = len(combinations) * len(given_seeds)
    if count > MAX_RUNS:
        raise ConfigError(f"a sweep makes at most {MAX_RUNS:,} runs, got {count:,}. Leave values out.")
    short = Path(source).stem if source.endswith(".toml") else source.replace("/", "-")
    found = []
    for seed in given_seeds:  # seed by seed: a comparison can be looked at early
        for values in combinations:
            varied = [
                f"{key.split('.')[-1]}={value}"
                for key, value, own in zip(keys, values, choices, strict=True)
                if len(own) > 1
            ]
            name = _UNFIT.sub("_", "-".join([short, *varied, f"seed{seed}"]))
            given = (*fixed, *_words(keys, values), f"seed={seed}")
            found.append(SweepRun(source, given, Path(out) / name, load_experiment(source, given)))
    _require_own_folders(found)
    return found


def run_sweep(
    runs: Sequence[SweepRun],
    *,
    num_jobs: int | None = None,
    data_dir: Path | None = None,
    progress: Callable[[Progress[SweepRun]], None] = lambda _: None,
) -> SweepResult:
    """Make what is missing of the runs, so many at once (by default one a core, each with one thread).

    A run that diverges ends alone. A folder that holds a run of other settings is refused before any begins.
    """
    if num_jobs is not None and num_jobs < 1:
        raise ConfigError(f"--jobs must be >= 1, got {num_jobs}. Leave it out for one a core.")
    missing = [run for run in runs if not _is_made(run)]
    jobs = min(num_jobs or available_cores(), max(len(missing), 1))
    seconds: list[float] = []
    diverged: dict[Path, str] = {}

    def done(run: SweepRun, result: tuple[float, str]) -> None:
        seconds.append(result[0])
        if result[1]:
            diverged[run.folder] = result[1]

    if missing:
        make = partial(_make, data_dir=data_dir, num_threads=1 if jobs > 1 else 0)
        run_batch(
            [[run] for run in missing],
            make,
            num_processes=jobs,
            seconds_of=lambda _: statistics.mean(seconds) if seconds else FIRST_GUESS_S,
            done=done,
            progress=progress,
        )
    return SweepResult(tuple(run.folder for run in runs), diverged, len(missing))


def _words(keys: Sequence[str], values: Sequence[str]) -> list[str]:
    return [f"{key}={value}" for key, value in zip(keys, values, strict=True)]


def _require_own_folders(runs: Iterable[SweepRun]) -> None:
    seen: dict[Path, SweepRun] = {}
    for run in runs:
        other = seen.setdefault(run.folder, run)
        if other is not run:
            raise ConfigError(
                f"two runs of the sweep would lie in {run.folder}: {' '.join(other.settings)} and "
                f"{' '.join(run.settings)}. Make two sweeps with another --out each."
            )


def _is_made(run: SweepRun) -> bool:
    """Return whether the run is finished; raise if its folder holds another one."""
    if not (run.folder / CONFIG).is_file():
        return False
    held, wanted = (with_part_defaults(one) for one in (RunFolder(run.folder).experiment(), run.experiment))
    if run_key(held) != run_key(wanted):
        both = (flatten(one.model_dump(mode="json", exclude_none=True)) for one in (held, wanted))
        differing = [key for key in setting_differences(*both) if not key.startswith("execution.")]
        raise RunError(
            f"{run.folder} holds a run of other settings: {', '.join(differing[:3])}. "
            f"Put these runs elsewhere: --out {run.folder.parent}-2."
        )
    return (run.folder / ROUNDS).is_file() and is_finished(read_run(run.folder)) != "no"


def _make(run: SweepRun, cache: RoundCache, *, data_dir: Path | None, num_threads: int) -> tuple[float, str]:
    """Make or go on with one run; return its seconds, and why it diverged if it did."""
    del cache  # a run folder holds all its rounds
    start = time.monotonic()
    experiment = run.experiment
    if num_threads and experiment.execution.engine == "threads" and not experiment.execution.workers:
        execution = experiment.execution.model_copy(update={"workers": num_threads})
        experiment = experiment.model_copy(update={"execution": execution})
    try:
        if (run.folder / CONFIG).is_file():
            resume_run(run.folder, data_dir=data_dir)
        else:
            run_experiment(experiment, run.folder, data_dir=data_dir)
    except DivergenceError as error:
        return time.monotonic() - start, str(error)
    return time.monotonic() - start, ""
