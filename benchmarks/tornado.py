"""How far the headline ratios move when a constant of the energy account is halved or doubled.

    python benchmarks/tornado.py [--preset umi-3.5ghz] [--draws 100] [--out docs/figures]

One round of the street cell at a time: 50 devices, 20 blocks, the CNN's 3.62 Mbit, contributions as NUFM's
devices report them. Each constant is halved and doubled, everything is planned again by the optimum,
value-rate, threshold and Greedy, and the whole round is accounted: broadcast, computing, uploads, sleep and
ramp-ups of all devices. The ratio is a method's seconds or joules by the optimum's in the same draw. Writes
energy_tornado.csv and .png: medians over draws with 95 % intervals, and the median of each draw's own shift,
as a factor; prints the table of docs/results.toml. Asserts that energies which no plan sees move no time.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_allocation import trained_contributions
from fedwave import account, load_cell, problem_of_cell
from fedwave.allocation import Allocation, allocate
from fedwave.intervals import median_interval
from fedwave.plots.style import new_figure, save_figure
from fedwave.rng import Stream, generator
from fedwave.simulation.account import Messages
from fedwave.units import FloatArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.power_sets import POWER_SETS, PowerSet, WaitingKind
from fedwave.wireless.sleep import Waiting
from when_planning_pays import MODEL_BITS, NUM_BLOCKS, NUM_DEVICES, WEIGHTS

NUM_SAMPLES = 14
METHODS = {"threshold": "Threshold", "value-rate": "Value-rate", "greedy": "NUFM-Greedy"}
COLUMNS = (
    "constant",
    "factor",
    "method",
    "quantity",
    "ratio",
    "low",
    "high",
    "shift",
    "shift_low",
    "shift_high",
)
UNITS = {"delay_s": "seconds", "energy_j": "joules"}
NO_PLAN_SEES = ("power of receiving", "power of sleep", "energy of ramp-ups", "carrier listened to")


@dataclass(frozen=True, kw_only=True)
class ScaledSet(PowerSet):
    """A power set with its rest scaled by itself."""

    sleep: float = 1.0
    ramp: float = 1.0

    def waiting(self, kind: WaitingKind, bandwidth_hz: float) -> Waiting:
        """Return the states with their powers and ramp-ups scaled."""
        states = super().waiting(kind, bandwidth_hz).states
        return Waiting(
            tuple(
                replace(one, power_w=self.sleep * one.power_w, ramp_energy_j=self.ramp * one.ramp_energy_j)
                for one in states
            )
        )


def cell_of(preset: str, seed: int, overrides: dict[str, Any], power_set: PowerSet | None = None) -> Cell:
    """Return the street cell with some settings changed, and with a power set of its own if one is given."""
    settings = {"num_blocks": NUM_BLOCKS, **overrides}
    if power_set is not None:
        POWER_SETS["scaled"] = power_set
        settings = {**settings, "radio": {"power_set": "scaled"}}
    return load_cell(preset, num_devices=NUM_DEVICES, seed=seed, overrides=settings)


def radio(key: str) -> Callable[[str, int, float], Cell]:
    """Return how to scale a setting of the radio."""

    def change(preset: str, seed: int, factor: float) -> Cell:
        plain = cell_of(preset, seed, {})
        return cell_of(preset, seed, {"radio": {key: factor * getattr(plain.config.radio, key)}})

    return change


def listening(preset: str, seed: int, factor: float) -> Cell:
    """Scale what receiving drains."""
    plain = cell_of(preset, seed, {})
    return cell_of(
        preset, seed, {"downlink": {"receive_power_w": factor * plain.config.downlink.receive_power_w}}
    )


def power_set(**scaled: bool) -> Callable[[str, int, float], Cell]:
    """Return how to scale a part of the power set, or all of its watts."""

    def change(preset: str, seed: int, factor: float) -> Cell:
        name = cell_of(preset, seed, {}).config.radio.power_set
        own = POWER_SETS[str(name)]
        unit = factor if scaled.get("unit") else 1.0
        return cell_of(
            preset,
            seed,
            {},
            ScaledSet(
                unit_w=unit * own.unit_w,
                deep_sleep_w=unit * own.deep_sleep_w,
                source=own.source,
                sleep=factor if scaled.get("sleep") else 1.0,
                ramp=factor if scaled.get("ramp") else 1.0,
            ),
        )

    return change


def fleet(name: str) -> Callable[[str, int, float], Cell]:
    """Return how to scale a column of the fleet."""

    def change(preset: str, seed: int, factor: float) -> Cell:
        cell = cell_of(preset, seed, {})
        return replace(cell, fleet=replace(cell.fleet, **{name: factor * getattr(cell.fleet, name)}))

    return change


def modem(preset: str, seed: int, factor: float) -> Cell:
    """Take the other power set, whatever the factor."""
    del factor
    return cell_of(preset, seed, {"radio": {"power_set": "measured-x55"}})


CONSTANTS: dict[str, Callable[[str, int, float], Cell]] = {
    "all watts of the radio": power_set(unit=True),
    "amplifier efficiency": radio("amplifier_efficiency"),
    "circuit power": radio("circuit_power_w"),
    "power of receiving": listening,
    "carrier listened to": radio("receive_bandwidth_hz"),
    "power of sleep": power_set(sleep=True),
    "energy of ramp-ups": power_set(ramp=True),
    "CPU: capacitance": fleet("capacitance"),
    "CPU: static power": fleet("static_power_w"),
    "CPU: cycles per operation": fleet("cycles_per_sample"),
}


def costs(cell: Cell, seed: int) -> dict[str, FloatArray]:
    """Return seconds and joules of the whole round for the optimum and each method; NaN if nobody uploads."""
    trained = np.random.default_rng(seed).permutation(trained_contributions()[seed % 100])
    problem = problem_of_cell(
        cell, trained / trained.mean(), num_samples=NUM_SAMPLES, model_bits=MODEL_BITS, **WEIGHTS
    )
    found = {}
    for method in ("optimal", *METHODS):
        plan = allocate(problem, method, rng=generator(seed, Stream.ALLOCATION))
        paid = account(cell, messages(plan))
        some = len(plan.selected) > 0
        found[method] = np.array([paid.delay_s, paid.energy_j]) if some else np.full(2, np.nan)
    return found


def messages(plan: Allocation) -> Messages:
    """Return one round in which everybody computes and the plan's devices upload."""
    everybody = np.arange(NUM_DEVICES)
    uploads = np.isin(everybody, plan.selected)
    return Messages(
        round_index=np.zeros(NUM_DEVICES, dtype=np.int64),
        device=everybody,
        download_bytes=np.full(NUM_DEVICES, MODEL_BITS / 8),
        work=np.full(NUM_DEVICES, float(NUM_SAMPLES)),
        report_bytes=np.zeros(NUM_DEVICES),
        upload_bytes=np.where(uploads, MODEL_BITS / 8, 0.0),
        block=np.where(uploads, plan.block_of_device, np.nan),
        transmit_power_w=plan.transmit_power_w,
        cpu_frequency_hz=plan.cpu_frequency_hz,
    )


