"""The table of readings: which answer to what the paper leaves open gives its order and its leads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedwave.intervals import Interval, interval
from fedwave.reproduce.claims import TABLE_2
from fedwave.reproduce.items import LEARNERS
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Row, Tables, paired
from fedwave.reproduce.test_readings import OWN_TEST

USUAL = "as we read it"
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
    change: Interval  # of NUFM's lead over Per-FedAvg, against our reading; NaN for that itself

    @property
    def order(self) -> str:
        """Whether the paper's order is seen: both leads surely above zero, one surely below, or neither."""
        if any(math.isnan(lead.half_width) for lead in (self.lead, self.other_lead)):
            return "unknown"
        if all(lead.mean - lead.half_width > 0 for lead in (self.lead, self.other_lead)):
            return "yes"
        if any(lead.mean + lead.half_width < 0 for lead in (self.lead, self.other_lead)):
            return "no"
        return "unclear"

    @property
    def size(self) -> str:
        """Whether the paper's lead over Per-FedAvg lies in the interval of ours; unclear if zero does too."""
        paper = TABLE_2.get(self.dataset)
        if paper is None or math.isnan(self.lead.half_width):
            return "unknown"
        if abs(self.lead.mean - (paper[0] - paper[1])) > self.lead.half_width:
            return "no"
        return "yes" if abs(self.lead.mean) > self.lead.half_width else "unclear"

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
            "lead_over_fedavg_mean": self.other_lead.mean,
            "lead_over_fedavg_half_width": self.other_lead.half_width,
            "change_of_lead_mean": self.change.mean,
            "change_of_lead_half_width": self.change.half_width,
            "seeds": self.lead.count,
            "paper_order": self.order,
            "paper_lead": self.size,
        }


def readings_of_training(rows: Sequence[Row]) -> Iterator[Reading]:
    """Yield our reading and those that train otherwise, for each dataset."""
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        usual = _accuracies(own, parameter=USUAL)
        for name in dict.fromkeys(row["parameter"] for row in own):
            yield _reading(dataset, name, _accuracies(own, parameter=name), usual)


def readings_of_the_test(tested: Sequence[Row]) -> Iterator[Reading]:
    """Yield our reading and those that test the same models otherwise, for each dataset."""
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


def readings_of_local_steps(rows: Sequence[Row]) -> Iterator[Reading]:
    """Yield for each dataset and number of local steps the accuracies in the paper's round."""
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        every = sorted({row["value"] for row in own})
        fewest = _accuracies(own, "accuracy_19", value=every[0])
        for steps in every:
            accuracies = _accuracies(own, "accuracy_19", value=steps)
            yield _reading(dataset, f"τ = {steps:g}", accuracies, fewest)


def by_dataset(readings: Sequence[Reading]) -> dict[str, list[Reading]]:
    """Return the readings of each dataset."""
    found: dict[str, list[Reading]] = {}
    for one in readings:
        found.setdefault(one.dataset, []).append(one)
    return found


def summary(dataset: str, readings: Sequence[Reading]) -> str:
    """Return which of a dataset's readings show the paper's order, and which its lead as well."""
    seen = order_seen(dataset, readings)
    if not any(one.order == "yes" for one in readings):
        return seen
    both = _names(one for one in readings if one.order == one.size == "yes")
    return f"{seen}; that and a lead over Per-FedAvg as large as the paper's under {both}"


def order_seen(dataset: str, readings: Sequence[Reading]) -> str:
    """Return which of a dataset's readings show the paper's order."""
    order = _names(one for one in readings if one.order == "yes")
    unknown = sum(one.order == "unknown" for one in readings)
    few = f" ({unknown} with too few seeds to tell)" if unknown else ""
    name = DATASETS.get(dataset, dataset)
    return f"**{name}**: of {len(readings)} readings{few}, the paper's order is seen under {order}"


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
    return Reading(
        dataset,
        name,
        tuple(interval([row[i] for row in rows.values()]) for i in range(3)),
        interval(list(lead.values())),
        interval([row[0] - row[2] for row in rows.values()]),
        interval(changes),
    )
