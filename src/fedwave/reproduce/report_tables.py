"""The tables of the report, as rows of text: claims, their parts, Table II, the readings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from fedwave.intervals import Interval, interval
from fedwave.reproduce.claims import TABLE_2
from fedwave.reproduce.items import LEARNERS
from fedwave.reproduce.readings import Reading
from fedwave.reproduce.scheme_styles import DATASETS, shown_scheme
from fedwave.reproduce.seed_tables import Row, paired
from fedwave.reproduce.verdicts import JudgedClaim, JudgedPart

Table = tuple[Sequence[str], list[list[Any]]]

CLAIM_HEADER = ("", "verdict", "the paper says", "where", "seeds", "what decides")
PART_HEADER = ("", "measured for each seed", "claimed", "paper", "mean ± 95 %", "seeds", "p", "p (Holm)", "")
READING_HEADER = (
    "reading",
    *(f"{scheme} [%]" for scheme in LEARNERS),
    "NUFM − Per-FedAvg [points]",
    "NUFM − FedAvg [points]",
    "change of the first lead",
    "paper's order",
    "paper's lead",
)
SIDES = {"above": "above ", "below": "below ", "within": "within ±"}
# Columns of seeds.csv and what the report calls them; of a round.
CELL_FIGURES = {
    "accuracy": "accuracy [%]",
    "energy_j": "energy [normalised]",
    "delay_s": "time [normalised]",
    "objective": "objective of (P)",
    "contribution": "contribution U",
    "received": "uploads",
    "iterations": "iterations",
}
GRADIENT_FIGURES = {
    "accuracy": "accuracy [%]",
    "loss_19": "loss, round 19",
    "cpu_time_s": "CPU seconds of a round with its test",
    "gradient_norm": "norm of gradients",
    "share_below_turning_point": "devices below the turning point",
}
FEW_PARTS = 2  # so many are spelt out in the claim's own row


def claims_table(claims: Sequence[JudgedClaim]) -> Table:
    """Return a row for each claim; the verdict is its second cell."""
    rows = [
        [one.claim.name, one.verdict, one.claim.text, one.claim.source, one.num_seeds, _deciding(one)]
        for one in claims
    ]
    return CLAIM_HEADER, rows


def parts_table(claims: Sequence[JudgedClaim]) -> Table:
    """Return a row for each part of each claim."""
    return PART_HEADER, [[one.claim.name, *_part_cells(part)] for one in claims for part in one.parts]


def accuracy_table(rows: Sequence[Row]) -> Table:
    """Return Table II: accuracies over seeds and leads within seeds, the paper's in parentheses."""
    schemes = list(LEARNERS)
    header = [
        "",
        *(f"{scheme} [%]" for scheme in schemes),
        *(f"{better} − {worse} [points]" for better, worse in pairwise(schemes)),
        "seeds",
    ]
    table = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        paper = TABLE_2.get(dataset, ())
        own = [
            {
                r["seed"]: 100.0 * r["accuracy"]
                for r in rows
                if (r["dataset"], r["scheme"]) == (dataset, scheme)
            }
            for scheme in schemes
        ]
        cells = [_beside(by_seed.values(), said) for by_seed, said in zip_longest(own, paper)]
        for (better, worse), said in zip_longest(pairwise(own), pairwise(paper)):
            lead = [a - b for a, b in paired(better, worse).values()]
            cells.append(_beside(lead, said and said[0] - said[1], sign="+"))
        table.append([DATASETS.get(dataset, dataset), *cells, max(map(len, own))])
    return header, table


