"""The paper's claims C1 to C9 as data: for each part, a number for each seed, a side and a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedwave.reproduce.items import IVES
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Tables, paired

BySeed = Mapping[int, float]
Side = Literal["above", "below", "within"]

# Table II, in per cent: NUFM, Per-FedAvg, FedAvg.
TABLE_2 = {
    "fashion-mnist": (68.04, 62.75, 61.04),
    "cifar-10": (58.80, 58.22, 54.31),
    "cifar-100": (23.95, 21.49, 10.13),
    "tiny-imagenet": (34.04, 30.98, 12.14),  # the paper's ImageNet
}
ALIKE = 0.05  # losses within 5 % of each other are called equal: "almost overlap", "hardly moves"
FLAT = 0.1  # |slope| of log time against log M that is called flat: doubling M moves the time by 7 %
ROUNDING = 1e-9  # differences below this, of logarithms or shares, are no change
FEW_ITERATIONS = 3.0  # "about two"


@dataclass(frozen=True)
class Part:
    """One testable sentence of a claim."""

    name: str
    values: BySeed  # what is measured, for each seed
    side: Side
    threshold: float
    unit: str = ""
    paper: str = ""  # the paper's number, where it gives one


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and how its parts follow from the tables of per-seed values."""

    name: str
    text: str
    source: str
    parts: Callable[[Tables], Iterator[Part]]


def accuracy_order(tables: Tables) -> Iterator[Part]:
    """C1: NUFM ahead of Per-FedAvg, and Per-FedAvg ahead of FedAvg, on each dataset."""
    for dataset in tables.datasets("table-2"):
        paper = TABLE_2.get(dataset)
        for index, (better, worse) in enumerate((("NUFM", "Per-FedAvg"), ("Per-FedAvg", "FedAvg"))):
            lead = _lead(tables, "table-2", "accuracy", better, worse, dataset=dataset)
            yield Part(
                f"{better} − {worse}{_on(dataset)}",
                {seed: 100.0 * value for seed, value in lead.items()},
                "above",
                0.0,
                "points",
                f"{paper[index] - paper[index + 1]:+.2f}" if paper else "",
            )


def fewer_devices_are_faster(tables: Tables) -> Iterator[Part]:
    """C2: the loss at round 19 with the smallest n_k is well below that with more."""
    few, *more = tables.values("fig-2") or [math.nan]
    for dataset in {"fashion-mnist", "digits"} & set(tables.datasets("fig-2")):  # the paper: Fashion-MNIST
        for wanted, many in zip((0.09, 0.20), more, strict=False):
            losses = [
                tables.by_seed("fig-2", "loss_19", dataset=dataset, scheme="NUFM", value=n)
                for n in (few, many)
            ]
            fall = {seed: 100.0 * (1.0 - a / b) for seed, (a, b) in paired(*losses).items()}
            name = f"loss with n_k = {few:g} below n_k = {many:g}{_on(dataset)}"
            yield Part(name, fall, "above", 100.0 * wanted, "%", f"> {100 * wanted:.0f}")


def lead_grows_with_fewer_devices(tables: Tables) -> Iterator[Part]:
    """C3: NUFM's relative lead over Per-FedAvg at round 19, smallest n_k minus largest."""
    counts = tables.values("fig-2")
    for dataset in tables.datasets("fig-2"):
        leads = [_relative_lead(tables, "fig-2", "Per-FedAvg", dataset, n) for n in (counts[0], counts[-1])]
        change = {seed: 100.0 * (a - b) for seed, (a, b) in paired(*leads).items()}
        name = f"lead at n_k = {counts[0]:g} − lead at n_k = {counts[-1]:g}{_on(dataset)}"
        yield Part(name, change, "above", 0.0, "% of the loss")


