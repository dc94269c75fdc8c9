"""The page of a user's own runs: curves, who was selected, where the joules went, and what differs."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np

from fedwave import __version__
from fedwave.errors import RunError
from fedwave.pages.page import Html, Section, html_table, page
from fedwave.plots.batteries import CAPTION, battery_panels
from fedwave.plots.chart import Chart, ChartPanel, Series, looks_of, series_over_seeds
from fedwave.plots.runs import run_chart
from fedwave.plots.theory import theory_chart
from fedwave.runs.batteries import HOUR_S, battery_history
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name
from fedwave.runs.comparison import Comparison, compare_runs
from fedwave.runs.listing import run_folders
from fedwave.runs.message import message_of
from fedwave.runs.provenance import flatten
from fedwave.runs.tables import DEVICES, ROUNDS, read_table
from fedwave.runs.text_table import Best
from fedwave.runs.theory_rows import (
    CONSTANTS,
    SAYINGS,
    read_snapshots,
    theory_header,
    theory_rows,
    verdict,
)

Groups = dict[str, list[FinishedRun]]

PHASES = ("downlink", "compute", "report", "upload", "idle")
TERMS = (
    ("objective", "objective U − η₁E − η₂T"),
    ("contribution", "contribution U"),
    ("energy_j", "energy E"),
    ("delay_s", "time T"),
)


def runs_page(
    runs: Sequence[FinishedRun],
    *,
    baseline: str | None = None,
    target: float | None = None,
    made_at: datetime | None = None,
) -> str:
    """Return the page of some runs; those of one name and setting are one curve, averaged over seeds.

    ``baseline`` and ``target`` are those of ``compare_runs``; ``made_at`` is by default now.
    """
    comparison = compare_runs(runs, baseline=baseline, target=target)
    groups = group_by_name(runs)
    over_cell = {name: group for name, group in groups.items() if group[0].has_cell}
    selection = _selection(groups)
    sections = [
        Section(
            "results", "Results", _tables(comparison), [run_chart(runs), *(() if over_cell else selection)]
        ),
        *_over_a_cell(over_cell, selection),
        *_theory(groups),
        *_batteries(runs, groups),
        Section("differences", "What differs between the runs", _differences(groups)),
        Section("settings", "All settings", _settings(groups)),
        Section("again", "How to make it again", _commands(runs, baseline, target)),
    ]
    count, when = len(runs), (made_at or datetime.now(UTC)).strftime("%d %B %Y, %H:%M %Z")
    about = f"{count} run{'s' if count > 1 else ''}, read by fedwave {__version__} on {when}. "
    about += message_of(comparison)
    return page("fedwave: " + ", ".join(groups)[:120], f'<p class="soft">{escape(about)}</p>', sections)


# A figure is broken before its interval alone: spaces and dashes within either are kept together.
_KEPT = {" ± ": "\u00a0±\u00a0", " ×": "\u00a0×", "–": "\u2060–\u2060", " *": "\u00a0*"}
_BREAKS = re.compile("|".join(map(re.escape, _KEPT)))


def _tables(comparison: Comparison) -> str:
    """Return what the settings came to and paid, beside the baseline, with the numbers as a file."""
    parts = [
        html_table(table.header, [[_bold(cell) for cell in row] for row in table.rows])
        for table in (comparison.final, comparison.costs)
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in comparison.notes)
    link = f'<a download="comparison.csv" href="data:text/csv;charset=utf-8,{quote(comparison.to_csv())}">'
    download = f"<p>{link}Download as CSV</a>, in full precision; the best of each column is bold.</p>"
    return f'{"".join(parts)}<ul class="soft">{notes}</ul>{download}'


def _bold(cell: str) -> str:
    text = _BREAKS.sub(lambda found: _KEPT[found[0]], cell)
    return Html(f"<b>{escape(text)}</b>") if isinstance(cell, Best) else text


def _commands(runs: Sequence[FinishedRun], baseline: str | None, target: float | None) -> str:
    options = [f"--baseline {shlex.quote(baseline)}"] if baseline is not None else []
    options += [f"--target {target:g}"] if target is not None else []
    folders = [shlex.quote(str(run.path)) for run in runs]
    lines = [
        f"fedwave run {folder}/config.toml --out again/{shlex.quote(run.path.name)}"
        for folder, run in zip(folders, runs, strict=True)
    ]
    page_line = " ".join(["fedwave report", *_folders(runs), *options])
    return (
        f"<p>This page:</p><pre><code>{escape(page_line)}</code></pre>"
        f"<p>Its runs, from their own settings:</p><pre><code>{escape(chr(10).join(lines))}</code></pre>"
    )


def _folders(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the folders to name: the one that holds just these runs, if there is one, or each."""
    parent, paths = runs[0].path.parent, [run.path for run in runs]
    inside = {folder for folder in run_folders([parent]) if (folder / ROUNDS).is_file()}
    together = len(paths) > 1 and inside == set(paths)
    return [shlex.quote(str(path)) for path in ([parent] if together else paths)]


