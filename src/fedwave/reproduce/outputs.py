"""Writes what a reproduction leaves: for each item tables, configs and pictures, and the report over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from fedwave.plots.chart import Chart, merged, plotted_rows
from fedwave.plots.draw_chart import draw_chart
from fedwave.reproduce.cell_charts import (
    against_costs,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    optimum_and_ives,
)
from fedwave.reproduce.items import ITEMS, Item
from fedwave.reproduce.learning_charts import figure_2, figure_2_lead, figure_3, gradients, turning_point
from fedwave.reproduce.panels import Found
from fedwave.reproduce.profile import Profile
from fedwave.reproduce.readings import (
    Reading,
    readings_of_local_steps,
    readings_of_the_test,
    readings_of_training,
)
from fedwave.reproduce.scale_charts import by_scale
from fedwave.reproduce.seed_tables import (
    CURVES,
    SEEDS,
    TEST_READINGS,
    WITH_LOSS_CURVES,
    Row,
    Tables,
    curve_row,
    read_rows,
    reading_rows,
    row_of,
    write_rows,
)
from fedwave.reproduce.studies import study_of
from fedwave.reproduce.study_charts import (
    accuracy_by_first_weights,
    accuracy_by_rate,
    faults,
    lead_by_rate,
    step_arms,
    step_leads,
    step_lengths,
)
from fedwave.reproduce.verdicts import JudgedClaim, JudgedPart, claim_rows, judge, part_row
from fedwave.reproduce.wanted_runs import WantedRun, made_together, wanted_runs
from fedwave.runs.kept_runs import KeptRun, KeptRuns

READINGS, CLAIMS_TABLE, CONFIGS, STUDY = "readings.csv", "claims.csv", "configs.toml", "comparisons.csv"

CHARTS: Mapping[str, Sequence[Callable[[Found, Sequence[Row]], Chart]]] = {
    "fig-2": (figure_2, figure_2_lead),
    "fig-3": (figure_3,),
    "fig-4": (figure_4, against_costs),
    "fig-5": (
        figure_5,
        optimum_and_ives("fig-5", "num_blocks", "URAL by the optimum and by IVES, by blocks"),
    ),
    "fig-6": (figure_6, optimum_and_ives("fig-6", "max_gain", "URAL by the optimum and by IVES, by gain")),
    "fig-7": (figure_7, optimum_and_ives("fig-7", "energy_weight", "URAL by the optimum and by IVES, by η₁")),
    "readings": (accuracy_by_first_weights,),
    "beyond": (gradients, turning_point),
    "steps": (step_leads, step_arms, step_lengths),
    "rates": (accuracy_by_rate, lead_by_rate),
    "robust": (faults,),
    "scales": (by_scale,),
}

WITH_ALL_CURVES = ("steps", "rates", "robust")  # items whose curves are written as they are kept


@dataclass(frozen=True)
class Written:
    """An item as it was written: its rows, its charts, and what else the paper may have meant by it."""

    item: Item
    rows: Sequence[Row] = ()
    charts: Sequence[Chart] = ()
    readings: Sequence[Reading] = ()
    study: Sequence[JudgedPart] = ()  # comparisons that judge no claim
    wanted_seeds: Mapping[str, int] = field(default_factory=dict)  # by dataset, of this request


def finished_runs(item: Item, profile: Profile, kept: KeptRuns, *, num_seeds: int | None) -> Found:
    """Return an item's finished runs, also beyond the seeds asked for, and without newer curves.

    A seed counts for a group of points once all of them are finished on one kind of processor: half a figure
    would be compared with nothing, or, drawn from what other items have run, with itself.
    """
    most = max(num_seeds or 0, *(item.seeds(profile, dataset) for dataset in profile.datasets))
    wanted = list(wanted_runs(item, profile, num_seeds=most))
    groups: dict[tuple[str, int], list[int]] = {}
    for at, run in enumerate(wanted):
        groups.setdefault((run.group, run.seed), []).append(at)
    usual = Counter(one.processor for run in wanted for one in kept.every(run.key)).most_common(1)
    prefer = [name for name, _ in usual]
    found: dict[int, KeptRun] = {}
    for places in groups.values():
        runs = [wanted[at] for at in places]
        own = made_together(runs, kept) or made_together(runs, kept, with_curves=False, prefer=prefer)
        found |= dict(zip(places, own or (), strict=own is not None))
    return [(run, found[at]) for at, run in enumerate(wanted) if at in found]


def write_item(
    item: Item, profile: Profile, kept: KeptRuns, folder: Path, *, num_seeds: int | None
) -> Written:
    """Write one item's files; of an item without a finished run, nothing."""
    found = finished_runs(item, profile, kept, num_seeds=num_seeds)
    wanted = {
        point.dataset: num_seeds or item.seeds(profile, point.dataset) for point in item.points(profile)
    }
    if not found:
        return Written(item, wanted_seeds=wanted)
    own = folder / item.name
    write_rows(own / SEEDS, [row_of(*one) for one in found])
    if item.name in WITH_LOSS_CURVES:
        write_rows(own / CURVES, [curve_row(*one, profile.num_rounds) for one in found])
    if item.name in WITH_ALL_CURVES:
        write_rows(own / CURVES, [row for one in found for row in _curve_rows(*one)])
    (own / CONFIGS).write_text(_configs(found), encoding="utf-8")
    if item.name == "table-2":
        write_rows(own / TEST_READINGS, [row for one in found for row in reading_rows(*one)])
    rows = read_rows(own / SEEDS)  # what is drawn and judged is what stands in the file
    readings = _readings(item, rows, own)
    if readings:
        write_rows(own / READINGS, [reading.row() for reading in readings])
    charts = _charts(item.name, found, rows)
    for chart in charts:
        write_rows(own / f"{chart.name}.csv", plotted_rows(chart))
        draw_chart(chart).save(own / f"{chart.name}.png")
    study = study_of(item.name, rows, read_rows(own / CURVES) if item.name in WITH_ALL_CURVES else ())
    if study:
        write_rows(own / STUDY, [part_row(part) for part in study])
    return Written(item, rows, charts, readings, study, wanted)


