"""What is still to be run for some items, and in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fedwave.experiments import Experiment
from fedwave.reproduce.costs import Costs
from fedwave.reproduce.items import ITEMS, Item
from fedwave.reproduce.jobs import Job
from fedwave.reproduce.point import Point, key_of, learning_key
from fedwave.reproduce.profile import Profile
from fedwave.reproduce.result import Result, Results

MAX_SEEDS = 1000


@dataclass(frozen=True)
class Wanted:
    """One run of an item."""

    point: Point
    seed: int
    experiment: Experiment
    key: str

    def found(self, results: Results) -> Result | None:
        """Return its result, if it was run."""
        return results.find(self.key, is_probed=self.point.is_probed)


def wanted_runs(
    item: Item, profile: Profile, *, num_seeds: int | None, datasets: Sequence[str] = ()
) -> Iterator[Wanted]:
    """Yield every run of an item: all points for the first seed, then for the next."""
    points = [point for point in item.points(profile) if not datasets or point.dataset in datasets]
    seeds = {point.dataset: num_seeds or item.seeds(profile, point.dataset) for point in points}
    for seed in range(max(seeds.values(), default=0)):
        for point in points:
            if seed < seeds[point.dataset]:
                experiment = point.experiment(seed)
                yield Wanted(point, seed, experiment, key_of(experiment))


def missing_runs(wanted: Iterable[Wanted], results: Results) -> list[Wanted]:
    """Return the runs that are not finished, each once: with probes if one of its points wants them."""
    once: dict[str, Wanted] = {}
    for run in wanted:
        if run.key not in once or run.point.is_probed:
            once[run.key] = run
    return [run for run in once.values() if run.found(results) is None]


def grouped(missing: Sequence[Wanted], costs: Costs, *, num_threads: int) -> list[list[Job]]:
    """Return the runs in groups that may share computations, by seed, the longest of a seed first.

    Seeds come one after another: when time runs out, the first ones are complete for every item.
    """
    groups: dict[tuple[int, str, str], list[Wanted]] = {}
    for run in missing:
        cell, selection = run.experiment.cell, run.experiment.selection
        width = cell.num_blocks if cell is not None else selection.num_selected
        groups.setdefault((run.seed, learning_key(run.experiment), str(width)), []).append(run)

    def order(entry: tuple[tuple[int, str, str], list[Wanted]]) -> tuple[int, float]:
        (seed, _, _), runs = entry
        return seed, -sum(costs.estimate_s(run.experiment) for run in runs)

    return [[_job(run, num_threads) for run in runs] for _, runs in sorted(groups.items(), key=order)]


def every_item(names: Sequence[str]) -> list[Item]:
    """Return the items of these names, or all."""
    return [ITEMS[name] for name in names] if names else list(ITEMS.values())


def _job(run: Wanted, num_threads: int) -> Job:
    settings = run.experiment.model_dump(mode="json", exclude_none=True)
    settings["execution"]["workers"] = num_threads
    return Job(settings, run.experiment.num_rounds, run.point.is_probed, run.point.command(run.seed))