def _selection(groups: Groups) -> list[Chart]:
    """Return how often each device was selected, most often first: a fair scheme draws a flat line."""
    series = []
    for name, group in groups.items():
        shares = []
        for run in group:
            chosen = run.columns.get("selected_devices")
            devices = _devices(run)
            if chosen is None or devices is None:
                continue
            counts = np.zeros(len(devices))
            place = {int(device): at for at, device in enumerate(devices)}
            for row in chosen:
                for device in row:
                    if int(device) not in place:
                        raise RunError(
                            f"{run.path / DEVICES} has no device {device}, but {ROUNDS} says that it was "
                            "selected. Restore both; tables are not to be edited."
                        )
                    counts[place[int(device)]] += 1
            shares.append(np.sort(100.0 * counts / run.num_rounds)[::-1])
        if shares:
            length = min(map(len, shares))
            rows = [share[:length].tolist() for share in shares]
            series.append(series_over_seeds(name, range(1, length + 1), rows, **looks_of(list(groups))[name]))
    if not series:
        return []
    panel = ChartPanel(
        "", "devices, the most selected first", "rounds in which it was selected [%]", tuple(series)
    )
    return [Chart("selection", "Who was selected", "Each device's share of rounds, sorted.", (panel,), 1)]


def _devices(run: FinishedRun) -> list[int] | None:
    """Return the numbers of a run's training devices, from devices.csv; None if it has no such table."""
    if not (run.path / DEVICES).exists():
        return None
    return sorted({int(device) for device in read_table(run.path / DEVICES)["device"]})


def _batteries(runs: Sequence[FinishedRun], groups: Groups) -> list[Section]:
    """Return charges, deaths and prices by hours, and lifetimes run by run; nothing without batteries."""
    panels = battery_panels(runs)
    if not panels:
        return []
    metric = common_metric(runs)
    rows = []
    for name, group in groups.items():
        for run in group:
            own = battery_history(run)
            if own is not None:
                life = own.lifetimes
                deaths = [
                    _death(life[what], metric.name, is_share=metric.is_share)
                    for what in ("first_dead", "half_dead")
                ]
                counts = (life["most_dead"], life["dead_at_the_end"], f"{own.dead_device_hours:.1f}")
                lost = life["uploads_lost_to_flat_batteries"]
                rows.append([name, run.experiment.seed, *deaths, *counts, lost])
    header = ("run", "seed", "first dead", "half dead", "most dead", "dead at the end", "device-hours dead")
    table = html_table((*header, "uploads lost"), rows)
    chart = Chart("batteries", "Charge of devices", CAPTION, panels, 3)
    return [Section("batteries", "Batteries", table, [chart])]


def _death(found: Mapping[str, float] | None, metric: str, *, is_share: bool) -> str:
    if found is None:
        return "never"
    at = f"after {found['rounds']} rounds, {found['clock_s'] / HOUR_S:.3g} h"
    if f"heldout_{metric}" not in found:
        return at
    judged = found[f"heldout_{metric}"]
    return f"{at}, at {100.0 * judged:.3g} %" if is_share else f"{at}, at {judged:.3g}"


def _over_a_cell(groups: Groups, selection: list[Chart]) -> list[Section]:
    if not groups:
        return []
    charts = [*selection, *_per_device(groups), _phases(groups)]
    return [
        Section("energy", "Who was selected, and where the energy went", "", charts),
        Section("objective", "What the allocation aimed at", "", [_terms(groups)]),
    ]


