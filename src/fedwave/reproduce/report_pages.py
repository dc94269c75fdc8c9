"""The report over all items, as a page and as Markdown: the claims first, then every figure, then how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from fedwave import __version__
from fedwave.pages.page import Html, Section, html_table, page
from fedwave.reproduce.outputs import CONFIGS, Written
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER, Profile
from fedwave.reproduce.readings import by_dataset, order_seen, summary
from fedwave.reproduce.report_tables import (
    CELL_FIGURES,
    GRADIENT_FIGURES,
    Table,
    accuracy_table,
    claims_table,
    figures_table,
    parts_table,
    readings_table,
    scales_table,
    steps_table,
    study_table,
)
from fedwave.reproduce.report_texts import (
    INTRODUCTION,
    MEDIANS_NOTE,
    MISSING,
    QUICK,
    READ_AS,
    STUDIED,
    TABLE_2,
    TEST,
    TINY,
    TITLE,
    WORDS,
)
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import SEEDS
from fedwave.reproduce.studies import STUDIES
from fedwave.reproduce.verdicts import JudgedClaim
from fedwave.runs.provenance import NUMERICS_VERSION, versions

CLASSES = {"holds": "holds", "part": "part", "fails": "fails", "open": "open"}


def html_report(profile: Profile, written: Sequence[Written], claims: Sequence[JudgedClaim]) -> str:
    """Return the report as one HTML file."""
    header, rows = claims_table(claims)
    for row, one in zip(rows, claims, strict=True):
        row[1] = Html(f'<span class="verdict {CLASSES[one.standing]}">{escape(one.verdict)}</span>')
    parts = html_table(*parts_table(claims), css="parts")
    body = (
        html_table(header, rows, css="claims")
        + f'<p class="soft">{_html(TEST)}</p><p class="soft">{_html(WORDS)}</p>'
        + f"<details><summary>Every part of every claim</summary>{parts}</details>"
    )
    sections = [
        Section("claims", "The paper's claims", body),
        *(_section(profile, one) for one in written if one.rows or one.item.name in STUDIES),
        Section(
            "how",
            "Settings, versions, commands",
            "<ul>" + "".join(f"<li>{_html(line)}</li>" for line in _how(profile, written)) + "</ul>",
        ),
    ]
    introduction = "".join(f"<p>{_html(text)}</p>" for text in _introduction(profile))
    return page(TITLE, introduction, sections)


def markdown_report(profile: Profile, written: Sequence[Written], claims: Sequence[JudgedClaim]) -> str:
    """Return the report as Markdown, with the pictures beside it."""
    parts = [f"# {TITLE}", *_introduction(profile)]
    parts.append("The same with charts that answer to the mouse: [report.html](report.html).")
    parts += ["## The paper's claims", markdown_table(*claims_table(claims)), TEST, WORDS]
    for one in written:
        if not one.rows and one.item.name in STUDIES:
            parts += [f"## {one.item.title}", *_notes(profile, one)]
        if one.rows:
            name = one.item.name
            parts += [f"## {one.item.title}", *_notes(profile, one)]
            for said, table in _tables(one):
                parts += [*said, markdown_table(*table)]
            parts += [f"![{c.title}]({name}/{c.name}.png)\n\n*{c.caption}*" for c in one.charts]
            parts.append(f"Numbers: [per seed]({name}/{SEEDS}), [exact settings]({name}/{CONFIGS}).")
    parts += ["## Every part of every claim", markdown_table(*parts_table(claims))]
    parts += ["## Settings, versions, commands", "\n".join(f"- {line}" for line in _how(profile, written))]
    return "\n\n".join(parts) + "\n"


def _section(profile: Profile, one: Written) -> Section:
    notes = "".join(f"<p>{_html(note)}</p>" for note in _notes(profile, one))
    if not one.rows:
        return Section(one.item.name, one.item.title, notes)
    tables = "".join(
        "".join(f"<p>{_html(text)}</p>" for text in said) + html_table(*table) for said, table in _tables(one)
    )
    name = one.item.name
    files = (
        f"Beside this page: `{name}/{SEEDS}` (per-seed values and the command of each run), "
        f"`{name}/{CONFIGS}` (exact "
        f"settings), `{name}/*.csv` (plotted numbers)."
    )
    return Section(name, one.item.title, notes + tables, one.charts, f'<p class="soft">{_html(files)}</p>')


def _notes(profile: Profile, one: Written) -> list[str]:
    """Return what a reader should know before the numbers: how many seeds, and what is missing."""
    if not one.rows:
        return [MISSING.format(profile.command(one.item.name))]
    points = Counter(point.dataset for point in one.item.points(profile))
    made = Counter((row["dataset"], row["seed"]) for row in one.rows)
    complete = Counter(dataset for (dataset, _), number in made.items() if number == points[dataset])
    counts, is_short = [], False
    for dataset, wanted in one.wanted_seeds.items():
        own = complete[dataset]
        is_short |= own < wanted
        counts.append(f"{DATASETS.get(dataset, dataset)} {own}" + (f" of {wanted}" if own < wanted else ""))
    missing = ""
    if is_short:
        missing = (
            " **Not all runs were made; a seed counts once all of its runs are, those compared on one "
            f"kind of processor.** The rest: `{profile.command(one.item.name)}`."
        )
    return [
        f"Seeds: {', '.join(counts)}.{missing}",
        *([TINY] if any(row["dataset"] == "tiny-imagenet" for row in one.rows) else []),
    ]


def _tables(one: Written) -> list[tuple[Sequence[str], Table]]:
    """Return an item's tables, each after what is said before it."""
    tables: list[tuple[Sequence[str], Table]] = []
    if one.item.name == "table-2":
        tables.append(([TABLE_2], accuracy_table(one.rows)))
    if one.item.name == "fig-4":
        tables.append(([MEDIANS_NOTE], figures_table(one.rows, CELL_FIGURES)))
    if one.item.name == "beyond":
        tables.append(([], figures_table(one.rows, GRADIENT_FIGURES)))
    if one.item.name == "scales":
        tables.append(([MEDIANS_NOTE], scales_table(one.rows)))
    if one.study:
        tables.append(([STUDIED], study_table(one.study)))
    before = [READ_AS[one.item.name]] if one.readings else []
    for dataset, own in by_dataset(one.readings).items():
        if one.item.name == "fig-3":
            tables.append(([*before, f"{order_seen(dataset, own)}."], steps_table(own)))
        else:
            tables.append(([*before, f"{summary(dataset, own)}."], readings_table(own)))
        before = []
    return tables


