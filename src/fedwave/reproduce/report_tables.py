"""The tables of the report, as rows of text: claims, their parts, Table II, the readings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from fedwave.intervals import Interval, Ratio, interval, short_number
from fedwave.reproduce.cell_claims import SLOPE_OF_FIGURE_7, TIMES_OF_FIGURE_7
from fedwave.reproduce.items import LEARNERS
from fedwave.reproduce.learning_claims import TABLE_2
from fedwave.reproduce.parts import Part, log_slopes
from fedwave.reproduce.readings import Reading
from fedwave.reproduce.scheme_styles import DATASETS, shown_scheme
from fedwave.reproduce.seed_tables import Row, Tables, paired
from fedwave.reproduce.studies import finding
from fedwave.reproduce.verdicts import AGAINST, HOLDS, OPEN, SMALL, SMALLER, JudgedClaim, JudgedPart
from fedwave.runs.inference import most_often

Table = tuple[Sequence[str], list[list[Any]]]

CLAIM_HEADER = ("", "verdict", "the paper says", "where", "seeds", "what decides")
PART_HEADER = (
    "",
    "measured for each seed",
    "claimed",
    "mean, 95 %",
    "seeds",
    "is there an effect: p (Holm)",
    "smallest effect of interest",
    "is it smaller: p (Holm)",
    "the paper",
    "is it as large: p (Holm)",
    "one run, 95 %",
    "could that be the paper's run: p",
    "",
)
READING_HEADER = (
    "reading",
    *(f"{scheme} [%]" for scheme in LEARNERS),
    "NUFM − Per-FedAvg [points]",
    "Per-FedAvg − FedAvg [points]",
    "change of the first lead",
    "seeds in the paper's order",
    "paper's order",
    "one run's first lead",
    "paper's lead",
)
SIDES = {"above": "above ", "below": "below ", "within": "within ±"}
# Columns of seeds.csv and what the report calls them; of a round. Times have no mean in the paper's cell.
CELL_FIGURES = {
    "accuracy": "accuracy [%]",
    "energy_j": "energy [normalised]",
    "delay_s": "time [normalised]",
    "objective": "objective of (P)",
    "contribution": "contribution U",
    "received": "uploads",
    "iterations": "iterations",
}
MEDIANS = ("energy_j", "delay_s", "objective", "contribution")
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
    """Return Table II: each number's interval of the mean, that of one run, and the paper's beside them."""
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
    """Return a row for each scheme and setting: means and 95 % intervals, or medians and ranges, of seeds."""
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
            _over_seeds([scale * row[column] for row in own], column)
            for column, scale in zip(figures, scales, strict=True)
        ]
        table.append([name, *shown, len(own)])
    return ("", *figures.values(), "seeds"), table


def readings_table(readings: Sequence[Reading]) -> Table:
    """Return a row for each reading of one dataset, after what the paper has there."""
    table = []
    if paper := TABLE_2.get(readings[0].dataset):
        leads = (f"{better - worse:+.2f}" for better, worse in pairwise(paper))
        blank = [""] * (len(READING_HEADER) - 6)
        table.append(["the paper", *(f"{accuracy:.2f}" for accuracy in paper), *leads, *blank])
    return READING_HEADER, [*table, *map(_reading_cells, readings)]


def steps_table(readings: Sequence[Reading]) -> Table:
    """Return a row for each number of local steps on one dataset; the paper has no such accuracies."""
    return ("local steps", *READING_HEADER[1:-2]), [_reading_cells(reading)[:-2] for reading in readings]


def study_table(study: Sequence[JudgedPart]) -> Table:
    """Return a row for each comparison of a study."""
    header = ("", "mean, 95 %", "seeds", "p (Holm)", "smallest effect of interest", "smaller: p (Holm)", "")
    table = []
    for one in study:
        own, seen, corrected = one.part, one.outcome, one.corrected
        is_tested = not seen.is_exact and seen.count > 1
        table.append(
            [
                own.name,
                part_measured(one),
                str(seen.count),
                _p_values(seen.p_value, corrected.effect) if is_tested else "–",
                _interest(own),
                _p_values(seen.p_small, corrected.small) if is_tested else "–",
                finding(one),
            ]
        )
    return header, table


def scales_table(rows: Sequence[Row]) -> Table:
    """Return for each scale of u and each D_i the time at both ends of Figure 7, and its slope beside them.

    The slope is of logarithms over eta_1; “one run” says whether the paper's could have been one of ours.
    """
    tables = Tables({"": rows})
    weights = tables.values("")
    ends = (weights[0], weights[-1]) if weights else ()
    table = []
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        times = [tables.by_seed("", "delay_s", scheme=scheme, value=weight) for weight in ends]
        slope = interval(list(log_slopes(tables, "", "delay_s", weights, scheme=scheme).values()))
        is_in = abs(slope.mean - SLOPE_OF_FIGURE_7) <= slope.prediction
        table.append(
            [
                scheme.partition(", ")[2],
                *(_over_seeds(list(own.values()), "delay_s") for own in times),
                str(slope).replace("-", "−"),
                "too few seeds" if slope.count < 2 else "inside" if is_in else "outside",
                len(times[0]),
            ]
        )
    said = [f"time at η₁ = {end:g}" for end in ends]
    table.insert(0, ["the paper", *(f"{time:g}" for time in TIMES_OF_FIGURE_7), f"{SLOPE_OF_FIGURE_7:.3f}"])
    table[0] += [""] * 2
    return ("u and D_i", *said, "slope of log T, 95 %", "the paper's slope as one run", "seeds"), table


def points(mean: float, half_width: float, sign: str = "") -> str:
    """Return a mean with its interval, to two decimals."""
    if math.isnan(mean):
        return "–"
    shown = round(mean, 2) + 0.0  # no minus before a zero
    return f"{shown:{sign}.2f}".replace("-", "−") + ("" if math.isnan(half_width) else f" ± {half_width:.2f}")


def part_measured(part: JudgedPart) -> str:
    """Return a part's mean with its interval; of ratios the geometric one, of counts what they exclude."""
    own, seen = part.part, part.outcome
    if own.num_trials:
        never = f", below {most_often(own.num_trials):.1%} at 95 %".replace("%,", " %,").replace(
            "% at", " % at"
        )
        total = sum(own.values.values())
        return f"{total:g} of {own.num_trials}" + ("" if total else never)
    if own.is_ratio:
        low, high = seen.mean - seen.half_width, seen.mean + seen.half_width
        return str(Ratio(math.exp(seen.mean), math.exp(low), math.exp(high), seen.count))
    if seen.is_exact:
        return f"{short_number(seen.mean + 0.0)} {own.unit}".replace("-", "−").strip() + ", exact"
    shown = str(Interval(seen.mean, seen.half_width, seen.count)).replace("-", "−")
    return f"{shown} {own.unit}".strip()


