"""What not knowing the gains costs: the regret of plans on estimated gains, with and without backing off.

    python benchmarks/estimated_gains.py [--preset umi-3.5ghz] [--draws 100] [--out docs/figures]

One round of a street cell at a time: 50 devices, 20 blocks, the CNN's 3.62 Mbit, contributions as NUFM's
devices report them (benchmarks/data), scaled to a mean of 1. The planner sees each device's gain with a
log-normal error, plans with the estimate or with a quantile of it, and its plan meets the true gains. Draws,
and the errors up to their size, are the same for all rows. Regret is the proven bound of the optimum with the
true gains less what the plan is worth, as a share of that bound. Once without a deadline, where a wrong plan
is slow, and once with one for the whole round, where it loses uploads; with the radio's powers of TR 38.840
and with those of a measured modem. Writes estimated_gains.csv and prints the tables of docs/results.toml:
medians between order statistics, as regrets have heavy tails.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, allocate, evaluate
from fedwave.intervals import median_interval
from fedwave.rng import Stream, generator
from fedwave.server.estimation import LogNormalError
from fedwave.wireless.power_sets import POWER_SETS
from fedwave.wireless.terms import ChannelDraw
from when_planning_pays import NUM_DEVICES, draw

ERRORS_DB = (0.0, 1.0, 2.0, 3.0, 6.0, 10.0)
QUANTILES = (None, 0.3, 0.1)
METHODS = ("optimal", "threshold", "value-rate")
DEADLINE_S = 4.0  # of the whole round, broadcast included
COLUMNS = ("power_set", "deadline_s", "method", "error_db", "quantile", "draws")
FIGURES = ("regret", "regret_low", "regret_high", "regret_p90", "delay_ratio", "energy_ratio", "lost_share")


def believed(
    problem: AllocationProblem, error_db: float, quantile: float | None, seed: int
) -> AllocationProblem:
    """Return the problem as the planner sees it."""
    error = LogNormalError(num_devices=problem.num_devices, error_db=error_db, quantile=quantile)
    channel = ChannelDraw(problem.channel_gain, problem.interference_w)
    seen = error.seen(channel, rng=generator(seed, Stream.ESTIMATION, 0))
    return replace(problem, channel_gain=seen.channel_gain)


def with_deadline(problem: AllocationProblem, deadline_s: float | None) -> AllocationProblem:
    """Return the problem with a deadline for the round, of which the broadcast takes nothing here."""
    return problem if deadline_s is None else replace(problem, max_round_delay_s=deadline_s)


def rows(preset: str, num_draws: int) -> Iterator[dict[str, object]]:
    """Yield the figures of every power set, deadline, method, error and quantile."""
    for power_set, deadline_s in product(POWER_SETS, (None, DEADLINE_S)):
        truths = [
            with_deadline(draw(preset, power_set, "", 0.0, seed), deadline_s) for seed in range(num_draws)
        ]
        best = [allocate(truth) for truth in truths]
        for method, error_db in product(METHODS, ERRORS_DB):
            for quantile in QUANTILES if error_db else (None,):
                found = [
                    figures_of(truth, optimum, believed(truth, error_db, quantile, seed), method)
                    for seed, (truth, optimum) in enumerate(zip(truths, best, strict=True))
                ]
                regret, delay, energy, lost = (np.array(column) for column in zip(*found, strict=True))
                if error_db == 0.0 and method == "optimal":
                    assert regret.max() < 2e-6, "a plan that knows the gains regrets something"
                middle = median_interval(regret.tolist())
                figures = (middle.median, middle.low, middle.high, float(np.quantile(regret, 0.9)))
                ratios = (float(np.median(delay)), float(np.median(energy)), float(lost.mean()))
                told = (power_set, deadline_s or "", method, error_db, quantile or "", num_draws)
                yield dict(zip((*COLUMNS, *FIGURES), (*told, *figures, *ratios), strict=True))


def figures_of(
    truth: AllocationProblem, optimum: Allocation, seen: AllocationProblem, method: str
) -> tuple[float, float, float, float]:
    """Return regret, time and energy by the clairvoyant optimum's, and the share of uploads that is lost."""
    plan = allocate(seen, method)
    met = evaluate(plan, truth)
    regret = met.regret(optimum) / optimum.upper_bound
    assert regret > -1e-9, "a plan is better than the proven bound"
    lost = met.lost.size / max(plan.num_selected, 1)
    return regret, met.delay_s / optimum.delay_s, met.energy_j / optimum.energy_j, lost


def print_table(found: list[dict[str, object]], power_set: str) -> None:
    """Print one row for every error and quantile."""
    print(
        "| error | plan with | no deadline: regret | worst tenth from | time "
        "| round of 4 s: regret | worst tenth from | uploads lost | value-rate: regret, no deadline / 4 s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    own = {
        (row["deadline_s"], row["method"], row["error_db"], row["quantile"]): row
        for row in found
        if row["power_set"] == power_set
    }
    for error_db in ERRORS_DB:
        for quantile in QUANTILES if error_db else (None,):
            key = (error_db, quantile or "")
            free, late = own["", "optimal", *key], own[DEADLINE_S, "optimal", *key]
            simple = (own[deadline, "value-rate", *key]["regret"] for deadline in ("", DEADLINE_S))
            cells = (
                f"{error_db:g} dB",
                "estimate" if quantile is None else f"{100 * quantile:.0f} % quantile",
                "{regret:.1%} ({regret_low:.1%} to {regret_high:.1%})".format_map(free),
                "{regret_p90:.1%}".format_map(free),
                "× {delay_ratio:.2f}".format_map(free),
                "{regret:.1%} ({regret_low:.1%} to {regret_high:.1%})".format_map(late),
                "{regret_p90:.1%}".format_map(late),
                "{lost_share:.1%}".format_map(late),
                " / ".join(f"{share:.1%}" for share in simple),
            )
            print(f"| {' | '.join(cells).replace('%', ' %').replace('  %', ' %')} |")


def main() -> None:
    """Compute, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", default="umi-3.5ghz")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    words = parser.parse_args()
    assert NUM_DEVICES == 50
    found = list(rows(words.preset, words.draws))
    words.out.mkdir(parents=True, exist_ok=True)
    with (words.out / "estimated_gains.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, (*COLUMNS, *FIGURES), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            for row in found
        )
    for power_set in POWER_SETS:
        print(f"\n{power_set}")
        print_table(found, power_set)


if __name__ == "__main__":
    main()