def _introduction(profile: Profile) -> list[str]:
    return [INTRODUCTION, QUICK] if profile.is_quick else [INTRODUCTION]


def _how(profile: Profile, written: Sequence[Written]) -> list[str]:
    packages = ", ".join(f"{name} {version}" for name, version in versions().items() if name != "fedwave")
    num_runs = len({row["key"] for one in written for row in one.rows})
    return [
        f"Command: `{profile.command()}`; one item: `{profile.command('fig-4')}`; what it costs: "
        f"`{profile.command('--list')}`",
        f"fedwave {__version__}, numerics version {NUMERICS_VERSION}; {packages}",
        f"Presets `{profile.family}/…`, {profile.num_rounds} rounds; n_k ∈ {_set(profile.num_selected)}, "
        f"τ ∈ {_set(profile.num_local_steps)}, M ∈ {_set(profile.num_blocks)}, "
        f"h_max ∈ {_set(profile.max_gains)}, η₁, η₂ ∈ {_set(profile.weights)}",
        "Loss and accuracy are means over the held-out devices after one adaptation step on their "
        "support sets; "
        "“round 19” is after 19 rounds; a run's energy and time are those of all its rounds over their "
        "number, in the paper's "
        f"normalised units: over {profile.num_rounds} rounds in Figure 4, over {ROUND_OF_THE_PAPER} in "
        "Figures 5 to 7, whose runs end there",
        f"Runs in this report: {num_runs}. The command in a run's row of `{SEEDS}` alone gives the same "
        "numbers, to the last digit on the same kind of processor; `runs.jsonl` has every run's figures, "
        "loss by rounds, versions and processor",
    ]


def _html(text: str) -> str:
    """Return a line of Markdown with `code`, **strong** and links as HTML."""
    pieces = escape(text).split("`")
    line = "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))
    strong = line.split("**")
    line = "".join(f"<strong>{piece}</strong>" if at % 2 else piece for at, piece in enumerate(strong))
    if "](" in line:
        before, _, rest = line.partition("[")
        label, _, rest = rest.partition("](")
        address, _, after = rest.partition(")")
        line = f'{before}<a href="{address}">{label}</a>{after}'
    return line


def _set(values: Sequence[float]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", r"\|") for cell in line) + " |" for line in lines
    )