def figures_table(rows: Sequence[Row], figures: Mapping[str, str]) -> Table:
    """Return a row for each scheme and setting, with means and 95 % intervals over seeds."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        name = shown_scheme(row["scheme"], row["counting"])
        if row["parameter"] == "similarity_penalty":
            name += f", λ₁ = {row['value']:g}"
        groups.setdefault(name, []).append(row)
    table = []
    for name, own in groups.items():
        scales = [100.0 if column == "accuracy" else 1.0 for column in figures]
        shown = [
            interval([scale * row[column] for row in own])
            for column, scale in zip(figures, scales, strict=True)
        ]
        table.append([name, *("–" if not one.count else str(one) for one in shown), len(own)])
    return ("", *figures.values(), "seeds"), table


def readings_table(readings: Sequence[Reading]) -> Table:
    """Return a row for each reading of one dataset, after what the paper has there."""
    table = []
    if paper := TABLE_2.get(readings[0].dataset):
        leads = (f"{paper[0] - other:+.2f}" for other in paper[1:])
        table.append(["the paper", *(f"{accuracy:.2f}" for accuracy in paper), *leads, "", "", ""])
    return READING_HEADER, [*table, *map(_reading_cells, readings)]


def steps_table(readings: Sequence[Reading]) -> Table:
    """Return a row for each number of local steps on one dataset; the paper has no such accuracies."""
    return ("local steps", *READING_HEADER[1:-1]), [_reading_cells(reading)[:-1] for reading in readings]


def points(mean: float, half_width: float, sign: str = "") -> str:
    """Return a mean with its interval, to two decimals."""
    if math.isnan(mean):
        return "–"
    shown = round(mean, 2) + 0.0  # no minus before a zero
    return f"{shown:{sign}.2f}".replace("-", "−") + ("" if math.isnan(half_width) else f" ± {half_width:.2f}")


def _beside(values: Iterable[float], paper: float | None, sign: str = "") -> str:
    """Return the mean of ours with its interval and, where there is one, the paper's number."""
    shown = interval(list(values))
    ours = points(shown.mean, shown.half_width, sign)
    return ours if paper is None else f"{ours} ({paper:{sign}.2f})".replace("(-", "(−")


def _part_cells(part: JudgedPart) -> list[str]:
    own, seen = part.part, part.outcome
    return [
        own.name,
        f"{SIDES[own.side]}{own.threshold:g} {own.unit}".strip(),
        own.paper,
        _measured(part),
        str(seen.count),
        f"{seen.p_value:.2g}",
        f"{part.corrected_p:.2g}",
        part.decision + _more_seeds(part),
    ]


def _measured(part: JudgedPart) -> str:
    seen = part.outcome
    shown = str(Interval(seen.mean, seen.half_width, seen.count)).replace("-", "−")
    return f"{shown} {part.part.unit}".strip()


def _more_seeds(part: JudgedPart) -> str:
    if part.decision != "undecided":
        return ""
    if part.outcome.count < 2:
        return " (one seed tests nothing)"
    return f" (≈ {part.seeds_needed:,} seeds would)" if part.seeds_needed else " (over 10,000 seeds)"


def _deciding(one: JudgedClaim) -> str:
    """Return the parts in short: the numbers where they are few, else who stands in the way of the claim."""
    if len(one.parts) <= FEW_PARTS:
        return "; ".join(f"{p.part.name}: {_measured(p)}, {p.decision}{_more_seeds(p)}" for p in one.parts)
    holding = sum(part.decision == "holds" for part in one.parts)
    texts = [f"{holding or 'none'} of {len(one.parts)} parts {'holds' if holding == 1 else 'hold'}"]
    for decision in ("does not hold", "undecided"):
        own = [part for part in one.parts if part.decision == decision]
        if own:
            texts.append(f"{decision}: " + ", ".join(part.part.name + _more_seeds(part) for part in own))
    return "; ".join(texts)


def _reading_cells(reading: Reading) -> list[str]:
    leads = (reading.lead, reading.other_lead, reading.change)
    return [
        reading.name,
        *(points(one.mean, math.nan) for one in reading.accuracy),
        *(points(one.mean, one.half_width, sign="+") for one in leads),
        reading.order,
        reading.size,
    ]