def part_left(part: JudgedPart) -> str:
    """Return the effects that the present seeds leave, the interval of the mean: all others are excluded."""
    own, seen = part.part, part.outcome
    if seen.count < 2:
        return "one seed excludes nothing"
    if seen.is_exact:
        return ""
    low, high = seen.mean - seen.half_width, seen.mean + seen.half_width
    if own.is_ratio:
        return f"{math.exp(low):.2g} to {math.exp(high):.2g} times"
    return f"{low:+.2g} to {high:+.2g} {own.unit}".replace("-", "−").strip()


def _over_seeds(values: Sequence[float], column: str) -> str:
    """Return the mean with its interval or, where a mean does not exist, the median and the range."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "–"
    if column not in MEDIANS:
        return str(interval(finite))
    ends = f" ({short_number(min(finite), 3)} to {short_number(max(finite), 3)})" if len(finite) > 1 else ""
    return (short_number(statistics.median(finite), 3) + ends).replace("-", "−")


def _beside(values: Iterable[float], paper: float | None, sign: str = "") -> str:
    """Return the mean of ours with its interval and that of one run and, where there is one, the paper's."""
    shown = interval(list(values))
    ours = points(shown.mean, shown.half_width, sign)
    if paper is None:
        return ours
    said = f"{paper:{sign}.2f}".replace("-", "−")
    if shown.count < 2:
        return f"{ours} (paper {said})"
    is_out = abs(paper - shown.mean) > shown.prediction
    return f"{ours}; one run ± {shown.prediction:.2f} (paper {said}{', outside' if is_out else ''})"


