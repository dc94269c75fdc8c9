"""Finished or running runs side by side: their curves, their final figures, grouped over seeds."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedwave.errors import RunError, require_type
from fedwave.experiments.schema import Experiment
from fedwave.intervals import Interval, Ratio, interval, ratio_interval
from fedwave.metric import ACCURACY, MEAN_ABSOLUTE_ERROR, Metric
from fedwave.runs.folder import RunFolder
from fedwave.runs.notebook import NotebookRun
from fedwave.runs.provenance import EXCEPT, flatten, setting_differences
from fedwave.units import FloatArray, carbon_g

CostName = Literal["rounds", "delay_s", "energy_j"]  # of a ``Cost``

MAX_SHOWN = 3  # settings that tell two runs of one name apart


@dataclass(frozen=True)
class Cost:
    """Rounds, seconds on the cell's clock and joules of all devices; NaN where there is no cell."""

    rounds: int
    delay_s: float
    energy_j: float


@dataclass(frozen=True, eq=False)
class FinishedRun(NotebookRun):
    """One run's settings and its table of rounds.

    Its tables are frames, ``.rounds``, ``.devices`` and ``.heldout``, and ``.plot()`` draws it.
    """

    path: Path
    experiment: Experiment
    columns: dict[str, Any]

    @property
    def num_rounds(self) -> int:
        """Rounds that were finished."""
        return len(self.columns["round"])

    def curve(self, name: str) -> FloatArray:
        """Return a numeric column, NaN where it was not measured."""
        values = self.columns.get(name)
        if values is None or isinstance(values, list):
            return np.full(self.num_rounds, np.nan)
        return np.asarray(values, dtype=np.float64)

    @property
    def metric(self) -> Metric:
        """What the run's task is judged by."""
        for known in (ACCURACY, MEAN_ABSOLUTE_ERROR):
            if f"heldout_{known.name}" in self.columns:
                return known
        return RunFolder(self.path).metric() or ACCURACY

    @property
    def heldout_metric(self) -> FloatArray:
        """The held-out devices' metric by rounds."""
        return self.curve(f"heldout_{self.metric.name}")

    @property
    def has_cell(self) -> bool:
        """Whether seconds and joules were counted."""
        return "cumulative_energy_j" in self.columns

    @property
    def carbon_intensity_g_per_kwh(self) -> float | None:
        """What a kilowatt-hour of the devices is worth in grams of CO2; None where nobody said."""
        cell = self.experiment.cell
        return None if cell is None else cell.carbon_intensity_g_per_kwh

    def carbon_g(self, energy_j: float) -> float:
        """Return the grams of CO2 of these joules of the run; NaN where nobody said what they are worth."""
        intensity = self.carbon_intensity_g_per_kwh
        return math.nan if intensity is None else carbon_g(energy_j, intensity)

    def cost_of_reaching(self, target: float) -> Cost | None:
        """Return what it took until the held-out metric first was that good; None if it never was."""
        values = self.heldout_metric
        reached = np.flatnonzero(values >= target if self.metric.higher_is_better else values <= target)
        if reached.size == 0:
            return None
        first = int(reached[0])
        return Cost(
            rounds=first + 1,
            delay_s=float(self.curve("cumulative_delay_s")[first]),
            energy_j=float(self.curve("cumulative_energy_j")[first]),
        )

    def last(self, name: str) -> float:
        """Return the last measured value of a column, NaN if there is none."""
        measured = self.curve(name)
        measured = measured[np.isfinite(measured)]
        return float(measured[-1]) if measured.size else math.nan

    def _facts(self) -> dict[str, object]:
        names = ["train_loss", "heldout_loss", f"heldout_{self.metric.name}"]
        names += ["cumulative_delay_s", "cumulative_energy_j"] if self.has_cell else []
        return {
            "run": f"{self.experiment.name}, seed {self.experiment.seed}",
            "dataset": self.experiment.data.dataset.kind,
            "rounds": f"{self.num_rounds} of {self.experiment.num_rounds}",
            **{name.replace("_", " "): self.last(name) for name in names},
            "folder": self.path,
        }


