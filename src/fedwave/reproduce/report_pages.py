"""The report over all items, as a page and as Markdown: the claims first, then every figure, then how."""

from __future__ import annotations

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
    steps_table,
)
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import SEEDS
from fedwave.reproduce.verdicts import JudgedClaim
from fedwave.runs.provenance import NUMERICS_VERSION, versions

TITLE = "Efficient federated meta-learning over wireless networks, reproduced"
PAPER_LINK = "https://arxiv.org/abs/2108.06453"
CLASSES = {"holds": "holds", "holds in part": "part", "does not hold": "fails"}
INTRODUCTION = (
    "Every table and figure of "
    f"[Efficient Federated Meta-Learning over Multi-Access Wireless Networks]({PAPER_LINK}) (Yue et al.), "
    "made again by `fedwave reproduce`. Verdicts follow from the numbers by a stated test; none is written "
    "by hand."
)
QUICK = (
    "**A quick look** on the embedded digits, with few seeds and rounds: it shows that everything works, "
    "and says nothing about the paper."
)
TEST = (
    "Each seed is one partition, one first model and one cell, the same for all schemes. A part of a claim "
    "is a number for each seed; Student's t-test over seeds decides on which side of its threshold the mean "
    "lies (“within”: two one-sided tests), after Holm's correction over all parts of all claims, at 5 %. A "
    "claim holds if all of its parts do. Beside an undecided part stands how many seeds would probably "
    "decide it. `claims.csv` also has the exact sign-flip test of each part, which assumes less and, with "
    "few seeds, can decide nothing after the correction."
)
TINY = "Where the paper says ImageNet, this is Tiny ImageNet (64 × 64 pixels, 200 classes)."
TABLE_2 = (
    "In parentheses: the paper. Accuracies vary with a seed's partition, which all schemes share; leads are "
    "taken seed by seed, so that only their intervals compare schemes."
)
TESTED = "The same models, tested otherwise: what the paper leaves open about its test."
TRAINED = "Trained otherwise: what the paper leaves open about its training."
STEPPED = (
    "Accuracies in round 19 beside the losses of the figure: with how many local steps is the order of Table "
    "II seen? The paper's own table is for τ = 1, after all rounds. Seed by seed, “paper's order” as under "
    "Table II."
)
READINGS = (
    "One reading is changed at a time, on the same seeds. “Paper's order”: yes if both leads of NUFM are "
    "above zero by their 95 % intervals, no if one is below, else unclear. “Paper's lead”: whether its lead "
    "over Per-FedAvg lies in the interval of ours; unclear if zero does as well. These intervals are not "
    "corrected for their number."
)
READ_AS = {"table-2": f"{TESTED} {READINGS}", "readings": f"{TRAINED} {READINGS}", "fig-3": STEPPED}


def html_report(profile: Profile, written: Sequence[Written], claims: Sequence[JudgedClaim]) -> str:
    """Return the report as one HTML file."""
    header, rows = claims_table(claims)
    for row, one in zip(rows, claims, strict=True):
        row[1] = Html(
            f'<span class="verdict {CLASSES.get(one.verdict, "open")}">{escape(one.verdict)}</span>'
        )
    parts = html_table(*parts_table(claims), css="parts")
    body = (
        html_table(header, rows, css="claims")
        + f'<p class="soft">{_html(TEST)}</p>'
        + f"<details><summary>Every part of every claim</summary>{parts}</details>"
    )
    sections = [
        Section("claims", "The paper's claims", body),
        *(_section(one, profile) for one in written if one.rows),
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
    parts += ["## The paper's claims", markdown_table(*claims_table(claims)), TEST]
    for one in written:
        if one.rows:
            name = one.item.name
            parts += [f"## {one.item.title}", *_notes(one, profile)]
            for said, table in _tables(one):
                parts += [*said, markdown_table(*table)]
            parts += [f"![{c.title}]({name}/{c.name}.png)\n\n*{c.caption}*" for c in one.charts]
            parts.append(f"Numbers: [per seed]({name}/{SEEDS}), [exact settings]({name}/{CONFIGS}).")
    parts += ["## Every part of every claim", markdown_table(*parts_table(claims))]
    parts += ["## Settings, versions, commands", "\n".join(f"- {line}" for line in _how(profile, written))]
    return "\n\n".join(parts) + "\n"


def _section(one: Written, profile: Profile) -> Section:
    notes = "".join(f"<p>{_html(note)}</p>" for note in _notes(one, profile))
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


def _notes(one: Written, profile: Profile) -> list[str]:
    """Return what a reader should know before the numbers: how many seeds, and what is missing."""
    seeds: dict[str, set[int]] = {point.dataset: set() for point in one.item.points(profile)}
    for row in one.rows:
        seeds[row["dataset"]].add(row["seed"])
    counts, is_short = [], False
    for dataset, own in seeds.items():
        wanted = one.item.seeds(profile, dataset)
        is_short |= len(own) < wanted
        counts.append(
            f"{DATASETS.get(dataset, dataset)} {len(own)}" + (f" of {wanted}" if len(own) < wanted else "")
        )
    missing = " **Not all runs were made; a seed counts once all of its runs are.**" if is_short else ""
    return [
        f"Seeds: {', '.join(counts)}.{missing}",
        *([TINY] if seeds.get("tiny-imagenet") else []),
    ]


def _tables(one: Written) -> list[tuple[Sequence[str], Table]]:
    """Return an item's tables, each after what is said before it."""
    tables: list[tuple[Sequence[str], Table]] = []
    if one.item.name == "table-2":
        tables.append(([TABLE_2], accuracy_table(one.rows)))
    if one.item.name == "fig-4":
        tables.append(([], figures_table(one.rows, CELL_FIGURES)))
    if one.item.name == "beyond":
        tables.append(([], figures_table(one.rows, GRADIENT_FIGURES)))
    before = [READ_AS[one.item.name]] if one.readings else []
    for dataset, own in by_dataset(one.readings).items():
        if one.item.name == "fig-3":
            tables.append(([*before, f"{order_seen(dataset, own)}."], steps_table(own)))
        else:
            tables.append(([*before, f"{summary(dataset, own)}."], readings_table(own)))
        before = []
    return tables


def _introduction(profile: Profile) -> list[str]:
    return [INTRODUCTION, QUICK] if profile.family == "digits" else [INTRODUCTION]


def _how(profile: Profile, written: Sequence[Written]) -> list[str]:
    quick = " --quick" if profile.family == "digits" else ""
    packages = ", ".join(f"{name} {version}" for name, version in versions().items() if name != "fedwave")
    num_runs = len({row["key"] for one in written for row in one.rows})
    return [
        f"Command: `fedwave reproduce{quick}`; one item: `fedwave reproduce fig-4{quick}`; what it costs: "
        f"`fedwave reproduce --list{quick}`",
        f"fedwave {__version__}, numerics version {NUMERICS_VERSION}; {packages}",
        f"Presets `{profile.family}/…`, {profile.num_rounds} rounds; n_k ∈ {_set(profile.num_selected)}, "
        f"τ ∈ {_set(profile.num_local_steps)}, M ∈ {_set(profile.num_blocks)}, "
        f"h_max ∈ {_set(profile.max_gains)}, η₁, η₂ ∈ {_set(profile.weights)}",
        "Loss and accuracy are means over the held-out devices after one adaptation step on their "
        "support sets; "
        "“round 19” is after 19 rounds; energy and time are means over a run's rounds, in the paper's "
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
