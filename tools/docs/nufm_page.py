"""What docs/what-nufm-does.md shows of the committed studies: what was run, pictures, tables and findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from fedwave.reproduce.cell_claims import TIMES_OF_FIGURE_7
from fedwave.reproduce.items import ITEMS, NORMALISED
from fedwave.reproduce.profile import PAPER
from fedwave.reproduce.report_pages import markdown_table
from fedwave.reproduce.report_tables import part_measured, scales_table, study_table
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import CURVES, SEEDS, Row, read_rows
from fedwave.reproduce.studies import (
    FINDINGS,
    STUDIES,
    best_rates,
    finding,
    judged_comparisons,
    rates_on_later_seeds,
    stable_rates,
    study_of,
)
from fedwave.reproduce.verdicts import FAILS, HOLDS, OPEN, JudgedPart
from fedwave.runs.inference import LEVEL
from tools.docs.claims_in_words import listed
from tools.docs.pages import DOCS
from tools.docs.steps_page import steps_table

FOLDER = DOCS / "reproduction"
SEEN_SEEDS = 5  # of the rates on Fashion-MNIST, when the rule that chooses a rate was set
PICTURES: Mapping[str, Mapping[str, str]] = {
    "rates": {
        "rates": "Accuracy and training loss against the meta-learning rate for four schemes",
        "rates-lead": "Leads in accuracy against the meta-learning rate",
    },
    "steps": {
        "step-leads": "NUFM's lead over uniform choice, and over uniform choice with equal steps, by rounds",
        "step-arms": "Accuracy of ten ways to choose and to step, beside uniform choice with NUFM's steps",
        "step-lengths": "How much longer NUFM's steps are, and how gradient norms hang together with gains",
    },
    "robust": {"faults": "Accuracy and choice of devices at fault, by kind of fault"},
    "scales": {"scales": "Energy and time by the weight of energy, for scales of u"},
}
# Findings that prose quotes, by dataset: the item, and the comparison up to its dataset.
SAID = {
    "steps_lead_5": ("steps", "held-out loss, round 5: NUFM below uniform"),
    "steps_length_5": ("steps", "held-out loss, round 5: uniform at NUFM's norms below uniform"),
    "steps_length_19": ("steps", "held-out loss, round 19: uniform at NUFM's norms below uniform"),
    "steps_left_19": ("steps", "held-out loss, round 19: NUFM below uniform at NUFM's norms"),
    "steps_training_50": ("steps", "training devices' loss, round 50: NUFM below uniform at NUFM's norms"),
    "steps_accuracy": ("steps", "accuracy: NUFM − uniform at NUFM's norms"),
    "steps_everybody": ("steps", "accuracy: everybody at NUFM's norms − uniform at NUFM's norms"),
    "steps_herding": ("steps", "accuracy: herding at NUFM's norms − uniform at NUFM's norms"),
    "rates_usual_meta": ("rates", "accuracy at the usual β: Per-FedAvg − FedAvg"),
    "rates_best_meta": ("rates", "accuracy each at its best β: Per-FedAvg − FedAvg"),
    "rates_best_nufm": ("rates", "accuracy each at its best β: NUFM − Per-FedAvg"),
    "rates_best_everybody": ("rates", "accuracy each at its best β: NUFM − Everybody"),
    "robust_liars": ("robust", "liars: a device at fault is chosen, NUFM − Per-FedAvg"),
    "robust_labels": ("robust", "random-labels: a device at fault is chosen, NUFM − Per-FedAvg"),
    "robust_cost": ("robust", "random-labels: accuracy, NUFM − Per-FedAvg"),
    "robust_never": ("robust", "devices never chosen, NUFM − Per-FedAvg"),
}


def blocks() -> dict[str, str]:
    """Return the blocks and numbers of the page by name; what has no runs yet says so."""
    found = {"slow_cells": slow_cells()}
    for item in PICTURES:
        rows = read_rows(FOLDER / item / SEEDS)
        curves = read_rows(FOLDER / item / CURVES) if item in STUDIES else []
        study = study_of(item, rows, curves)
        found[f"{item}_state"] = state(item, rows)
        found[f"{item}_block"] = "\n" + "\n\n".join(_block(item, rows, curves, study)) + "\n"
        for key, (of_item, name) in SAID.items():
            if of_item == item:
                found[key] = said(study, name)
        if item == "rates":
            found["rates_later"] = later_seeds(rows)
    return found


def later_seeds(rows: Sequence[Row]) -> str:
    """Return the comparisons at the best rates on the seeds that nobody had seen when the rule was set."""
    study = judged_comparisons(rates_on_later_seeds(rows, PAPER.cell_dataset, num_first=SEEN_SEEDS))
    texts = [f"{one.part.name} {part_measured(one)} ({concluded(one)})" for one in study]
    return listed(texts) or "not run yet"


def said(study: Sequence[JudgedPart], name: str) -> str:
    """Return what a comparison came to on each dataset, with its finding."""
    by_dataset = {
        one.part.name.removeprefix(name + " on "): one
        for one in study
        if one.part.name.startswith(name + " on ")
    }
    texts = [f"{part_measured(one)} on {where} ({concluded(one)})" for where, one in by_dataset.items()]
    return listed(texts) or "not run yet"


def concluded(one: JudgedPart) -> str:
    """Return a comparison's finding; of an open one also what it would be if nothing else had been asked."""
    found = finding(one)
    if one.decision != OPEN or one.outcome.p_value >= LEVEL:
        return found
    return f"{found}; by itself {FINDINGS[HOLDS if one.outcome.is_for else FAILS]}"


