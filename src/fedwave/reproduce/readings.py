"""The table of readings: which answer to what the paper leaves open gives its order and its leads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedwave.intervals import Interval, interval
from fedwave.reproduce.items import LEARNERS
from fedwave.reproduce.judgements import OWN_TEST
from fedwave.reproduce.learning_claims import TABLE_2
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Row, Tables, paired
from fedwave.runs.inference import LEVEL, holm, two_sided
from fedwave.units import FloatArray

USUAL = "as we read it"
WEIGHTED = "mean weighted by samples"
# Figures of the test readings, and what a reader would call them.
COUNTED = {
    "accuracy": USUAL,
    "accuracy_pooled": "pooled over devices",
    "accuracy_own": "over a device's two classes",
    "accuracy_own_pooled": "over a device's two classes, pooled",
}
JUDGED = {
    "no adaptation": "nobody adapts before the test",
    "5 steps": "5 adaptation steps",
    "10 steps": "10 adaptation steps",
    "one step, rate x 10": "one step at ten times α",
    "training devices": "tested on the training devices",
}

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Reading:
    """One reading on one dataset: the accuracies of the three learners in per cent, paired by seed."""

    dataset: str
    name: str
    accuracy: tuple[Interval, ...]  # NUFM, Per-FedAvg, FedAvg
    lead: Interval  # NUFM over Per-FedAvg
    other_lead: Interval  # NUFM over FedAvg
    last_lead: Interval  # Per-FedAvg over FedAvg
    change: Interval  # of NUFM's lead over Per-FedAvg, against our reading; NaN for that itself
    num_in_order: int  # seeds in which all three are in the paper's order
    num_diverged: int  # seeds that are left out, because one of the three diverged
    p_order: float  # of the order seen, or of one surely otherwise; before any correction
    corrected_p: float = math.nan  # after Holm's correction over all readings of the table

    @property
    def is_in_order(self) -> bool:
        """Whether the means of all three are in the paper's order."""
        return self.lead.mean > 0 and self.last_lead.mean > 0

    @property
    def order(self) -> str:
        """Whether the paper's order of all three is seen: surely, surely not, in the means alone, or not."""
        if self.lead.count < 2:
            return "unknown"
        if self.corrected_p < LEVEL:
            return "yes" if self.is_in_order else "no"
        return "in the means" if self.is_in_order else "unclear"

    @property
    def size(self) -> str:
        """Whether the paper's lead over Per-FedAvg could have been one more run of ours."""
        paper = TABLE_2.get(self.dataset)
        if paper is None or math.isnan(self.lead.half_width):
            return "unknown"
        return "possible" if abs(self.lead.mean - (paper[0] - paper[1])) <= self.lead.prediction else "no"

    def row(self) -> dict[str, Any]:
        """Return the reading as a row of readings.csv."""
        return {
            "dataset": self.dataset,
            "reading": self.name,
            **{
                f"{scheme}_{what}": getattr(one, key)
                for scheme, one in zip(("nufm", "per_fedavg", "fedavg"), self.accuracy, strict=True)
                for what, key in (("mean", "mean"), ("half_width", "half_width"))
            },
            "lead_mean": self.lead.mean,
            "lead_half_width": self.lead.half_width,
            "lead_prediction_half_width": self.lead.prediction,
            "lead_over_fedavg_mean": self.other_lead.mean,
            "lead_over_fedavg_half_width": self.other_lead.half_width,
            "per_fedavg_over_fedavg_mean": self.last_lead.mean,
            "per_fedavg_over_fedavg_half_width": self.last_lead.half_width,
            "change_of_lead_mean": self.change.mean,
            "change_of_lead_half_width": self.change.half_width,
            "seeds": self.lead.count,
            "seeds_in_order": self.num_in_order,
            "seeds_diverged": self.num_diverged,
            "p_order": self.p_order,
            "p_order_holm": self.corrected_p,
            "paper_order": self.order,
            "paper_lead": self.size,
        }


def readings_of_training(rows: Sequence[Row]) -> list[Reading]:
    """Return our reading and those that train otherwise, for each dataset; combined ones also test otherwise.

    The mean weighted by samples is from code that also pools its accuracies. Combinations were tested on the
    training devices as well.
    """
    return corrected(_readings_of_training(rows))


def _readings_of_training(rows: Sequence[Row]) -> Iterator[Reading]:
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        usual = _accuracies(own, parameter=USUAL)
        for name in dict.fromkeys(row["parameter"] for row in own):
            yield _reading(dataset, name, _accuracies(own, parameter=name), usual)
            if WEIGHTED in name:
                pooled = _accuracies(own, "accuracy_pooled", parameter=name)
                yield _reading(dataset, f"{name}, pooled", pooled, usual)
            if "," in name:
                tested = _accuracies(own, "training_accuracy", parameter=name)
                yield _reading(dataset, f"{name}, {JUDGED['training devices']}", tested, usual)


def readings_of_the_test(tested: Sequence[Row]) -> list[Reading]:
    """Return our reading and those that test the same models otherwise, for each dataset."""
    return corrected(_readings_of_the_test(tested))


