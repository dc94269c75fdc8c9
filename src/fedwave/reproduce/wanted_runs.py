"""Which runs some items want, which are still missing, in which groups, and about how long they take."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedwave.errors import DataError
from fedwave.experiments import Experiment, load_experiment
from fedwave.reproduce.figure_point import FigurePoint
from fedwave.reproduce.items import Item
from fedwave.reproduce.profile import Profile
from fedwave.reproduce.single_run import require_figures, single_run
from fedwave.reproduce.steps import ARMS, arm_key
from fedwave.runs.kept_runs import KeptRun, KeptRuns
from fedwave.runs.provenance import processor
from fedwave.runs.round_cache import learning_key

# Seconds of a round of NUFM with one local step on one core of the machine that the docs were made on, to
# begin with. What is measured here takes their place.
FIRST_GUESS = {"fashion-mnist": 1.3, "cifar-10": 1.8, "cifar-100": 1.9, "tiny-imagenet": 7.0, "digits": 0.1}
# Shares of that round: the computing of all training devices, and the evaluation.
COMPUTING, EVALUATION = 0.75, 0.25
PLAIN = 0.65  # an ordinary gradient beside a meta-gradient
SHARED = 0.35  # what a run over a cell costs beside one alone, before any is measured
STARTING_S = 1.5  # to build a run


@dataclass(frozen=True)
class WantedRun:
    """One run of an item."""

    point: FigurePoint
    seed: int
    experiment: Experiment
    key: str
    group: str = ""  # runs that are compared with each other

    @property
    def command(self) -> str:
        """The command that makes this run alone."""
        return self.point.command(self.seed)

    def found(
        self, kept: KeptRuns, *, processor: str | None = None, with_curves: bool = True
    ) -> KeptRun | None:
        """Return what is kept of it, if it was run; a report also takes a run that lacks newer curves."""
        found = kept.find(
            self.key,
            with_readings=self.point.with_readings,
            curves=self.point.curves if with_curves else (),
            processor=processor,
        )
        if found is not None:
            require_figures(found, kept.gathered)
        return found


def wanted_runs(
    item: Item, profile: Profile, *, num_seeds: int | None, datasets: Sequence[str] = ()
) -> Iterator[WantedRun]:
    """Yield every run of an item: all points for the first seed, then for the next."""
    points = [point for point in item.points(profile) if not datasets or point.dataset in datasets]
    seeds = {point.dataset: num_seeds or item.seeds(profile, point.dataset) for point in points}
    for seed in range(max(seeds.values(), default=0)):
        for point in points:
            if seed < seeds[point.dataset]:
                yield _wanted(point, seed, f"{item.name}, {item.group(point)}")


def made_together(
    runs: Sequence[WantedRun], kept: KeptRuns, *, with_curves: bool = True, prefer: Sequence[str] = ()
) -> list[KeptRun] | None:
    """Return what is kept of runs that are compared with each other, all of one processor; None if not so.

    Kinds of processors round otherwise, and training carries that further: a difference of two runs would
    have it in it.
    """
    first = [run.processor for run in kept.every(runs[0].key)] if runs else []
    for kind in sorted(dict.fromkeys(first), key=lambda name: name not in prefer):
        found = [run.found(kept, processor=kind, with_curves=with_curves) for run in runs]
        whole = [run for run in found if run is not None]
        if len(whole) == len(runs):
            return whole
    return None


def missing_runs(wanted: Iterable[WantedRun], kept: KeptRuns) -> list[WantedRun]:
    """Return the runs that are not finished, each once, with all that its points want of it.

    What one kind of processor finished for a whole comparison is not run again; of one that is incomplete,
    all that this processor has not made is missing.
    """
    here = processor()
    groups: dict[tuple[str, int], list[WantedRun]] = {}
    for run in wanted:
        groups.setdefault((run.group, run.seed), []).append(run)
    once: dict[str, WantedRun] = {}
    for runs in groups.values():
        if made_together(runs, kept) is not None:
            continue
        for run in runs:
            known = once.get(run.key)
            once[run.key] = (
                run if known is None else _wanted(known.point.merged(run.point), run.seed, run.group)
            )
    return [run for run in once.values() if run.found(kept, processor=here) is None]


def _wanted(point: FigurePoint, seed: int, group: str = "") -> WantedRun:
    experiment = point.experiment(seed)
    return WantedRun(point, seed, experiment, point.key(experiment), group)


def grouped(missing: Sequence[WantedRun], costs: RunCosts) -> list[list[WantedRun]]:
    """Return the runs in groups that may share computations, by seed, the longest of a seed first.

    Seeds come one after another: when time runs out, the first ones are complete for every item. An arm
    shares nothing, but comes after its leader, if that is missing too.
    """
    keys = {run.key for run in missing}
    groups: dict[tuple[int, str, str], list[WantedRun]] = {}
    for run in missing:
        cell, selection = run.experiment.cell, run.experiment.selection
        width = str(cell.num_blocks if cell is not None else selection.num_selected)
        if arm := run.point.arm:
            leader = ARMS[arm].leader
            width = leader if leader and arm_key(run.experiment, leader) in keys else arm
        groups.setdefault((run.seed, learning_key(run.experiment), width), []).append(run)
    return sorted(groups.values(), key=lambda runs: (runs[0].seed, -sum(map(costs.seconds_of, runs))))


def relative_cost(experiment: Experiment) -> float:
    """Return about how many rounds of NUFM with one local step the run costs."""
    selection, algorithm = experiment.selection, experiment.algorithm
    is_everyone = selection.policy.kind != "uniform" or selection.everyone_computes
    few = selection.num_selected if isinstance(selection.num_selected, int) else 20
    if experiment.cell is not None and selection.num_selected == "auto":
        few = experiment.cell.num_blocks
    share = 1.0 if is_everyone else min(1.0, few / 50)
    step = {"plain": PLAIN, "first-order": 0.7, "hessian-free": 2.0}.get(algorithm.rule.kind, 1.0)
    computing = COMPUTING * share * step * algorithm.num_local_steps
    evaluation = EVALUATION * (2 if experiment.evaluation.training_devices else 1)
    return experiment.num_rounds * (computing + evaluation / experiment.evaluation.every)


@dataclass
class RunCosts:
    """Estimates seconds of runs; every finished one makes it better."""

    seconds_of_a_round: dict[str, list[float]] = field(default_factory=dict)  # by dataset
    shared: list[float] = field(default_factory=list)  # measured share of what a run over a cell would cost

    def learn(self, run: WantedRun, kept: KeptRun) -> None:
        """Take a finished run into account."""
        experiment = run.experiment
        alone = relative_cost(experiment)
        known = self.seconds_of_a_round.setdefault(experiment.data.dataset.kind, [])
        if kept.num_remembered == 0:
            known.append(max(kept.seconds - STARTING_S, 0.01) / alone)
        if experiment.cell is not None and known:
            self.shared.append(min(kept.seconds / (alone * statistics.median(known)), 1.5))

    def seconds_of(self, run: WantedRun) -> float:
        """Return the seconds that a run takes on one core, as far as is known."""
        experiment, dataset = run.experiment, run.experiment.data.dataset.kind
        known = self.seconds_of_a_round.get(dataset)
        one = statistics.median(known) if known else FIRST_GUESS.get(dataset, 1.0)
        alone = STARTING_S + one * relative_cost(experiment)
        if experiment.cell is None:
            return alone
        return alone * (statistics.mean(self.shared) if self.shared else SHARED)

    def measure(self, family: str, datasets: Iterable[str], data_dir: Path | None) -> list[str]:
        """Time a round of NUFM on every dataset of which nothing is known; return those that are not here."""
        guessed = []
        for dataset in sorted(datasets):
            if dataset in self.seconds_of_a_round:
                continue
            settings = [f"data.dataset={dataset}", "num_rounds=2", "execution.workers=1"]
            try:
                timed = single_run(load_experiment(f"{family}/nufm", settings), data_dir=data_dir)
            except DataError:  # the first guess must do
                guessed.append(dataset)
            else:
                self.seconds_of_a_round[dataset] = [timed.figures["cpu_time_s"]]
        return guessed