def lead_shrinks_with_local_steps(tables: Tables) -> Iterator[Part]:
    """C4: the slope of NUFM's relative lead at round 19 over tau."""
    steps = tables.values("fig-3")
    for dataset in tables.datasets("fig-3"):
        for other in ("Per-FedAvg", "FedAvg"):
            leads = [_relative_lead(tables, "fig-3", other, dataset, tau) for tau in steps]
            slopes = {seed: 100.0 * _slope(steps, row) for seed, row in paired(*leads).items()}
            yield Part(
                f"slope of the lead over {other}{_on(dataset)}",
                slopes,
                "below",
                0.0,
                "% of the loss per step",
            )


BASELINES = (("NUFM-Greedy", ""), ("NUFM-Random", ""), ("RU-Greedy", "paper"), ("RU-Random", "paper"))


def ural_is_cheapest(tables: Tables) -> Iterator[Part]:
    """C5: URAL with IVES, counted as the paper counts, against the four baselines."""
    for column, what in (("energy_j", "energy"), ("delay_s", "time")):
        own = tables.by_seed("fig-4", column, scheme=IVES)
        for scheme, counting in BASELINES:
            other = tables.by_seed("fig-4", column, scheme=scheme, counting=counting)
            ratio = {seed: 100.0 * (a / b - 1.0) for seed, (a, b) in paired(own, other).items()}
            yield Part(f"{what} beside {scheme}", ratio, "below", 0.0, "%")
    for scheme, counting in BASELINES[:2]:
        losses = (
            tables.by_seed("fig-4", "loss_19", scheme=IVES),
            tables.by_seed("fig-4", "loss_19", scheme=scheme, counting=counting),
        )
        apart = {seed: 100.0 * (a / b - 1.0) for seed, (a, b) in paired(*losses).items()}
        yield Part(f"loss in round 19 beside {scheme}", apart, "within", 100.0 * ALIKE, "%")


def blocks_cost_little(tables: Tables) -> Iterator[Part]:
    """C6: time and energy against M, on logarithmic axes, and the loss with few blocks."""
    blocks = tables.values("fig-5")
    time = _log_slopes(tables, "fig-5", "delay_s", blocks)
    energy = _log_slopes(tables, "fig-5", "energy_j", blocks)
    yield Part("slope of log T over log M", time, "within", FLAT)
    yield Part("slope of log E over log M", energy, "above", 0.0)
    yield Part("slope of log E over log M, gentle", energy, "below", 1.0)
    few = [n for n in blocks if n > 1][:1]
    if few:
        losses = [tables.by_seed("fig-5", "loss_19", scheme=IVES, value=m) for m in (few[0], blocks[-1])]
        apart = {seed: 100.0 * (a / b - 1.0) for seed, (a, b) in paired(*losses).items()}
        name = f"loss in round 19 with {few[0]:g} blocks beside {blocks[-1]:g}"
        yield Part(name, apart, "below", 100.0 * ALIKE, "%")


def better_channels_are_cheaper(tables: Tables) -> Iterator[Part]:
    """C7: energy and time fall with h_max."""
    gains = tables.values("fig-6")
    for column, what in (("energy_j", "energy"), ("delay_s", "time")):
        slopes = _log_slopes(tables, "fig-6", column, gains)
        yield Part(f"slope of log {what} over log h_max", slopes, "below", 0.0)


def weights_trade_energy_for_time(tables: Tables) -> Iterator[Part]:
    """C8: eta_1 lowers energy and raises time, eta_2 the other way; the loss hardly moves."""
    falls_and_rises: tuple[Side, Side] = ("below", "above")
    for parameter, symbol, sides in (
        ("energy_weight", "η₁", falls_and_rises),
        ("delay_weight", "η₂", falls_and_rises[::-1]),
    ):
        weights = tables.values("fig-7", parameter)
        for (column, what), side in zip((("energy_j", "energy"), ("delay_s", "time")), sides, strict=True):
            slopes = _log_slopes(tables, "fig-7", column, weights, parameter=parameter)
            paper = "18.63 → 21.53" if (parameter, column) == ("energy_weight", "delay_s") else ""
            yield Part(f"slope of log {what} over log {symbol}", slopes, side, 0.0, "", paper)
        losses = [
            tables.by_seed("fig-7", "loss_19", scheme=IVES, parameter=parameter, value=w) for w in weights
        ]
        spread = {seed: 100.0 * (max(row) / min(row) - 1.0) for seed, row in paired(*losses).items()}
        yield Part(f"spread of the loss in round 19 over {symbol}", spread, "below", 100.0 * ALIKE, "%")


