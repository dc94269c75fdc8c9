"""What the committed reproduction came to, as sentences whose words follow from the numbers.

Pages quote them between marks, so that no sentence outlives the seeds that it was said of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from fedwave.intervals import interval
from fedwave.reproduce.items import LEARNERS
from fedwave.reproduce.learning_claims import TABLE_2
from fedwave.reproduce.readings import Reading
from fedwave.reproduce.report_tables import part_measured, points
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Tables, paired
from fedwave.reproduce.verdicts import HOLDS, JudgedClaim, JudgedPart

ORDERS = {
    "yes": "surely seen on",
    "in the means": "seen in the means alone on",
    "unclear": "not seen on",
    "no": "surely not seen on",
    "unknown": "seen by too few seeds to tell on",
}


def sentences(tables: Tables, claims: Sequence[JudgedClaim]) -> dict[str, str]:
    """Return what pages say of Table II and of NUFM's leads, by name."""
    found = {"table_2_columns": columns_in_words(outside_of_one_run(tables))}
    by_name = {claim.claim.name: claim for claim in claims}
    for key, claim in (("nufm_leads", "C1a"), ("per_fedavg_leads", "C1b")):
        found[key] = in_words(by_name[claim].parts)
    for key, start in (
        ("area_heldout", "area under the loss (held-out)"),
        ("area_training", "area under the loss (training"),
    ):
        own = [part for part in by_name["C3b"].parts if part.part.name.startswith(start)]
        found[key] = in_words(own) if own else "not known, as runs of before lack that loss"
    rising = [part for part in by_name["C8d"].parts if "slope of log time" in part.part.name]
    sure = sum(part.decision == HOLDS for part in rising)
    found["scales_rising"] = f"{sure} of {len(rising)}"
    return found


def in_words(parts: Sequence[JudgedPart]) -> str:
    """Return by dataset what a claim's parts measured and decided."""
    texts = []
    for part in parts:
        dataset = part.part.name.rpartition(" on ")[2]
        texts.append(f"{part_measured(part)} on {dataset} ({part.decision})")
    return listed(texts) or "not run yet"


def outside_of_one_run(tables: Tables) -> dict[str, list[str] | None]:
    """Return for each dataset which numbers of Table II lie outside the interval of one run of ours.

    None where there are fewer than two seeds, of which no interval can be made.
    """
    found: dict[str, list[str] | None] = {}
    for dataset in tables.datasets("table-2"):
        every = [tables.by_seed("table-2", "accuracy", dataset=dataset, scheme=scheme) for scheme in LEARNERS]
        numbers = {
            scheme: ([100.0 * value for value in own.values()], f"{paper:.2f}", paper)
            for scheme, own, paper in zip(LEARNERS, every, TABLE_2[dataset], strict=True)
        }
        for i, (better, worse) in enumerate(pairwise(LEARNERS)):
            lead = [100.0 * (a - b) for a, b in paired(every[i], every[i + 1]).values()]
            paper = TABLE_2[dataset][i] - TABLE_2[dataset][i + 1]
            numbers[f"{better} − {worse}"] = (lead, f"{paper:+.2f}", paper)
        ours = {name: interval(values) for name, (values, _, _) in numbers.items()}
        found[dataset] = (
            None
            if min(one.count for one in ours.values()) < 2
            else [
                f"{name} {shown}"
                for name, (_, shown, paper) in numbers.items()
                if abs(paper - ours[name].mean) > ours[name].prediction
            ]
        )
    return found


def columns_in_words(outside: Mapping[str, list[str] | None]) -> str:
    """Return which columns of Table II could each be one run of ours."""
    whole = [DATASETS[dataset] for dataset, own in outside.items() if own == []]
    texts = [f"on {listed(whole)} every number of the paper lies inside"] if whole else []
    for dataset, own in outside.items():
        if own is None:
            texts.append(f"on {DATASETS[dataset]} there are too few seeds")
        elif own:
            texts.append(f"on {DATASETS[dataset]} outside are {listed(own)}")
    return "; ".join(texts) or "not run yet"


def orders_in_words(readings: Iterable[Reading]) -> str:
    """Return on which datasets the paper's order of all three is seen, and in how many seeds."""
    by_order: dict[str, list[str]] = {}
    for one in readings:
        shown = f"{DATASETS[one.dataset]} ({one.num_in_order} of {one.lead.count} seeds)"
        by_order.setdefault(one.order, []).append(shown)
    texts = [f"{words} {listed(by_order[order])}" for order, words in ORDERS.items() if order in by_order]
    return "; ".join(texts) or "not run yet"


def trained_in_words(by_dataset: Mapping[str, Sequence[Reading]]) -> str:
    """Return how many ways to train show the paper's order, and which comes nearest to its two leads."""
    texts = []
    for dataset, readings in by_dataset.items():
        orders = Counter(one.order for one in readings)
        paper = [a - b for a, b in pairwise(TABLE_2[dataset])]
        near = min(readings, key=lambda one: math.dist(paper, (one.lead.mean, one.last_lead.mean)))
        own = " and ".join(points(one.mean, one.half_width, sign="+") for one in (near.lead, near.last_lead))
        sure, means = (orders[order] or "none" for order in ("yes", "in the means"))
        texts.append(
            f"on {DATASETS[dataset]}, of {len(readings)} readings, its order of all three is surely seen "
            f"under {sure} and in the means alone under {means}; nearest to its two leads of {paper[0]:+.2f} "
            f"and {paper[1]:+.2f} points comes “{near.name}” with {own}"
        )
    return "; ".join(texts) or "not run yet"


def listed(texts: Sequence[str]) -> str:
    """Return an enumeration: a, b and c."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
