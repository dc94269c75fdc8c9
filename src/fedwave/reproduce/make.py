"""Reproduce: run what is missing, then write every item and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedwave.devices.threads import available_cores
from fedwave.errors import ConfigError, did_you_mean
from fedwave.pages.page import write_page
from fedwave.reproduce.costs import Costs
from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.jobs import Job, work_through
from fedwave.reproduce.plan import MAX_SEEDS, Wanted, every_item, grouped, missing_runs, wanted_runs
from fedwave.reproduce.profile import PAPER, QUICK, Profile
from fedwave.reproduce.report import html_report, markdown_report
from fedwave.reproduce.result import Results
from fedwave.reproduce.verdicts import JudgedClaim
from fedwave.reproduce.write import write_claims, write_item

RUNS = "runs"  # folder of the finished runs, gathered in runs.jsonl when all are made
HTML, MARKDOWN = "report.html", "README.md"


@dataclass(frozen=True)
class Progress:
    """How far a reproduction is; told after every run."""

    num_done: int
    num_runs: int
    seconds_left: float
    command: str  # of the run that is done; "" before the first


@dataclass(frozen=True)
class Cost:
    """What an item costs: runs in all, those that are missing, and minutes for these."""

    item: str
    title: str
    num_runs: int
    num_missing: int
    minutes: float


@dataclass(frozen=True)
class Reproduction:
    """Where the report is, and its verdicts."""

    report: Path
    claims: Sequence[JudgedClaim]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to reproduce. ``num_seeds`` None takes each dataset's own number, ``datasets`` () all."""

    items: Sequence[str] = ()
    is_quick: bool = False
    num_seeds: int | None = None
    datasets: Sequence[str] = ()
    num_jobs: int | None = None
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        for name in self.items:
            if name not in ITEMS:
                raise ConfigError(f'there is no item "{name}" to reproduce. {did_you_mean(name, ITEMS)}')
        for name in self.datasets:
            if name not in self.profile.datasets:
                known = dict.fromkeys(self.profile.datasets)
                raise ConfigError(f'no item is run on the dataset "{name}". {did_you_mean(name, known)}')
        if self.num_seeds is not None and not 1 <= self.num_seeds <= MAX_SEEDS:
            raise ConfigError(f"--seeds must be 1 to {MAX_SEEDS}, got {self.num_seeds}. The paper has one.")
        if self.num_jobs is not None and self.num_jobs < 1:
            raise ConfigError(f"--jobs must be >= 1, got {self.num_jobs}. Leave it out for one a core.")

    @property
    def profile(self) -> Profile:
        """The settings of the figures."""
        return QUICK if self.is_quick else PAPER

    @property
    def jobs(self) -> int:
        """Processes at once: by default one for each core, each with one thread."""
        return self.num_jobs or available_cores()

    def runs_of(self, item: str) -> list[Wanted]:
        """Return the runs of one item."""
        wanted = wanted_runs(ITEMS[item], self.profile, num_seeds=self.num_seeds, datasets=self.datasets)
        return list(wanted)


def reproduce(
    request: Request, out: Path, *, progress: Callable[[Progress], None] = lambda _: None
) -> Reproduction:
    """Run what is missing and write the report; what is finished already, also of other items, is used."""
    results = Results(out / RUNS)
    items = [item.name for item in every_item(request.items)]
    wanted = [run for name in items for run in request.runs_of(name)]
    missing = missing_runs(wanted, results)
    if missing:
        _run(request, missing, results, _known_costs(wanted, results), progress)
    results.gather()
    return write_report(request, out)


def write_report(request: Request, out: Path) -> Reproduction:
    """Write every item that has finished runs, and the report over all of them."""
    results = Results(out / RUNS)
    written = [
        write_item(item, request.profile, results, out, num_seeds=request.num_seeds)
        for item in ITEMS.values()
    ]
    claims = write_claims(out)
    write_page(out / MARKDOWN, markdown_report(request.profile, written, claims))
    page = write_page(out / HTML, html_report(request.profile, written, claims))
    return Reproduction(page, claims)


def costs(request: Request, out: Path) -> list[Cost]:
    """Return what each item costs here; runs that an item before it makes already count there."""
    results = Results(out / RUNS)
    by_item = {item.name: request.runs_of(item.name) for item in every_item(request.items)}
    known = _known_costs([run for runs in by_item.values() for run in runs], results)
    left = {name: missing_runs(runs, results) for name, runs in by_item.items()}
    known.measure(request.profile.family, {run.point.dataset for runs in left.values() for run in runs})
    found, seen = [], set[str]()
    for name, runs in by_item.items():
        new = [run for run in left[name] if run.key not in seen]
        seen |= {run.key for run in new}
        seconds = sum(known.estimate_s(run.experiment) for run in new) / request.jobs
        found.append(Cost(name, ITEMS[name].title, len({run.key for run in runs}), len(new), seconds / 60.0))
    return found


def _run(
    request: Request,
    missing: Sequence[Wanted],
    results: Results,
    known: Costs,
    progress: Callable[[Progress], None],
) -> None:
    num_threads = 1 if request.jobs > 1 else available_cores()
    groups = grouped(missing, known, num_threads=num_threads)
    left = {run.point.command(run.seed): run for run in missing}
    is_busy = min(request.jobs, len(groups))

    def tell(command: str) -> None:
        seconds = sum(known.estimate_s(run.experiment) for run in left.values()) / is_busy
        progress(Progress(len(missing) - len(left), len(missing), seconds, command))

    def done(job: Job) -> None:
        run = left.pop(job.command)
        result = run.found(results)
        if result is not None:
            known.learn(run.experiment, result)
        tell(job.command)

    tell("")
    work_through(groups, results, num_processes=request.jobs, data_dir=request.data_dir, done=done)


def _known_costs(wanted: Sequence[Wanted], results: Results) -> Costs:
    known = Costs()
    for run in wanted:
        result = run.found(results)
        if result is not None:
            known.learn(run.experiment, result)
    return known
