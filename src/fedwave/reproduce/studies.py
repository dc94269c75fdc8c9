"""What NUFM does, in numbers: the comparisons of the items ``steps``, ``rates`` and ``robust``, each tested.

A comparison is a part with its numbers by seed (``inference``); on which side it falls is asked two-sided,
and the corrections are over all comparisons of an item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fedwave.reproduce.items import EVERYBODY
from fedwave.reproduce.parts import (
    LOSS_OF_INTEREST,
    POINTS_OF_INTEREST,
    BySeed,
    Part,
    on,
    percent_below,
)
from fedwave.reproduce.seed_tables import Row, Tables, paired
from fedwave.reproduce.verdicts import FAILS, HOLDS, JudgedPart, corrected_for, decide
from fedwave.runs.inference import outcome_of

ROUNDS = (5, 19)  # of the steps, beside the last: early, and the paper's
UNIFORM, NUFM = "uniform", "NUFM"
SAME_LENGTH, SHRUNK = "uniform at NUFM's norms", "NUFM at uniform's norms"
# Whose loss is below whose: the lead, what its length alone gives, what is left, and the converse.
LOSSES = ((NUFM, UNIFORM), (SAME_LENGTH, UNIFORM), (NUFM, SAME_LENGTH), (SHRUNK, UNIFORM))
FINDINGS = {HOLDS: "above zero", FAILS: "below zero"}
SHARE_OF_INTEREST = 5.0  # points of a share of rounds or devices
COMPARED_BY_RATE = (("NUFM", "Per-FedAvg"), ("Per-FedAvg", "FedAvg"), ("NUFM", EVERYBODY))
UNSTABLE_RISE = 1.25  # of a loss, times the lowest before it, from which on a run is called unstable


def study_of(item: str, rows: Sequence[Row], curves: Sequence[Row] = ()) -> list[JudgedPart]:
    """Return an item's comparisons with what they show; none of an item that is no study."""
    make = STUDIES.get(item)
    return judged_comparisons(make(rows, curves)) if make else []


def judged_comparisons(comparisons: Iterable[Part]) -> list[JudgedPart]:
    """Return the comparisons that have seeds with what they show, corrected for their number."""
    parts = [part for part in comparisons if part.values]
    outcomes = [
        outcome_of(list(part.values.values()), part.side, part.threshold, interest=part.interest)
        for part in parts
    ]
    return [
        JudgedPart(part, outcome, p, decide(part, outcome, p))
        for part, outcome, p in zip(parts, outcomes, corrected_for(parts, outcomes), strict=True)
    ]


def finding(judged: JudgedPart) -> str:
    """Return what a comparison shows, in words that name no claim."""
    if judged.outcome.is_exact and judged.outcome.mean == 0.0:
        return "the same"
    return FINDINGS.get(judged.decision, judged.decision)


def steps(rows: Sequence[Row], curves: Sequence[Row]) -> Iterator[Part]:
    """Yield what is left of NUFM's lead at equal lengths of the update, and whom else one could choose."""
    tables = Tables({"": rows})
    for dataset in tables.datasets(""):
        last = int(max(row["rounds"] for row in rows if row["dataset"] == dataset))
        for curve, whose in (("heldout_loss", "held-out loss"), ("training_loss", "training devices' loss")):
            for better, worse in LOSSES:
                for after in [k for k in dict.fromkeys((*ROUNDS, last)) if k <= last]:
                    own, other = (_after(curves, curve, after, dataset, arm) for arm in (better, worse))
                    name = f"{whose}, round {after}: {better} below {worse} {on(dataset)}"
                    yield _loss(name, percent_below(own, other))
        for better, worse in (
            (NUFM, UNIFORM),
            (NUFM, SAME_LENGTH),
            *(
                (f"{who} at NUFM's norms", SAME_LENGTH)
                for who in ("aligned", "last step", "herding", "everybody")
            ),
            ("herding", UNIFORM),
            ("everybody", UNIFORM),
        ):
            own, other = (
                tables.by_seed("", "accuracy", dataset=dataset, scheme=arm) for arm in (better, worse)
            )
            yield _points(f"accuracy: {better} − {worse} {on(dataset)}", own, other)


def rates(rows: Sequence[Row], curves: Sequence[Row] = ()) -> Iterator[Part]:
    """Yield the schemes compared at the usual rate and each at its best, which the other seeds choose."""
    del curves
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        at_rate, best = accuracies_by_rate(rows, dataset), best_rates(rows, dataset)
        usual = usual_rate(rows, dataset)
        for better, worse in COMPARED_BY_RATE:
            if better in best and worse in best:
                at_usual = [at_rate[scheme].get(usual, {}) for scheme in (better, worse)]
                yield _points(f"accuracy at the usual β: {better} − {worse} {on(dataset)}", *at_usual)
                at_best = [
                    {seed: at_rate[scheme][rate][seed] for seed, rate in best[scheme].items()}
                    for scheme in (better, worse)
                ]
                yield _points(f"accuracy each at its best β: {better} − {worse} {on(dataset)}", *at_best)


def rates_on_later_seeds(rows: Sequence[Row], dataset: str, *, num_first: int) -> Iterator[Part]:
    """Yield the schemes each at the best rate of the first seeds, compared on those that came after them."""
    at_rate = accuracies_by_rate(rows, dataset)

    def on_first(scheme: str, rate: float) -> float:
        return sum(accuracy for seed, accuracy in at_rate[scheme][rate].items() if seed < num_first)

    later = {}
    for scheme, own in at_rate.items():
        rate = max(own, key=lambda rate: on_first(scheme, rate))
        later[scheme] = {seed: accuracy for seed, accuracy in own[rate].items() if seed >= num_first}
    for better, worse in COMPARED_BY_RATE:
        if better in later and worse in later:
            yield _points(f"{better} − {worse}", later[better], later[worse])


