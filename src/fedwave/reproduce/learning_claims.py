"""Claims C1 to C4 of the paper, about learning: accuracy, and the loss of two kinds of devices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from fedwave.reproduce.parts import (
    LOSS_OF_INTEREST,
    LOSS_PER_STEP_OF_INTEREST,
    POINTS_OF_INTEREST,
    ROUNDS_OF_INTEREST,
    BySeed,
    Claim,
    Part,
    on,
    percent_below,
    slope,
)
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.seed_tables import Tables, paired

# Table II, in per cent: NUFM, Per-FedAvg, FedAvg.
TABLE_2 = {
    "fashion-mnist": (68.04, 62.75, 61.04),
    "cifar-10": (58.80, 58.22, 54.31),
    "cifar-100": (23.95, 21.49, 10.13),
    "tiny-imagenet": (34.04, 30.98, 12.14),  # the paper's ImageNet
}
HELD_OUT, TRAINING, REPORTED = "held-out", "training devices", "reported by those that compute"
# The loss in the paper's round, by whose it is. What the devices report is of the model before the round, and
# under Per-FedAvg of the drawn ones alone: an unbiased but noisier look at the training devices' loss.
LOSSES_19 = {HELD_OUT: "loss_19", TRAINING: "training_loss_19", REPORTED: "train_loss_19"}
CURVES = {HELD_OUT: "loss", TRAINING: "training_loss"}


def nufm_beats_per_fedavg(tables: Tables) -> Iterator[Part]:
    """C1a: accuracy after the last round."""
    return _accuracy_leads(tables, 0, "NUFM", "Per-FedAvg")


def per_fedavg_beats_fedavg(tables: Tables) -> Iterator[Part]:
    """C1b: accuracy after the last round."""
    return _accuracy_leads(tables, 1, "Per-FedAvg", "FedAvg")


def _accuracy_leads(tables: Tables, index: int, better: str, worse: str) -> Iterator[Part]:
    for dataset in tables.datasets("table-2"):
        paper = TABLE_2.get(dataset)
        size = paper[index] - paper[index + 1] if paper else None
        pair = [
            tables.by_seed("table-2", "accuracy", scheme=scheme, dataset=dataset)
            for scheme in (better, worse)
        ]
        yield Part(
            f"{better} − {worse}",
            {seed: 100.0 * (a - b) for seed, (a, b) in paired(*pair).items()},
            "above",
            0.0,
            "points",
            said="" if size is None else f"{size:+.2f}",
            paper=size,
            interest=max(POINTS_OF_INTEREST, (size or 0.0) / 2.0),
            where=on(dataset),
        )


def fewer_devices_are_faster(tables: Tables) -> Iterator[Part]:
    """C2a: the loss at round 19 with the smallest n_k is well below that with more."""
    few, *more = tables.values("fig-2") or [math.nan]
    for dataset in {"fashion-mnist", "digits"} & set(tables.datasets("fig-2")):  # the paper: Fashion-MNIST
        for whose, column in losses(tables, "fig-2", dataset).items():
            for wanted, many in zip((9.0, 20.0), more, strict=False):
                own, other = (
                    tables.by_seed("fig-2", column, dataset=dataset, scheme="NUFM", value=n)
                    for n in (few, many)
                )
                yield Part(
                    f"loss ({whose}) with n_k = {few:g} below n_k = {many:g}",
                    percent_below(own, other),
                    "above",
                    wanted,
                    "%",
                    said=f"> {wanted:.0f}",
                    interest=wanted / 2.0,
                    where=on(dataset),
                )


def fewer_devices_are_faster_all_along(tables: Tables) -> Iterator[Part]:
    """C2b: the same over all rounds: the area under the curve."""
    few, *more = tables.values("fig-2") or [math.nan]
    for dataset in {"fashion-mnist", "digits"} & set(tables.datasets("fig-2")):
        for whose, curve in CURVES.items():
            for many in more:
                own, other = (
                    tables.by_seed("fig-2", f"{curve}_area", dataset=dataset, scheme="NUFM", value=n)
                    for n in (few, many)
                )
                yield Part(
                    f"area under the loss ({whose}), n_k = {few:g} below n_k = {many:g}",
                    percent_below(own, other),
                    "above",
                    0.0,
                    "%",
                    interest=LOSS_OF_INTEREST,
                    where=on(dataset),
                )


def lead_grows_with_fewer_devices(tables: Tables) -> Iterator[Part]:
    """C3a: NUFM's relative lead over Per-FedAvg at round 19, smallest n_k minus largest."""
    counts = tables.values("fig-2")
    for dataset in tables.datasets("fig-2"):
        for whose, column in losses(tables, "fig-2", dataset).items():
            leads = [
                _relative_lead(tables, "fig-2", column, "Per-FedAvg", dataset, n)
                for n in (counts[0], counts[-1])
            ]
            yield Part(
                f"lead ({whose}) at n_k = {counts[0]:g} − lead at n_k = {counts[-1]:g}",
                {seed: a - b for seed, (a, b) in paired(*leads).items()},
                "above",
                0.0,
                "% of the loss",
                interest=LOSS_OF_INTEREST,
                where=on(dataset),
            )


