"""Reproduce: run what is missing, then write every item and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fedwave.devices.threads import available_cores
from fedwave.errors import ConfigError, did_you_mean
from fedwave.pages.page import write_page
from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.outputs import write_claims, write_item
from fedwave.reproduce.profile import PAPER, QUICK, Profile
from fedwave.reproduce.report_pages import html_report, markdown_report
from fedwave.reproduce.single_run import single_run
from fedwave.reproduce.steps import arm_run, leader_norms
from fedwave.reproduce.verdicts import JudgedClaim
from fedwave.reproduce.wanted_runs import RunCosts, WantedRun, grouped, missing_runs, wanted_runs
from fedwave.runs.batch import Progress, run_batch
from fedwave.runs.kept_runs import KeptRun, KeptRuns
from fedwave.runs.lock import locked
from fedwave.runs.round_cache import RoundCache

RUNS = "runs"  # folder of the finished runs, gathered in runs.jsonl when all are made
HTML, MARKDOWN = "report.html", "README.md"
MAX_SEEDS = 1000


@dataclass(frozen=True)
class ItemCost:
    """What an item costs: runs in all, those that are missing, and minutes for these."""

    item: str
    title: str
    num_runs: int
    num_missing: int
    minutes: float
    is_guess: bool = False  # a dataset is not here, so that no round of it could be timed


@dataclass(frozen=True)
class Reproduction:
    """Where the report is, and its verdicts."""

    report: Path
    claims: Sequence[JudgedClaim]


@dataclass(frozen=True, kw_only=True)
class ReproductionRequest:
    """What to reproduce: ``items`` and ``datasets`` () are all, ``num_seeds`` None each dataset's usual."""

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

    def wanted(self) -> dict[str, list[WantedRun]]:
        """Return the runs of each item."""
        return {
            name: list(
                wanted_runs(ITEMS[name], self.profile, num_seeds=self.num_seeds, datasets=self.datasets)
            )
            for name in self.items or ITEMS
        }


def reproduce(
    request: ReproductionRequest,
    out: Path,
    *,
    runs_nothing: bool = False,
    progress: Callable[[Progress[WantedRun]], None] = lambda _: None,
) -> Reproduction:
    """Run what is missing and write the report; what is finished already, also of other items, is used."""
    kept = KeptRuns(out / RUNS)
    wanted = [run for runs in request.wanted().values() for run in runs]
    missing = [] if runs_nothing else missing_runs(wanted, kept)
    if missing:
        costs = _known_costs(wanted, kept)
        num_threads = 1 if request.jobs > 1 else available_cores()
        make = partial(_make, folder=out / RUNS, data_dir=request.data_dir, num_threads=num_threads)
        run_batch(
            grouped(missing, costs),
            make,
            num_processes=request.jobs,
            seconds_of=costs.seconds_of,
            done=costs.learn,
            progress=progress,
        )
    kept.gather()
    kept.folder.mkdir(parents=True, exist_ok=True)
    with locked(kept.folder, waits=True):  # another may write its report into the same files
        return write_report(request, out)


def write_report(request: ReproductionRequest, out: Path) -> Reproduction:
    """Write every item that has finished runs, and the report over all of them."""
    kept = KeptRuns(out / RUNS)
    written = [
        write_item(item, request.profile, kept, out, num_seeds=request.num_seeds) for item in ITEMS.values()
    ]
    claims = write_claims(out)
    write_page(out / MARKDOWN, markdown_report(request.profile, written, claims))
    page = write_page(out / HTML, html_report(request.profile, written, claims))
    return Reproduction(page, claims)


def item_costs(request: ReproductionRequest, out: Path) -> list[ItemCost]:
    """Return what each item costs here; runs that an item before it makes already count there."""
    kept = KeptRuns(out / RUNS)
    by_item = request.wanted()
    costs = _known_costs([run for runs in by_item.values() for run in runs], kept)
    left = {name: missing_runs(runs, kept) for name, runs in by_item.items()}
    datasets = {run.point.dataset for runs in left.values() for run in runs}
    guessed = costs.measure(request.profile.family, datasets, request.data_dir)
    found, seen = [], set[str]()
    for name, runs in by_item.items():
        new = [run for run in left[name] if run.key not in seen]
        seen |= {run.key for run in new}
        minutes = sum(map(costs.seconds_of, new)) / request.jobs / 60.0
        is_guess = any(run.point.dataset in guessed for run in new)
        num_runs = len({run.key for run in runs})
        found.append(ItemCost(name, ITEMS[name].title, num_runs, len(new), minutes, is_guess))
    return found


def _make(
    run: WantedRun, cache: RoundCache, *, folder: Path, data_dir: Path | None, num_threads: int
) -> KeptRun:
    """Make one run and keep it at once: nothing that is finished is lost."""
    execution = run.experiment.execution.model_copy(update={"workers": num_threads})
    experiment = run.experiment.model_copy(update={"execution": execution})
    kept = KeptRuns(folder)
    if run.point.arm:
        norms = leader_norms(experiment, run.point.arm, kept)
        made = arm_run(experiment, run.point.arm, norms=norms, command=run.command, data_dir=data_dir)
    else:
        made = single_run(
            experiment,
            command=run.command,
            with_readings=run.point.with_readings,
            cache=cache,
            data_dir=data_dir,
        )
    kept.add(made)
    return made


def _known_costs(wanted: Sequence[WantedRun], kept: KeptRuns) -> RunCosts:
    costs = RunCosts()
    for run in wanted:
        if (own := run.found(kept)) is not None:
            costs.learn(run, own)
    return costs