def log_ratios(
    preset: str, change: Callable[[str, int, float], Cell], factor: float, draws: int
) -> FloatArray:
    """Return the logarithms of seconds and joules by the optimum's: (draws, methods, 2)."""
    rows = []
    for seed in range(draws):
        found = costs(change(preset, seed, factor), seed)
        rows.append([np.log(found[method] / found["optimal"]) for method in METHODS])
    return np.array(rows)


def table(preset: str, draws: int) -> list[dict[str, Any]]:
    """Return a row for every constant, factor, method and quantity."""
    base = log_ratios(preset, lambda name, seed, _: cell_of(name, seed, {}), 1.0, draws)
    rows = _rows("as it is", 1.0, base, base)
    rows += _rows("measured-x55", 1.0, log_ratios(preset, modem, 1.0, draws), base)
    for constant, change in CONSTANTS.items():
        for factor in (0.5, 2.0):
            found = log_ratios(preset, change, factor, draws)
            if constant in NO_PLAN_SEES:
                assert np.array_equal(found[..., 0], base[..., 0], equal_nan=True), constant
            rows += _rows(constant, factor, found, base)
    return rows


def _rows(constant: str, factor: float, found: FloatArray, base: FloatArray) -> list[dict[str, Any]]:
    rows = []
    for m, method in enumerate(METHODS):
        for q, quantity in enumerate(("delay_s", "energy_j")):
            ratio = median_interval(np.exp(found[:, m, q]).tolist())
            shift = median_interval(np.exp(found[:, m, q] - base[:, m, q]).tolist())
            values = (ratio.median, ratio.low, ratio.high, shift.median, shift.low, shift.high)
            rows.append(dict(zip(COLUMNS, (constant, factor, method, quantity, *values), strict=True)))
    return rows


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print the ratios as they are with their intervals, and those with each constant halved and doubled."""
    panels = [
        (method, quantity) for method in ("value-rate", "greedy") for quantity in ("delay_s", "energy_j")
    ]
    titles = [f"{METHODS[method]}, {UNITS[quantity]}" for method, quantity in panels]
    print(f"| | {' | '.join(titles)} |\n|{'---|' * 5}")
    own = {(row["constant"], row["factor"], row["method"], row["quantity"]): row for row in rows}
    for constant, title in (("as it is", "`tr38840`, as it is"), ("measured-x55", "`measured-x55`")):
        cells = ("{ratio:.2f} ({low:.2f}–{high:.2f})".format_map(own[constant, 1.0, *one]) for one in panels)
        print(f"| {title} | {' | '.join(cells)} |")
    for constant in CONSTANTS:
        title = constant if constant != next(iter(CONSTANTS)) else f"**halved / doubled:** {constant}"
        cells = (
            " / ".join(f"{own[constant, factor, *one]['ratio']:.2f}" for factor in (0.5, 2.0))
            for one in panels
        )
        print(f"| {title} | {' | '.join(cells)} |")


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw a tornado for each quantity: how the ratio of each method moves with each constant."""
    figure, axes = new_figure(len(METHODS), width=3.6, height=3.2, num_rows=2)
    place = {name: k for k, name in enumerate(reversed(CONSTANTS))}
    panels = [(quantity, method) for quantity in ("delay_s", "energy_j") for method in METHODS]
    for axis, (quantity, method) in zip(axes, panels, strict=True):
        own = [row for row in rows if (row["quantity"], row["method"]) == (quantity, method)]
        now = next(row["ratio"] for row in own if row["constant"] == "as it is")
        for row in own:
            if row["constant"] not in place:
                continue
            colour = "#0072B2" if row["factor"] < 1 else "#D55E00"
            offset = 0.18 if row["factor"] < 1 else -0.18
            axis.barh(
                place[row["constant"]] + offset, row["ratio"] - now, left=now, height=0.34, color=colour
            )
        dear = next(row["ratio"] for row in own if row["constant"] == "measured-x55")
        axis.axvline(now, color="#000000", linewidth=0.8)
        axis.axvline(dear, color="#CC79A7", linewidth=1.2, linestyle="--")
        spread = max(0.02, *(1.15 * abs(row["ratio"] - now) for row in own))
        axis.set_xlim(now - spread, now + spread)
        axis.set_title(f"{METHODS[method]}: {UNITS[quantity]} by the optimum's", fontsize=8.5)
        axis.set_yticks(list(place.values()), list(place) if method == next(iter(METHODS)) else [])
        axis.tick_params(labelsize=7.5)
    legend = "blue: halved · orange: doubled · black: as it is (tr38840) · dashed: power set measured-x55"
    figure.supxlabel(legend, fontsize=8.5)
    save_figure(figure, path)


def main() -> None:
    """Measure, print, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--preset", default="umi-3.5ghz")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    words = parser.parse_args()
    rows = table(words.preset, words.draws)
    with (words.out / "energy_tornado.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            for row in rows
        )
    print_table(rows)
    plot(rows, words.out / "energy_tornado.png")


if __name__ == "__main__":
    main()
