"""Settings beside a baseline: each one's own figures, and differences and ratios on the same seeds.

Seeds are other partitions, first models and cells, and differ more than schemes do: the intervals of two
settings overlap where every seed says the same. So a setting is compared with the baseline within each seed,
accuracy and loss by their difference, costs by their ratio. The test is Student's, of the differences or of
the logarithms of the ratios, and Holm's method corrects it over all of them.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedwave.errors import ConfigError, did_you_mean
from fedwave.intervals import Interval, Median, Ratio
from fedwave.metric import Metric
from fedwave.runs.compare import FinishedRun, common_metric, common_target, group_by_name
from fedwave.runs.inference import LEVEL, holm
from fedwave.runs.measures import Measure, measures_of
from fedwave.runs.notebook import to_frame
from fedwave.runs.text_table import Best, TextTable

Estimate = Interval | Median | Ratio


@dataclass(frozen=True)
class Compared:
    """One measure of one setting: by seed, over seeds, and beside the baseline (None for itself)."""

    by_seed: Mapping[int, float]
    own: Interval | Median
    paired: Interval | Ratio | None = None
    p_value: float = math.nan  # corrected by Holm's method
    is_best: bool = False
    lacks_pairs: bool = False  # whether seeds are left out that only one has a number for

    @property
    def shown_pairing(self) -> str:
        """The difference or ratio, with a star if chance alone is unlikely to make it."""
        if self.paired is None:
            return ""
        star = " *" if self.p_value < LEVEL else ""
        return f"{self.paired}{star}{'†' if self.lacks_pairs else ''}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Settings beside a baseline; ``rows[setting][measure]`` is one of its cells.

    ``final`` and ``costs`` are its tables as text. ``to_latex()``, ``to_markdown()``, ``to_csv()`` and
    ``to_json()`` write it; ``frame()`` is a data frame of full precision.
    """

    groups: Mapping[str, Sequence[FinishedRun]]
    baseline: str
    metric: Metric
    target: float
    measures: tuple[Measure, ...]
    rows: Mapping[str, Mapping[str, Compared]]

    @property
    def shown_target(self) -> str:
        """The target as a reader writes it."""
        return f"{self.target:.0%}" if self.metric.is_share else f"{self.target:.3g}"

    @property
    def final(self) -> TextTable:
        """What every setting came to in its last round, and the difference to the baseline."""
        leading = {
            "run": list(self.groups),
            "dataset": ["/".join(sorted({_dataset(run) for run in group})) for group in self.groups.values()],
            "seeds": [str(len(group)) for group in self.groups.values()],
            "rounds": [_rounds(group) for group in self.groups.values()],
        }
        if len(set(leading["dataset"])) == 1 and len(self.groups) > 1:
            del leading["dataset"]
        return self._table(leading, [one for one in self.measures if not one.is_of_target], {})

    @property
    def costs(self) -> TextTable:
        """What every setting paid until the target, and how many times as much as the baseline."""
        reached = [
            f"{sum(map(math.isfinite, row['rounds_to_target'].by_seed.values()))} of {len(self.groups[name])}"
            for name, row in self.rows.items()
        ]
        measures = [one for one in self.measures if one.is_of_target]
        named = [replace(measures[0], heading=f"rounds to {self.shown_target}"), *measures[1:]]
        return self._table({"run": list(self.groups)}, named, {"reached by": reached})

    def _table(
        self, leading: dict[str, list[str]], measures: Sequence[Measure], last: dict[str, list[str]]
    ) -> TextTable:
        columns = dict(leading)
        for measure in measures:
            cells = [row[measure.name] for row in self.rows.values()]
            columns[measure.heading] = [Best(cell.own) if cell.is_best else str(cell.own) for cell in cells]
            if measure.is_tested and any(cell.paired is not None for cell in cells):
                columns[measure.paired_heading] = [cell.shown_pairing for cell in cells]
        columns |= last
        return TextTable(tuple(columns), tuple(zip(*columns.values(), strict=True)), self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers of the tables are, for the line below them."""
        cells = [cell for row in self.rows.values() for cell in row.values()]
        has_median = any(one.is_skewed for one in self.measures)
        found = []
        if any(len(group) > 1 for group in self.groups.values()):
            medians = "; seconds and joules are medians (fewer than six seeds: smallest to largest)"
            found.append(f"Means over seeds with 95 % intervals{medians if has_median else ''}.")
        if any(cell.paired is not None for cell in cells):
            tests = sum(math.isfinite(cell.p_value) for cell in cells)
            star = f"; * p < {LEVEL:g} (Student's t, Holm over {tests})" if tests else ""
            found.append(f"Δ, ×: difference and ratio to {self.baseline} on the same seeds{star}.")
        if any(cell.lacks_pairs for cell in cells):
            found.append("† not all seeds: only one has that seed, or reaches the target in it.")
        if len(self.groups) > 1 and not any(cell.paired is not None for cell in cells):
            found.append(f"No setting shares a seed with {self.baseline}: nothing can be paired.")
        lengths = {run.num_rounds for group in self.groups.values() for run in group}
        if len(lengths) > 1:
            found.append("Runs have different numbers of rounds: final figures are of each run's last.")
        return tuple(found)

    def table_rows(self) -> list[dict[str, Any]]:
        """Return the comparison as rows of full precision, one for each setting, shares as shares."""
        found = []
        for name, row in self.rows.items():
            group = self.groups[name]
            line: dict[str, Any] = {
                "run": name,
                "baseline": self.baseline,
                "dataset": "/".join(sorted({_dataset(run) for run in group})),
                "num_seeds": len(group),
                "num_rounds": _rounds(group),
                "target": self.target,
            }
            for measure in self.measures:
                line |= _line(measure, row[measure.name])
            found.append(line)
        return found

    def frame(self) -> Any:
        """Return ``table_rows`` as a data frame of pandas (or of polars, where only that is installed)."""
        rows = self.table_rows()
        return to_frame({key: [row[key] for row in rows] for key in rows[0]})

    def to_csv(self) -> str:
        """Return ``table_rows`` as CSV; an empty field is a number that there is not."""
        rows = self.table_rows()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: "" if _is_nan(value) else value for key, value in row.items()})
        return text.getvalue()

    def to_json(self) -> str:
        """Return ``table_rows`` as JSON, with every run's number by its seed, and the notes."""
        rows = [
            {
                **{key: None if _is_nan(value) else value for key, value in line.items()},
                "by_seed": {
                    measure: {
                        str(seed): None if _is_nan(value) else value for seed, value in cell.by_seed.items()
                    }
                    for measure, cell in self.rows[line["run"]].items()
                },
            }
            for line in self.table_rows()
        ]
        return json.dumps({"rows": rows, "notes": self.notes}, indent=2, ensure_ascii=False) + "\n"

    def to_latex(self) -> str:
        """Return both tables for a paper (package booktabs)."""
        return f"{self.final.to_latex()}\n{self.costs.to_latex()}"

    def to_markdown(self) -> str:
        """Return both tables for GitHub, the notes once."""
        return f"{replace(self.final, notes=()).to_markdown()}\n{self.costs.to_markdown()}"

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.groups)}; baseline {self.baseline})"

    def _repr_html_(self) -> str:
        return replace(self.final, notes=())._repr_html_() + self.costs._repr_html_()