def _readings_of_the_test(tested: Sequence[Row]) -> Iterator[Reading]:
    for dataset in dict.fromkeys(row["dataset"] for row in tested):
        last = max(row["round"] for row in tested if row["dataset"] == dataset)
        here = [row for row in tested if row["dataset"] == dataset and row["round"] == last]
        usual = _accuracies(here, judgement=OWN_TEST)
        for column, how in COUNTED.items():
            yield _reading(dataset, how, _accuracies(here, column, judgement=OWN_TEST), usual)
        for judgement, how in JUDGED.items():
            yield _reading(dataset, how, _accuracies(here, judgement=judgement), usual)
        unfair = {**usual, "FedAvg": _accuracies(here, judgement="no adaptation")["FedAvg"]}
        yield _reading(dataset, "FedAvg does not adapt, the others do", unfair, usual)


def readings_of_local_steps(rows: Sequence[Row]) -> list[Reading]:
    """Return for each dataset and number of local steps the accuracies in the paper's round."""
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        every = sorted({row["value"] for row in own})
        fewest = _accuracies(own, "accuracy_19", value=every[0])
        for steps in every:
            accuracies = _accuracies(own, "accuracy_19", value=steps)
            found.append(_reading(dataset, f"τ = {steps:g}", accuracies, fewest))
    return corrected(found)


def by_dataset(readings: Sequence[Reading]) -> dict[str, list[Reading]]:
    """Return the readings of each dataset."""
    found: dict[str, list[Reading]] = {}
    for one in readings:
        found.setdefault(one.dataset, []).append(one)
    return found


def summary(dataset: str, readings: Sequence[Reading]) -> str:
    """Return which readings of a dataset show the paper's order, and where its lead could be one run."""
    possible = _names(
        one for one in readings if one.size == "possible" and one.order in ("yes", "in the means")
    )
    diverged = "".join(
        f". Left out under “{one.name}”, as one of the three diverged: {one.num_diverged} of "
        f"{one.lead.count + one.num_diverged} seeds"
        for one in readings
        if one.num_diverged
    )
    return (
        f"{order_seen(dataset, readings)}. The order in the means and the paper's lead as one run: {possible}"
        f"{diverged}"
    )


def order_seen(dataset: str, readings: Sequence[Reading]) -> str:
    """Return which of a dataset's readings show the paper's order of all three."""
    order = _names(one for one in readings if one.order == "yes")
    means = _names(one for one in readings if one.order == "in the means")
    unknown = sum(one.order == "unknown" for one in readings)
    few = f" ({unknown} with too few seeds to tell)" if unknown else ""
    name = DATASETS.get(dataset, dataset)
    return (
        f"**{name}**: of {len(readings)} readings{few}, the paper's order of all three is surely seen under "
        f"{order}, in the means alone under {means}"
    )


def _names(readings: Iterable[Reading]) -> str:
    return ", ".join(f"“{one.name}”" for one in readings) or "none"


def _accuracies(rows: Sequence[Row], column: str = "accuracy", **labels: Any) -> dict[str, BySeed]:
    """Return each learner's accuracies by seed, from the rows with these labels."""
    tables = Tables({"": rows})
    return {scheme: tables.by_seed("", column, scheme=scheme, **labels) for scheme in LEARNERS}


def _reading(dataset: str, name: str, values: Mapping[str, BySeed], usual: Mapping[str, BySeed]) -> Reading:
    columns = [{seed: 100.0 * value for seed, value in values[scheme].items()} for scheme in LEARNERS]
    rows = paired(*columns)
    lead = {seed: row[0] - row[1] for seed, row in rows.items()}
    base = {seed: 100.0 * (a - b) for seed, (a, b) in paired(usual["NUFM"], usual["Per-FedAvg"]).items()}
    changes = [a - b for a, b in paired(lead, base).values()] if values != usual else []
    table = np.array(list(rows.values())).reshape(len(rows), len(LEARNERS))
    return Reading(
        dataset,
        name,
        tuple(interval(column.tolist()) for column in table.T),
        interval(list(lead.values())),
        interval((table[:, 0] - table[:, 2]).tolist()),
        interval((table[:, 1] - table[:, 2]).tolist()),
        interval(changes),
        num_diverged=len(set.intersection(*map(set, columns))) - len(rows),
        num_in_order=int(((table[:, 0] > table[:, 1]) & (table[:, 1] > table[:, 2])).sum()),
        p_order=p_of_order(table),
    )


def p_of_order(table: FloatArray) -> float:
    """Return the p-value of what the columns show of the paper's order; a row for each seed.

    In the paper's order of the means, both neighbours must differ: the larger p-value of the two. Otherwise
    one of the three pairs must be surely the other way: the smallest of theirs, times three.
    """
    neighbours = [table[:, 0] - table[:, 1], table[:, 1] - table[:, 2]]
    if all(lead.size and lead.mean() > 0 for lead in neighbours):
        return max(map(two_sided, neighbours))
    turned = [lead for lead in (*neighbours, table[:, 0] - table[:, 2]) if lead.size and lead.mean() < 0]
    return min(1.0, 3.0 * min(map(two_sided, turned), default=1.0))


def corrected(readings: Iterable[Reading]) -> list[Reading]:
    """Return the readings of a table with their p-values corrected for their number, over all datasets."""
    every = list(readings)
    p_values = holm([one.p_order for one in every])
    return [replace(one, corrected_p=p) for one, p in zip(every, p_values, strict=True)]