def ives_converges(tables: Tables) -> Iterator[Part]:
    """C9: iterations of IVES in all rounds of Figure 4, and rounds in which its objective fell."""
    yield Part(
        "iterations of IVES",
        tables.by_seed("fig-4", "iterations", scheme=IVES),
        "below",
        FEW_ITERATIONS,
        "",
        "about 2",
    )
    falls = tables.by_seed("fig-4", "falls", scheme=IVES)
    yield Part("rounds in which the objective fell", falls, "below", 0.5, "", "0")


CLAIMS: tuple[Claim, ...] = (
    Claim("C1", "NUFM reaches the best accuracy, then Per-FedAvg, then FedAvg", "Table II", accuracy_order),
    Claim(
        "C2",
        "With 20 devices NUFM's loss in round 19 is more than 9 % below that with 30, 20 % below 40",
        "Fig. 2",
        fewer_devices_are_faster,
    ),
    Claim("C3", "NUFM's lead grows as fewer devices upload", "Fig. 2", lead_grows_with_fewer_devices),
    Claim("C4", "NUFM's lead shrinks with more local steps", "Fig. 3", lead_shrinks_with_local_steps),
    Claim(
        "C5",
        "URAL uses less energy and time than all four baselines, and learns as fast as NUFM",
        "Fig. 4",
        ural_is_cheapest,
    ),
    Claim(
        "C6",
        "With more blocks URAL's time stays flat and its energy grows gently; few blocks suffice",
        "Fig. 5",
        blocks_cost_little,
    ),
    Claim("C7", "Energy and time fall as channels get better", "Fig. 6", better_channels_are_cheaper),
    Claim(
        "C8",
        "A larger η₁ buys energy with time, a larger η₂ the other way; learning hardly moves",
        "Fig. 7",
        weights_trade_energy_for_time,
    ),
    Claim("C9", "IVES converges in about two iterations and never falls", "Thm 5", ives_converges),
)


def _on(dataset: str) -> str:
    return f" on {DATASETS.get(dataset, dataset)}"


def _lead(
    tables: Tables, item: str, column: str, better: str, worse: str, **labels: object
) -> dict[int, float]:
    """Return the difference of two schemes, for each seed that both have."""
    pair = [tables.by_seed(item, column, scheme=scheme, **labels) for scheme in (better, worse)]
    return {seed: a - b for seed, (a, b) in paired(*pair).items()}


def _relative_lead(tables: Tables, item: str, other: str, dataset: str, value: float) -> dict[int, float]:
    """Return by which share of the other's loss in round 19 NUFM's is lower."""
    losses = [
        tables.by_seed(item, "loss_19", dataset=dataset, scheme=scheme, value=value)
        for scheme in ("NUFM", other)
    ]
    return {seed: 1.0 - own / its for seed, (own, its) in paired(*losses).items()}


def _log_slopes(
    tables: Tables, item: str, column: str, values: list[float], **labels: object
) -> dict[int, float]:
    """Return each seed's slope of a column over what is varied, on logarithmic axes, for URAL."""
    columns = [tables.by_seed(item, column, scheme=IVES, value=value, **labels) for value in values]
    return {
        seed: _slope(np.log(values).tolist(), np.log(row).tolist())
        for seed, row in paired(*columns).items()
        if min(row) > 0
    }


def _slope(x: list[float], y: tuple[float, ...] | list[float]) -> float:
    """Return the slope of the least-squares line: 0 where the values differ by rounding alone."""
    if len(x) < 2:
        return math.nan
    return 0.0 if max(y) - min(y) < ROUNDING else float(np.polyfit(x, y, 1)[0])