def compare_runs(
    runs: Sequence[FinishedRun], *, baseline: str | None = None, target: float | None = None
) -> Comparison:
    """Return the settings of the runs beside the baseline, by default the first.

    ``target`` is the held-out metric whose cost is compared, by default the best that all runs reach.
    """
    metric = common_metric(runs)
    wanted = common_target(runs) if target is None else checked_target(target, metric)
    groups = group_by_name(runs)
    base = next(iter(groups)) if baseline is None else _called(baseline, list(groups))
    measures = measures_of(runs, metric, wanted)
    rows = {
        name: {one.name: _compared(one, group, None if name == base else groups[base]) for one in measures}
        for name, group in groups.items()
    }
    return Comparison(groups, base, metric, wanted, measures, _corrected(_with_best(rows, measures)))


def _called(word: str, names: Sequence[str]) -> str:
    """Return the name that is meant: the word itself, or the only one that has it within."""
    meant = [name for name in names if word.lower() in name.lower()]
    if word not in names and len(meant) != 1:
        raise ConfigError(f'no run is called "{word}". {did_you_mean(word, names)}')
    return word if word in names else meant[0]


def checked_target(target: float, metric: Metric) -> float:
    """Return a target that the metric can take, or say what was meant."""
    if metric.is_share and not 0.0 <= target <= 1.0:
        meant = f"Did you mean {target / 100.0:g}?" if 1.0 < target <= 100.0 else "Give a share, e.g. 0.6."
        raise ConfigError(f"the target {metric.name} must lie in 0 to 1, got {target:g}. {meant}")
    if not math.isfinite(target):
        raise ConfigError(f"the target {metric.name} must be a number, got {target:g}. Give a finite one.")
    return target