def _part_cells(part: JudgedPart) -> list[str]:
    own, seen, corrected = part.part, part.outcome, part.corrected
    claimed = (
        "less than 1 times" if own.is_ratio else f"{SIDES[own.side]}{own.threshold:g} {own.unit}".strip()
    )
    has_paper, has_interest = own.paper is not None, own.interest is not None
    one_run = "" if not has_paper else str(Interval(seen.mean, seen.prediction, seen.count)).replace("-", "−")
    return [
        own.name + ("" if own.is_point else " (beside the point)"),
        claimed,
        part_measured(part),
        str(seen.count),
        "exact" if seen.is_exact else _p_values(seen.p_value, corrected.effect),
        _interest(own),
        _p_values(seen.p_small, corrected.small) if has_interest and not seen.is_exact else "",
        own.said,
        _p_values(seen.p_size, corrected.size) if has_paper and not seen.is_exact else "",
        one_run,
        f"{seen.p_run:.2g}" if has_paper and not seen.is_exact else "",
        part.decision,
    ]


def _p_values(p_value: float, corrected: float) -> str:
    return f"{p_value:.2g} ({corrected:.2g})"


def _interest(part: Part) -> str:
    if part.interest is None:
        return ""
    return (
        f"{100 * math.expm1(part.interest):.0f} %"
        if part.is_ratio
        else f"{part.interest:.3g} {part.unit}".strip()
    )


def _deciding(one: JudgedClaim) -> str:
    """Return the parts in short: the numbers where they are few, else where what holds and what does not."""
    why = f"{one.claim.untestable}; with raw u: " if one.claim.untestable and one.parts else ""
    if len(one.parts) <= FEW_PARTS:
        return why + "; ".join(
            f"{p.part.name}: {part_measured(p)}, {p.decision}{_open(p)}" for p in one.parts
        )
    by_measure: dict[str, list[JudgedPart]] = {}
    for part in one.parts:
        by_measure.setdefault(part.part.what, []).append(part)
    return why + ". ".join(
        f"{what[0].upper()}{what[1:]}: {_by_decision(own)}" for what, own in by_measure.items()
    )


def _by_decision(parts: Sequence[JudgedPart]) -> str:
    """Return where parts that measure the same hold, and where not."""
    texts = []
    for decision in dict.fromkeys((HOLDS, *AGAINST, OPEN)):
        own = [f"{p.part.where}{_open(p)}".strip() for p in parts if p.decision == decision]
        if own:
            texts.append(f"{decision} {', '.join(own)}".rstrip())
    return "; ".join(texts)


def _open(part: JudgedPart) -> str:
    left = part_left(part) if part.decision in (OPEN, SMALLER, SMALL) else ""
    return f" ({left})" if left else ""


def _reading_cells(reading: Reading) -> list[str]:
    leads = (reading.lead, reading.last_lead, reading.change)
    return [
        reading.name,
        *(points(one.mean, math.nan) for one in reading.accuracy),
        *(points(one.mean, one.half_width, sign="+") for one in leads),
        f"{reading.num_in_order} of {reading.lead.count}",
        reading.order,
        points(reading.lead.mean, reading.lead.prediction, sign="+"),
        reading.size,
    ]