def write_claims(folder: Path) -> list[JudgedClaim]:
    """Judge the claims by the tables in a folder, and write the verdicts beside them."""
    judged = judge(Tables.read(folder, ITEMS))
    write_rows(folder / CLAIMS_TABLE, claim_rows(judged))
    return judged


def _readings(item: Item, rows: Sequence[Row], own: Path) -> list[Reading]:
    """Return the readings that an item's files show: other tests of Table II's models, or other training."""
    if item.name == "table-2":
        return readings_of_the_test(read_rows(own / TEST_READINGS))
    found = {"readings": readings_of_training, "fig-3": readings_of_local_steps}.get(item.name)
    return found(rows) if found else []


def _curve_rows(run: WantedRun, kept: KeptRun) -> Iterator[dict[str, Any]]:
    """Yield a row for each curve of a run: its value after each round."""
    for name in kept.curves:
        values = {f"round_{k}": value for k, value in enumerate(kept.curve(name).tolist(), start=1)}
        yield {**run.point.labels, "seed": run.seed, "curve": name, **values}


def _configs(found: Found) -> str:
    """Return every setting of an item in full, once for all seeds, with the command that runs it."""
    entries: dict[str, dict[str, Any]] = {}
    for run, _ in found:
        point = run.point
        labels = [point.dataset, point.scheme, point.counting, point.parameter]
        name = ", ".join(label for label in labels if label)
        name += f" = {point.value:g}" if point.value is not None else ""
        if name in entries:
            entries[name]["seeds"].append(run.seed)
            continue
        settings = run.experiment.model_dump(mode="json", exclude_none=True)
        settings = {key: value for key, value in settings.items() if key not in ("seed", "execution")}
        command = run.command.replace(f"--seed {run.seed}", "--seed SEED")
        entries[name] = {"command": command, "seeds": [run.seed], "settings": settings}
    return tomli_w.dumps({"run": [{"name": name, **entry} for name, entry in entries.items()]})


def _charts(item: str, found: Found, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts of an item; none where nothing was run."""
    if not rows:
        return []
    charts = [make(found, rows) for make in CHARTS.get(item, ())]
    return [merged(chart) for chart in charts if chart.panels]