def read_run(path: Path | str) -> FinishedRun:
    """Return the run in a folder."""
    require_type(path, (str, Path), name="the run folder", fix="Give its path.")
    folder = RunFolder.open(Path(path))
    return FinishedRun(folder.path, folder.experiment(checks_parts=False), folder.table())


def distinct_runs(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Return the runs without those that are one and the same; of two, that with more rounds stays.

    A warning names what is left out: the same run twice would count as two seeds.
    """
    _require_runs(runs)
    kept: dict[Any, FinishedRun] = {}
    for run in runs:
        key = _key(run)
        other = kept.get(key)
        if other is None:
            kept[key] = run
            continue
        kept[key], second = (run, other) if run.num_rounds > other.num_rounds else (other, run)
        logging.getLogger("fedwave").warning(
            "%s and %s are the same run (seed %d): %s is left out.",
            other.path, run.path, run.experiment.seed, second.path,
        )  # fmt: skip
    return list(kept.values())


def group_by_name(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Return the runs by name: the seeds of one setting come together, and nothing else does.

    Runs of one name but different settings are told apart by what differs: "NUFM (meta_lr=0.1)". One run
    given twice is refused: it would count as two seeds.
    """
    _require_runs(runs)
    _require_distinct(runs)
    groups: dict[str, list[FinishedRun]] = {}
    for run, label in zip(runs, settings_labels(runs), strict=True):
        groups.setdefault(label, []).append(run)
    return groups


def settings_labels(runs: Sequence[FinishedRun]) -> list[str]:
    """Return each run's name, with what tells its settings from those of other runs of that name."""
    settings = _with_kinds([_settings_of(run) for run in runs])
    labels = []
    for run, own in zip(runs, settings, strict=True):
        namesakes = [
            of_other
            for other, of_other in zip(runs, settings, strict=True)
            if other.experiment.name == run.experiment.name and of_other != own
        ]
        differing = sorted({key for other in namesakes for key in setting_differences(other, own)})
        differing = [key for key in differing if not _is_option_of_another_part(key, differing)]
        labels.append(_label(run.experiment.name, differing, own))
    return labels


def _require_runs(runs: Sequence[FinishedRun]) -> None:
    require_type(runs, Iterable, name="runs", fix="Give a list: [read_run(folder), ...].")
    if not runs:
        raise RunError("there are no runs to compare, got an empty list. Give one run at least.")
    for run in runs:
        require_type(run, FinishedRun, name="a run", fix="Read it with read_run(folder).")


def _require_distinct(runs: Sequence[FinishedRun]) -> None:
    seen: dict[Any, FinishedRun] = {}
    for run in runs:
        key = _key(run)
        if run.path.resolve() in seen or key in seen:
            other = seen.get(key) or seen[run.path.resolve()]
            raise RunError(
                f"{run.path} and {other.path} are the same run (seed {run.experiment.seed}): it would count "
                "as two seeds. Give each run once."
            )
        seen[key] = seen[run.path.resolve()] = run


def _key(run: FinishedRun) -> Any:
    """Return what two runs have in common that are the same run."""
    return run.experiment.name, run.experiment.seed, tuple(sorted(map(repr, _settings_of(run).items())))


def _settings_of(run: FinishedRun) -> dict[str, Any]:
    """Return what makes the run's setting: all but its seed, and how it was computed and looked at."""
    settings = flatten(run.experiment.model_dump(mode="json", exclude_none=True))
    return {
        key: value
        for key, value in settings.items()
        if key not in ("seed", "name", "evaluation.every", "cell.description", "cell.preset")
        and (key in EXCEPT or not key.startswith("execution."))
    }


def _with_kinds(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return flat settings in which a part without options is named by its kind, as one with options is."""
    tables = {key.removesuffix(".kind") for own in settings for key in own if key.endswith(".kind")}
    return [{f"{key}.kind" if key in tables else key: own[key] for key in own} for own in settings]


def _is_option_of_another_part(key: str, differing: Sequence[str]) -> bool:
    """Return whether a setting differs because its part does: what the part is says it already."""
    above, _, last = key.rpartition(".")
    return last != "kind" and f"{above}.kind" in differing


def _label(name: str, differing: Sequence[str], settings: dict[str, Any]) -> str:
    if not differing:
        return name
    words = [key.removesuffix(".kind").split(".")[-1] for key in differing]
    shown = [f"{word}={settings.get(key, 'default')}" for word, key in zip(words, differing, strict=True)]
    more = [f"+{len(shown) - MAX_SHOWN}"] if len(shown) > MAX_SHOWN else []
    return f"{name} ({', '.join([*shown[:MAX_SHOWN], *more])})"


def common_target(runs: Sequence[FinishedRun]) -> float:
    """Return the best round figure of the held-out metric that every run reaches at some round.

    Shares are rounded to whole per cents, other metrics to two digits, towards the easier side.
    """
    metric = common_metric(runs)
    if metric.higher_is_better:
        best = min((float(np.nanmax(run.heldout_metric, initial=0.0)) for run in runs), default=0.0)
        percent = math.floor(100.0 * best)
        return (percent + 1) / 100.0 if (percent + 1) / 100.0 <= best else percent / 100.0
    best = max((float(np.nanmin(run.heldout_metric, initial=math.inf)) for run in runs), default=math.inf)
    if not math.isfinite(best) or best <= 0.0:
        return best
    exponent = math.floor(math.log10(best)) - 1
    digits = math.ceil(best / 10.0**exponent)
    # A quotient of floats may round to the wrong side of a whole number: look at its neighbours too.
    near = (float(f"{whole}e{exponent}") for whole in (digits - 1, digits, digits + 1))
    return next(figure for figure in near if figure >= best)


def common_metric(runs: Sequence[FinishedRun]) -> Metric:
    """Return the metric of the runs, which must be one and the same."""
    _require_runs(runs)
    names = sorted({run.metric.name for run in runs})
    if not names:
        raise RunError("there are no runs to compare, got an empty list. Give one run at least.")
    if len(names) > 1:
        raise RunError(
            f"the runs are judged by different metrics, {' and '.join(names)}. Compare runs of one task."
        )
    return runs[0].metric


def paired_difference(ours: Sequence[FinishedRun], theirs: Sequence[FinishedRun], column: str) -> Interval:
    """Return the difference of a final figure between two settings, paired by seed (same partitions)."""
    return interval([a.last(column) - b.last(column) for a, b in _pairs(ours, theirs)])


def paired_ratio(
    theirs: Sequence[FinishedRun], ours: Sequence[FinishedRun], cost: CostName, *, target: float
) -> Ratio:
    """Return how many times as much they pay as we do until the target, where both reach it.

    Seeds are other partitions and cells, and differ much more than schemes do; a ratio within each seed does
    not.
    """
    ratios = []
    for run, own in _pairs(theirs, ours):
        paid, base = run.cost_of_reaching(target), own.cost_of_reaching(target)
        if paid is not None and base is not None and getattr(base, cost) > 0 and getattr(paid, cost) > 0:
            ratios.append(getattr(paid, cost) / getattr(base, cost))
    return ratio_interval(ratios)


def _pairs(
    first: Sequence[FinishedRun], second: Sequence[FinishedRun]
) -> list[tuple[FinishedRun, FinishedRun]]:
    of_seed = {run.experiment.seed: run for run in second}
    return [(run, of_seed[run.experiment.seed]) for run in first if run.experiment.seed in of_seed]