def _phases(groups: Groups) -> Chart:
    panels, looks = [], looks_of(list(groups))
    for phase in PHASES:
        series = [
            _bar(name, [float(np.nansum(run.curve(f"{phase}_energy_j"))) for run in group], looks[name])
            for name, group in groups.items()
        ]
        if any(one.mean[0] > 0 for one in series):
            panels.append(ChartPanel(phase, "energy of all rounds [J]", "", tuple(series), kind="bars"))
    return Chart("phases", "Energy by phase", "Joules of all devices over all rounds.", tuple(panels), 3)


def _bar(name: str, values: list[float], look: Mapping[str, Any]) -> Series:
    return series_over_seeds(name, (0.0,), [[value] for value in values], **look)


def _per_device(groups: Groups) -> list[Chart]:
    series = []
    for name, group in groups.items():
        rows = []
        for run in group:
            if not (run.path / DEVICES).exists():
                continue
            table = read_table(run.path / DEVICES, required=["cumulative_energy_j"])
            last = table["round"] == table["round"].max()
            rows.append(np.sort(table["cumulative_energy_j"][last])[::-1])
        if rows:
            length = min(map(len, rows))
            values = [row[:length].tolist() for row in rows]
            series.append(
                series_over_seeds(name, range(1, length + 1), values, **looks_of(list(groups))[name])
            )
    if not series:
        return []
    panel = ChartPanel("", "devices, highest first", "energy of all rounds [J]", tuple(series))
    return [Chart("per-device", "Energy by device", "Each device's joules, sorted.", (panel,), 1)]


def _terms(groups: Groups) -> Chart:
    panels = []
    for column, label in TERMS:
        series = []
        for name, group in groups.items():
            length = min(run.num_rounds for run in group)
            rows = [run.curve(column)[:length].tolist() for run in group]
            if all(math.isfinite(value) for row in rows for value in row):
                series.append(
                    series_over_seeds(name, range(1, length + 1), rows, **looks_of(list(groups))[name])
                )
        panels.append(ChartPanel("", "round", f"{label} of a round", tuple(series)))
    caption = "Problem (P) of each round: the objective and its terms, before weighting."
    return Chart("terms", "Objective by round", caption, tuple(panels), 4)


def _theory(groups: Groups) -> list[Section]:
    """Return what the theory says of the runs on which ``fedwave theory`` was called."""
    texts: list[str] = []
    charts: list[Chart] = []
    for name, group in groups.items():
        for run in group:
            snapshots = read_snapshots(run.path)
            if snapshots:
                rows = theory_rows(snapshots, (*CONSTANTS, *SAYINGS))
                heading = (
                    f"<h3>{escape(name)}, seed {run.experiment.seed}</h3><p>{escape(verdict(snapshots))}</p>"
                )
                texts.append(heading + html_table(theory_header(snapshots), rows))
                charts.append(replace(theory_chart(snapshots), name=f"theory-{len(charts)}"))
    return [Section("theory", "What the theory says", "".join(texts), charts)] if texts else []


def _flat_settings(run: FinishedRun) -> dict[str, Any]:
    settings = flatten(run.experiment.model_dump(mode="json", exclude_none=True))
    return {
        key.removesuffix(".kind"): value for key, value in settings.items() if key not in ("seed", "name")
    }


def _differences(groups: Groups) -> str:
    settings = {name: _flat_settings(group[0]) for name, group in groups.items()}
    keys = dict.fromkeys(key for own in settings.values() for key in own)
    differing = [key for key in keys if len({repr(own.get(key)) for own in settings.values()}) > 1]
    if not differing:
        return "<p>Nothing but their seeds.</p>"
    rows = [[key, *(own.get(key, "–") for own in settings.values())] for key in differing]
    return html_table(("setting", *settings), rows)


def _settings(groups: Groups) -> str:
    texts = []
    for name, group in groups.items():
        rows = [[key, value] for key, value in _flat_settings(group[0]).items()]
        table = html_table(("setting", "value"), rows)
        summary = html_table(("folder", "seed"), [[run.path, run.experiment.seed] for run in group])
        texts.append(f"<details><summary>{escape(name)}</summary>{summary}{table}</details>")
    return "".join(texts)