def state(item: str, rows: Sequence[Row]) -> str:
    """Return how many seeds of an item are complete on each dataset, of how many, and the command."""
    wanted = {point.dataset: ITEMS[item].seeds(PAPER, point.dataset) for point in ITEMS[item].points(PAPER)}
    counts = []
    for dataset, most in wanted.items():
        own = len({row["seed"] for row in rows if row["dataset"] == dataset})
        counts.append(f"{DATASETS[dataset]} {own} of {most}")
    return f"Complete seeds: {', '.join(counts)} (`fedwave reproduce {item}`)."


def _block(item: str, rows: Sequence[Row], curves: Sequence[Row], study: Sequence[JudgedPart]) -> list[str]:
    if not rows:
        return ["No seed of this item is complete yet.", "Nothing is shown, and nothing is concluded."]
    texts = [
        f"![{words}](reproduction/{item}/{name}.png)"
        for name, words in PICTURES[item].items()
        if (FOLDER / item / f"{name}.png").exists()
    ]
    if item == "rates":
        texts.append(_best(rows, curves))
    if item == "scales":
        texts.append(markdown_table(*scales_table(rows)))
    if item == "steps":
        return [*texts, steps_table(rows, curves, study)]
    return [*texts, markdown_table(*study_table(study))] if study else texts


def _best(rows: Sequence[Row], curves: Sequence[Row]) -> str:
    """Return each scheme's best rates, for each seed by the others, and the largest that is stable on all."""
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        limits = stable_rates(_losses(rows, curves, dataset))
        stable = ", ".join(
            f"{scheme} {'none' if math.isnan(rate) else f'{rate:g}'}" for scheme, rate in limits.items()
        )
        best = ", ".join(
            f"{scheme} {counted(own.values())}" for scheme, own in best_rates(rows, dataset).items()
        )
        lines.append(
            f"Best β on {DATASETS[dataset]}, for each seed by the accuracy of all others: {best}. "
            f"Largest β without a rise of the loss by a quarter, of all seeds: {stable}."
        )
    return "\n\n".join(lines)


def counted(rates: Collection[float]) -> str:
    """Return the rates that were chosen, the most frequent first; with counts if they are several."""
    counts = Counter(rates).most_common()
    if len(counts) <= 1:
        return f"{counts[0][0]:g}" if counts else "none"
    return " or ".join(f"{rate:g} ({'once' if count == 1 else f'{count} times'})" for rate, count in counts)


def _losses(
    rows: Sequence[Row], curves: Sequence[Row], dataset: str
) -> Iterator[tuple[str, float, list[float]]]:
    """Yield scheme, rate and training loss by rounds; of a run that diverged it ends in infinity."""
    diverged = {
        (row["scheme"], row["value"], row["seed"]) for row in rows if not math.isfinite(row["accuracy"])
    }
    for row in curves:
        if (row["dataset"], row["curve"]) == (dataset, "training_loss"):
            losses = [value for name, value in row.items() if name.startswith("round_")]
            is_lost = (row["scheme"], row["value"], row["seed"]) in diverged
            yield row["scheme"], row["value"], [*losses, math.inf] if is_lost else losses


def slow_cells() -> str:
    """Return in how many cells of Figure 7 computing alone takes longer than the paper's longest round."""
    times: dict[int, float] = {}
    for row in read_rows(FOLDER / "fig-7" / SEEDS):
        if row["scheme"] == NORMALISED[0] and row["received"] == 0:
            times[row["seed"]] = min(row["delay_s"], times.get(row["seed"], math.inf))
    slow = sum(time > TIMES_OF_FIGURE_7[-1] for time in times.values())
    return f"{slow} of {len(times)} cells"