def nufm_learns_faster(tables: Tables) -> Iterator[Part]:
    """C3b: NUFM against Per-FedAvg over the whole curve, with the smallest n_k."""
    counts = tables.values("fig-2")
    for dataset in tables.datasets("fig-2"):
        labels = {"dataset": dataset, "value": counts[0]}
        for whose, curve in CURVES.items():
            own, other = (
                tables.by_seed("fig-2", f"{curve}_area", scheme=scheme, **labels)
                for scheme in ("NUFM", "Per-FedAvg")
            )
            yield Part(
                f"area under the loss ({whose}), NUFM below Per-FedAvg",
                percent_below(own, other),
                "above",
                0.0,
                "%",
                interest=LOSS_OF_INTEREST,
                where=on(dataset),
            )
            yield Part(
                f"rounds saved ({whose}) at Per-FedAvg's round {ROUND_OF_THE_PAPER}",
                _rounds_saved(tables, curve, **labels),
                "above",
                0.0,
                "rounds",
                interest=ROUNDS_OF_INTEREST,
                where=on(dataset),
            )


def lead_shrinks_with_local_steps(tables: Tables) -> Iterator[Part]:
    """C4: the slope of NUFM's relative lead at round 19 over tau."""
    steps = tables.values("fig-3")
    for dataset in tables.datasets("fig-3"):
        for whose, column in losses(tables, "fig-3", dataset).items():
            for other in ("Per-FedAvg", "FedAvg"):
                leads = [_relative_lead(tables, "fig-3", column, other, dataset, tau) for tau in steps]
                yield Part(
                    f"slope of the lead ({whose}) over {other}",
                    {seed: slope(steps, row) for seed, row in paired(*leads).items()},
                    "below",
                    0.0,
                    "% of the loss per step",
                    interest=LOSS_PER_STEP_OF_INTEREST,
                    where=on(dataset),
                )


def losses(tables: Tables, item: str, dataset: str) -> dict[str, str]:
    """Return the columns of the loss in round 19: held-out, and the training devices' as far as it is known.

    Where any run of the item on this dataset lacks the evaluation of the training devices, their own reports
    stand in.
    """
    rows = [row for row in tables.rows.get(item, ()) if row["dataset"] == dataset]
    is_evaluated = bool(rows) and all(math.isfinite(row.get(LOSSES_19[TRAINING], math.nan)) for row in rows)
    whose = TRAINING if is_evaluated else REPORTED
    return {HELD_OUT: LOSSES_19[HELD_OUT], whose: LOSSES_19[whose]}


def rounds_until(curve: list[float], aim: float) -> float:
    """Return after how many rounds a loss first reaches ``aim``, between two rounds on a line.

    A curve that does not get there counts as if it did in its last round; one that begins there has 1.
    """
    for k, (before, after) in enumerate(itertools.pairwise(curve), start=1):
        if before <= aim:
            return float(k)
        if after <= aim:
            return k + (before - aim) / (before - after)
    return float(len(curve))


def _rounds_saved(tables: Tables, curve: str, **labels: object) -> dict[int, float]:
    """Return how many rounds earlier NUFM has the loss that Per-FedAvg has in the paper's round."""
    own, other = (tables.curves("fig-2", curve, scheme=scheme, **labels) for scheme in ("NUFM", "Per-FedAvg"))
    return {
        seed: ROUND_OF_THE_PAPER - rounds_until(own[seed], other[seed][ROUND_OF_THE_PAPER - 1])
        for seed in sorted(own)
        if len(other.get(seed, ())) >= ROUND_OF_THE_PAPER
    }


def _relative_lead(tables: Tables, item: str, column: str, other: str, dataset: str, value: float) -> BySeed:
    """Return by how many per cent of the other's loss in round 19 NUFM's is lower."""
    own, its = (
        tables.by_seed(item, column, dataset=dataset, scheme=scheme, value=value)
        for scheme in ("NUFM", other)
    )
    return percent_below(own, its)


LEARNING_CLAIMS = (
    Claim("C1a", "NUFM reaches a better accuracy than Per-FedAvg", "Table II", nufm_beats_per_fedavg),
    Claim("C1b", "Per-FedAvg reaches a better accuracy than FedAvg", "Table II", per_fedavg_beats_fedavg),
    Claim(
        "C2a",
        "With 20 devices NUFM's loss in round 19 is more than 9 % below that with 30, 20 % below 40",
        "Fig. 2",
        fewer_devices_are_faster,
    ),
    Claim(
        "C2b",
        "With 20 devices NUFM's loss is below that with more, over all rounds",
        "Fig. 2",
        fewer_devices_are_faster_all_along,
    ),
    Claim("C3a", "NUFM's lead grows as fewer devices upload", "Fig. 2", lead_grows_with_fewer_devices),
    Claim("C3b", "NUFM learns faster than Per-FedAvg, over all rounds", "Fig. 2", nufm_learns_faster),
    Claim("C4", "NUFM's lead shrinks with more local steps", "Fig. 3", lead_shrinks_with_local_steps),
)
