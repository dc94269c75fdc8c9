"""Claims C5 to C9 of the paper, about energy and time over its cell. Times have no mean there: logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from fedwave.reproduce.items import IVES
from fedwave.reproduce.parts import (
    ALIKE,
    FEW_ITERATIONS,
    FLAT,
    RATIO_OF_INTEREST,
    SLOPE_OF_INTEREST,
    Claim,
    Part,
    log_ratios,
    log_slopes,
)
from fedwave.reproduce.seed_tables import Tables, paired
from fedwave.runs.inference import Side

BASELINES = (("NUFM-Greedy", ""), ("NUFM-Random", ""), ("RU-Greedy", "paper"), ("RU-Random", "paper"))
COLUMNS = {"energy": "energy_j", "time": "delay_s"}
# Figure 7: the time of a round at eta_1 = 0.5 and 2.5, and what that is as a slope of logarithms.
TIMES_OF_FIGURE_7 = (18.63, 21.53)
SLOPE_OF_FIGURE_7 = math.log(TIMES_OF_FIGURE_7[1] / TIMES_OF_FIGURE_7[0]) / math.log(2.5 / 0.5)
WEIGHTS = {"energy_weight": "η₁", "delay_weight": "η₂"}
UNSAID = "the paper does not give the scale of u beside joules and seconds, which decides"


def ural_is_cheaper(what: str) -> Callable[[Tables], Iterator[Part]]:
    """C5a and C5b: URAL with IVES, counted as the paper counts, against the four baselines."""

    def parts(tables: Tables) -> Iterator[Part]:
        own = tables.by_seed("fig-4", COLUMNS[what], scheme=IVES)
        for scheme, counting in BASELINES:
            other = tables.by_seed("fig-4", COLUMNS[what], scheme=scheme, counting=counting)
            yield Part(
                what,
                log_ratios(own, other),
                "below",
                0.0,
                "times",
                interest=RATIO_OF_INTEREST,
                is_ratio=True,
                where=f"beside {scheme}",
            )

    return parts


def ural_learns_as_fast(tables: Tables) -> Iterator[Part]:
    """C5c: the loss in round 19 beside the baselines that choose as NUFM does."""
    own = tables.by_seed("fig-4", "loss_19", scheme=IVES)
    for scheme, counting in BASELINES[:2]:
        other = tables.by_seed("fig-4", "loss_19", scheme=scheme, counting=counting)
        apart = {seed: 100.0 * (a / b - 1.0) for seed, (a, b) in paired(own, other).items()}
        yield Part("loss in round 19", apart, "within", 100.0 * ALIKE, "%", where=f"beside {scheme}")


def time_stays_flat(tables: Tables) -> Iterator[Part]:
    """C6a: the slope of time over M on logarithmic axes."""
    slopes = log_slopes(tables, "fig-5", "delay_s", tables.values("fig-5"), scheme=IVES)
    yield Part("slope of log T over log M", slopes, "within", FLAT)


def energy_grows_gently(tables: Tables) -> Iterator[Part]:
    """C6b: the slope of energy over M on logarithmic axes is below one; that it is above zero is no news."""
    slopes = log_slopes(tables, "fig-5", "energy_j", tables.values("fig-5"), scheme=IVES)
    yield Part("slope of log E over log M, less than in proportion", slopes, "below", 1.0)
    yield Part(
        "slope of log E over log M, grows", slopes, "above", 0.0, interest=SLOPE_OF_INTEREST, is_point=False
    )


def few_blocks_suffice(tables: Tables) -> Iterator[Part]:
    """C6c: the loss in round 19 with few blocks beside that with the most."""
    blocks = tables.values("fig-5")
    few = [n for n in blocks if n > 1][:1]
    if few:
        own, other = (tables.by_seed("fig-5", "loss_19", scheme=IVES, value=m) for m in (few[0], blocks[-1]))
        apart = {seed: 100.0 * (a / b - 1.0) for seed, (a, b) in paired(own, other).items()}
        name = f"loss in round 19 with {few[0]:g} blocks beside {blocks[-1]:g}"
        yield Part(name, apart, "below", 100.0 * ALIKE, "%")


def better_channels_are_cheaper(what: str) -> Callable[[Tables], Iterator[Part]]:
    """C7a and C7b: energy, and time, fall with h_max."""

    def parts(tables: Tables) -> Iterator[Part]:
        slopes = log_slopes(tables, "fig-6", COLUMNS[what], tables.values("fig-6"), scheme=IVES)
        name = f"slope of log {what} over log h_max"
        yield Part(name, slopes, "below", 0.0, interest=SLOPE_OF_INTEREST)

    return parts


def weight_trades(parameter: str, sides: tuple[Side, Side]) -> Callable[[Tables], Iterator[Part]]:
    """C8a and C8b: a larger weight lowers what it weighs and raises the other, with raw contributions."""

    def parts(tables: Tables) -> Iterator[Part]:
        weights = tables.values("fig-7", parameter)
        for (what, column), side in zip(COLUMNS.items(), sides, strict=True):
            slopes = log_slopes(tables, "fig-7", column, weights, scheme=IVES, parameter=parameter)
            yield _slope_part(
                f"slope of log {what} over log {WEIGHTS[parameter]}", slopes, side, parameter, what
            )

    return parts


def learning_hardly_moves(tables: Tables) -> Iterator[Part]:
    """C8c: the spread of the loss in round 19 over either weight."""
    for parameter, symbol in WEIGHTS.items():
        weights = tables.values("fig-7", parameter)
        every = [
            tables.by_seed("fig-7", "loss_19", scheme=IVES, parameter=parameter, value=w) for w in weights
        ]
        spread = {seed: 100.0 * (max(row) / min(row) - 1.0) for seed, row in paired(*every).items()}
        yield Part(f"spread of the loss in round 19 over {symbol}", spread, "below", 100.0 * ALIKE, "%")


def weight_trades_at_scales(tables: Tables) -> Iterator[Part]:
    """C8d: what the weight of energy does at every scale of u and every D_i that the item ``scales`` has."""
    weights = tables.values("scales")
    for scheme in dict.fromkeys(row["scheme"] for row in tables.rows.get("scales", ())):
        sides: tuple[Side, Side] = ("below", "above")
        for (what, column), side in zip(COLUMNS.items(), sides, strict=True):
            slopes = log_slopes(tables, "scales", column, weights, scheme=scheme)
            part = _slope_part(f"slope of log {what} over log η₁", slopes, side, "energy_weight", what)
            yield replace(part, where=f"with {scheme.partition(', ')[2]}".replace(", ", " and "))


def _slope_part(name: str, slopes: dict[int, float], side: Side, parameter: str, what: str) -> Part:
    if (parameter, what) == ("energy_weight", "time"):
        said = " → ".join(f"{time:g}" for time in TIMES_OF_FIGURE_7)
        half = SLOPE_OF_FIGURE_7 / 2.0
        return Part(name, slopes, side, 0.0, "", said, SLOPE_OF_FIGURE_7, half)
    return Part(name, slopes, side, 0.0, interest=SLOPE_OF_INTEREST)


def ives_takes_two_iterations(tables: Tables) -> Iterator[Part]:
    """C9a: iterations of IVES in all rounds of Figure 4."""
    counts = tables.by_seed("fig-4", "iterations", scheme=IVES)
    yield Part("iterations of IVES", counts, "below", FEW_ITERATIONS, said="about 2")


def ives_never_falls(tables: Tables) -> Iterator[Part]:
    """C9b: rounds of Figure 4 in which the objective of IVES fell from one iteration to the next."""
    falls = tables.by_seed("fig-4", "falls", scheme=IVES)
    rounds = tables.by_seed("fig-4", "rounds", scheme=IVES)
    num_rounds = int(sum(rounds[seed] for seed in falls if math.isfinite(rounds[seed])))
    name = "rounds in which the objective fell"
    yield Part(name, falls, "below", 0.5, said="0", num_trials=num_rounds)


_DOWN_UP: tuple[Side, Side] = ("below", "above")
_UP_DOWN: tuple[Side, Side] = ("above", "below")

CELL_CLAIMS = (
    Claim("C5a", "URAL uses less energy than all four baselines", "Fig. 4", ural_is_cheaper("energy")),
    Claim("C5b", "URAL uses less time than all four baselines", "Fig. 4", ural_is_cheaper("time")),
    Claim("C5c", "URAL learns as fast as NUFM", "Fig. 4", ural_learns_as_fast),
    Claim("C6a", "With more blocks URAL's time stays flat", "Fig. 5", time_stays_flat),
    Claim("C6b", "With more blocks URAL's energy grows gently", "Fig. 5", energy_grows_gently),
    Claim("C6c", "Few blocks suffice to learn", "Fig. 5", few_blocks_suffice),
    Claim("C7a", "Energy falls as channels get better", "Fig. 6", better_channels_are_cheaper("energy")),
    Claim("C7b", "Time falls as channels get better", "Fig. 6", better_channels_are_cheaper("time")),
    Claim(
        "C8a", "A larger η₁ buys energy with time", "Fig. 7", weight_trades("energy_weight", _DOWN_UP), UNSAID
    ),
    Claim(
        "C8b", "A larger η₂ buys time with energy", "Fig. 7", weight_trades("delay_weight", _UP_DOWN), UNSAID
    ),
    Claim("C8c", "Learning hardly moves with either weight", "Fig. 7", learning_hardly_moves, UNSAID),
    Claim(
        "C8d",
        "A larger η₁ buys energy with time, by the scale of u",
        "Fig. 7",
        weight_trades_at_scales,
        is_sweep=True,
    ),
    Claim("C9a", "IVES converges in about two iterations", "Sec. VI", ives_takes_two_iterations),
    Claim("C9b", "The objective of IVES never falls", "Thm 5", ives_never_falls),
)