def estimate_of(found: Estimate) -> tuple[float, float, float]:
    """Return the mean or median with the two ends of its interval, NaN where one seed allows none."""
    if isinstance(found, Interval):
        return found.mean, found.mean - found.half_width, found.mean + found.half_width
    middle = found.median if isinstance(found, Median) else found.mean
    return (middle, found.low, found.high) if found.count > 1 else (middle, math.nan, math.nan)


def _dataset(run: FinishedRun) -> str:
    return run.experiment.data.dataset.kind


def _rounds(group: Sequence[FinishedRun]) -> str:
    return "/".join(map(str, sorted({run.num_rounds for run in group})))


def _line(measure: Measure, cell: Compared) -> dict[str, float]:
    """Return a measure's fields of a row: own and paired figures with both ends, and the p-value."""
    own = [value / measure.scale for value in estimate_of(cell.own)]
    paired = [math.nan] * 3 if cell.paired is None else list(estimate_of(cell.paired))
    paired = paired if measure.has_ratio else [value / measure.scale for value in paired]
    beside = "ratio" if measure.has_ratio else "difference"
    names = (measure.name, f"{measure.name}_{beside}")
    fields = {
        f"{name}{end}": value
        for name, values in zip(names, (own, paired), strict=True)
        for end, value in zip(("", "_low", "_high"), values, strict=True)
    }
    return {**fields, f"{measure.name}_p": cell.p_value} if measure.is_tested else fields


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _compared(
    measure: Measure, group: Sequence[FinishedRun], baseline: Sequence[FinishedRun] | None
) -> Compared:
    by_seed = {run.experiment.seed: measure.value(run) for run in group}
    own = measure.own(list(by_seed.values()))
    if baseline is None:
        return Compared(by_seed, own)
    base = {run.experiment.seed: measure.value(run) for run in baseline}
    shared = [(by_seed[seed], base[seed]) for seed in by_seed if seed in base]
    pairs = [(a, b) for a, b in shared if math.isfinite(a + b) and (not measure.has_ratio or min(a, b) > 0)]
    if not shared:
        return Compared(by_seed, own)
    lacks_pairs = len(pairs) < len({*by_seed, *base})
    return Compared(by_seed, own, measure.paired(pairs), measure.p_value(pairs), lacks_pairs=lacks_pairs)


def _with_best(
    rows: Mapping[str, Mapping[str, Compared]], measures: Sequence[Measure]
) -> dict[str, dict[str, Compared]]:
    """Return the cells with the best mean or median of each measure marked, where several are compared."""
    found = {name: dict(row) for name, row in rows.items()}
    for measure in measures:
        middles = {name: estimate_of(row[measure.name].own)[0] for name, row in found.items()}
        middles = {name: value for name, value in middles.items() if math.isfinite(value)}
        if not measure.is_tested or len(middles) < 2:
            continue
        best = (max if measure.is_better_high else min)(middles.values())
        if all(value == best for value in middles.values()):
            continue
        for name, value in middles.items():
            if value == best:
                found[name][measure.name] = replace(found[name][measure.name], is_best=True)
    return found


def _corrected(rows: dict[str, dict[str, Compared]]) -> dict[str, dict[str, Compared]]:
    """Return the cells with their p-values corrected over all of them, by Holm's method."""
    places = [
        (name, measure)
        for name, row in rows.items()
        for measure, cell in row.items()
        if math.isfinite(cell.p_value)
    ]
    corrected = holm([rows[name][measure].p_value for name, measure in places])
    for (name, measure), p_value in zip(places, corrected, strict=True):
        rows[name][measure] = replace(rows[name][measure], p_value=p_value)
    return rows