def usual_rate(rows: Sequence[Row], dataset: str) -> float:
    """Return the rate of Table II: the one at which every round was tested, so that an area is known."""
    own = {row["value"] for row in rows if row["dataset"] == dataset and math.isfinite(row["loss_area"])}
    return min(own, default=math.nan)


def accuracies_by_rate(rows: Sequence[Row], dataset: str) -> dict[str, dict[float, dict[int, float]]]:
    """Return the accuracies by scheme, rate and seed; a run that diverged gets nothing right."""
    found: dict[str, dict[float, dict[int, float]]] = {}
    for row in rows:
        if row["dataset"] == dataset:
            accuracy = row["accuracy"] if math.isfinite(row["accuracy"]) else 0.0
            found.setdefault(row["scheme"], {}).setdefault(row["value"], {})[row["seed"]] = accuracy
    return found


def best_rates(rows: Sequence[Row], dataset: str) -> dict[str, dict[int, float]]:
    """Return for each scheme and seed the rate with the best mean accuracy over all other seeds.

    So no run is judged at a rate that it helped to choose, and yet every seed judges. Of one seed alone
    there is none.
    """
    best: dict[str, dict[int, float]] = {}
    for scheme, at_rate in accuracies_by_rate(rows, dataset).items():
        seeds = sorted(set.intersection(*(set(own) for own in at_rate.values())))
        best[scheme] = {}
        for judged in seeds if len(seeds) > 1 else ():
            means = {
                rate: sum(own[seed] for seed in seeds if seed != judged) for rate, own in at_rate.items()
            }
            best[scheme][judged] = max(means, key=lambda rate: means[rate])
    return best


def stable_rates(runs: Iterable[tuple[str, float, Sequence[float]]]) -> dict[str, float]:
    """Return for each scheme the largest rate up to which all runs were stable; NaN where the least was not.

    A run is a scheme, a rate and a loss by rounds, not measured in all of them. It is stable if its loss
    never rose by a quarter over the lowest before; a run that diverged has a loss of infinity.
    """
    worst: dict[str, dict[float, float]] = {}
    for scheme, rate, losses in runs:
        measured = np.array([loss for loss in losses if not math.isnan(loss)])
        rises = measured[1:] / np.minimum.accumulate(measured)[:-1]
        own = worst.setdefault(scheme, {})
        own[rate] = max(own.get(rate, 0.0), *rises.tolist(), 0.0)
    limits = dict.fromkeys(worst, math.nan)
    for scheme, own in worst.items():
        for rate in sorted(own):
            if own[rate] >= UNSTABLE_RISE:
                break
            limits[scheme] = rate
    return limits


def robust(rows: Sequence[Row], curves: Sequence[Row] = ()) -> Iterator[Part]:
    """Yield what devices at fault cost each scheme, how often they are chosen, and who is never chosen."""
    del curves
    tables = Tables({"": rows})
    for dataset in tables.datasets(""):
        kinds = list(dict.fromkeys(row["parameter"] for row in rows if row["dataset"] == dataset))

        def of(column: str, scheme: str, kind: str, dataset: str = dataset) -> BySeed:
            return tables.by_seed("", column, dataset=dataset, scheme=scheme, parameter=kind)

        for kind in kinds:
            if kind != "none":
                chosen = [of("faulty_chosen", scheme, kind) for scheme in (NUFM, "Per-FedAvg")]
                yield _share(f"{kind}: a device at fault is chosen, NUFM − Per-FedAvg {on(dataset)}", *chosen)
                for scheme in (NUFM, "Per-FedAvg", EVERYBODY):
                    name = f"{kind}: accuracy of {scheme}, with − without {on(dataset)}"
                    yield _points(name, of("accuracy", scheme, kind), of("accuracy", scheme, "none"))
            name = f"{kind}: accuracy, NUFM − Per-FedAvg {on(dataset)}"
            yield _points(name, of("accuracy", NUFM, kind), of("accuracy", "Per-FedAvg", kind))
        worst = [of("accuracy_worst_tenth", scheme, "none") for scheme in (NUFM, "Per-FedAvg")]
        yield _points(f"accuracy of the worst tenth, NUFM − Per-FedAvg {on(dataset)}", *worst)
        never = [of("never_chosen", scheme, "none") for scheme in (NUFM, "Per-FedAvg")]
        yield _share(f"devices never chosen, NUFM − Per-FedAvg {on(dataset)}", *never)


STUDIES: Mapping[str, Callable[[Sequence[Row], Sequence[Row]], Iterator[Part]]] = {
    "steps": steps,
    "rates": rates,
    "robust": robust,
}


def _after(curves: Sequence[Row], curve: str, after: int, dataset: str, arm: str) -> BySeed:
    """Return the value of a curve after so many rounds, by seed."""
    wanted = (dataset, arm, curve)
    return {
        row["seed"]: row.get(f"round_{after}", math.nan)
        for row in curves
        if (row["dataset"], row["scheme"], row["curve"]) == wanted
    }


def _loss(name: str, values: BySeed) -> Part:
    return Part(name, values, "above", 0.0, "%", interest=LOSS_OF_INTEREST)


def _points(name: str, own: BySeed, other: BySeed) -> Part:
    leads = {seed: 100.0 * (a - b) for seed, (a, b) in paired(own, other).items()}
    return Part(name, leads, "above", 0.0, "points", interest=POINTS_OF_INTEREST)


def _share(name: str, own: BySeed, other: BySeed) -> Part:
    leads = {seed: 100.0 * (a - b) for seed, (a, b) in paired(own, other).items()}
    return Part(name, leads, "above", 0.0, "points of share", interest=SHARE_OF_INTEREST)
