"""Does the radio cell slow training down, and does it carry a hundred thousand devices?

    python benchmarks/bench_cell.py

Asserted: at paper scale, drawing the channel, allocating and accounting take less than 5 % of a round; and
100,000 devices with 100 blocks are drawn, allocated to a proven optimum and accounted in under 2 s, with one
gain per device or one per block, with equal or random maximum powers.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import numpy as np

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.rng import Stream, generator
from fedwave.simulation.cell_scheduler import CellScheduler
from fedwave.simulation.contribution_scale import ContributionScale
from fedwave.simulation.scheduler import Reports, Schedule, Scheduler
from fedwave.simulation.workers import Workers
from fedwave.units import IntArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.load import load_cell_config

NUM_ROUNDS = 6
LARGEST_SHARE = 0.05
NUM_DEVICES, NUM_BLOCKS = 100_000, 100
LONGEST_S = 2.0
RANDOM_POWERS: dict[str, object] = {"max_power_w": {"low": 0.0005, "high": 0.04}}  # -3 to 16 dBm


@dataclass
class Timed:
    """A scheduler that notes how long each of its decisions takes."""

    inner: Scheduler
    seconds: list[float] = field(default_factory=list)

    @property
    def max_models(self) -> int:
        return self.inner.max_models

    def computing(self, round_index: int) -> IntArray:
        return self.inner.computing(round_index)

    def schedule(self, round_index: int, reports: Reports) -> Schedule:
        start = time.perf_counter()
        schedule = self.inner.schedule(round_index, reports)
        self.seconds.append(time.perf_counter() - start)
        return schedule


def share_of_a_round(cell_preset: str) -> float:
    """Return the scheduler's share of the rounds' time: the paper's CNN, 50 devices, 20 blocks."""
    experiment = load_experiment(
        "paper/ural",
        [
            f"cell.preset={cell_preset}",
            f"num_rounds={NUM_ROUNDS}",
            "data.dataset=synthetic",
            "data.num_samples=20000",
            "data.shape=[1, 28, 28]",
            "evaluation.every=1000",  # learning and allocating alone
        ],
    )
    sim = build_simulation(experiment)
    timed = Timed(sim.scheduler)
    object.__setattr__(sim, "scheduler", timed)
    state, rounds_s = sim.initial_state(), []
    with Workers() as workers:
        for _ in range(NUM_ROUNDS - 1):  # the last round would evaluate
            state, record = sim.run_round(state, workers)
            rounds_s.append(record.columns["wall_time_s"])
    assert state.ledger is not None
    assert state.ledger.elapsed_s > 0
    shares = [own / whole for own, whole in zip(timed.seconds[1:], rounds_s[1:], strict=True)]
    share = statistics.median(shares)  # the first round is a warm-up
    print(
        f"{cell_preset:14} a round takes {statistics.median(rounds_s[1:]):.3f} s, the cell "
        f"{1e3 * statistics.median(timed.seconds[1:]):.2f} ms of it: {share:.2%} "
        f"(each: {', '.join(f'{one:.2%}' for one in shares)})"
    )
    return share


def seconds_of_a_large_cell(
    name: str, fading: dict[str, object], *, fleet: dict[str, object] | None = None, **settings: float
) -> float:
    """Return the shortest of three rounds' times: draw, allocate, account."""
    changes = {"num_blocks": NUM_BLOCKS, "channel": {"fading": fading}, "fleet": fleet or {}}
    config = load_cell_config("umi-3.5ghz", changes)
    start = time.perf_counter()
    cell = Cell.build(config, num_devices=NUM_DEVICES, seed=0)
    built_s = time.perf_counter() - start
    rng = generator(0, Stream.SYNTHETIC_DATA)
    scheduler = CellScheduler(
        cell=cell,
        num_samples=rng.integers(4, 20, NUM_DEVICES),
        num_local_steps=1,
        model_bits=32 * 110_000.0,  # about the paper's CNN
        method="optimal",
        selection="nufm",
        energy_weight=1.0,
        delay_weight=1.0,
        scale=ContributionScale("raw"),
        seed=0,
        **settings,
    )
    everyone = np.arange(NUM_DEVICES)
    seconds, drawing = [], []
    for round_index in range(3):
        reports = Reports(everyone, rng.uniform(0.0, 10.0, NUM_DEVICES))
        start = time.perf_counter()
        cell.draw(round_index)
        drawing.append(time.perf_counter() - start)
        start = time.perf_counter()
        schedule = scheduler.schedule(round_index, reports)  # draws once more
        seconds.append(time.perf_counter() - start)
        check(schedule, round_index)
    print(
        f"{name:28} {min(seconds):.2f} s a round (each: {', '.join(f'{one:.2f}' for one in seconds)}), "
        f"drawing {min(drawing):.2f} s of it; built once in {built_s:.2f} s; "
        f"{schedule.round_columns['allocation_status']}, {len(schedule.selected)} uploads"
    )
    return min(seconds)


def check(schedule: Schedule, round_index: int) -> None:
    """Assert that the decision and its account are whole."""
    costs, blocks = schedule.costs, schedule.device_columns["block"]
    assert costs is not None
    used = blocks[blocks >= 0]
    assert len(np.unique(used)) == len(used) == len(schedule.selected) > 0, f"round {round_index}"
    assert schedule.round_columns["objective_gap"] < 1e-3
    total = costs.compute_energy_j.sum() + costs.report_energy_j.sum() + costs.upload_energy_j.sum()
    assert np.isclose(total, costs.energy_j, rtol=1e-9)
    assert np.isfinite(costs.delay_s)


def main() -> None:
    print(f"Paper scale: median of {NUM_ROUNDS - 2} rounds; the cell may take {LARGEST_SHARE:.0%}")
    shares = [share_of_a_round(preset) for preset in ("paper", "paper-redrawn", "umi-3.5ghz")]
    print(f"{NUM_DEVICES:,} devices, {NUM_BLOCKS} blocks: best of 3 rounds; each may take {LONGEST_S:g} s")
    seconds = [
        seconds_of_a_large_cell("Rayleigh on each block", {"kind": "rayleigh"}),
        seconds_of_a_large_cell("the same, random powers", {"kind": "rayleigh"}, fleet=RANDOM_POWERS),
        seconds_of_a_large_cell("one gain per device", {"kind": "rayleigh", "per_block": False}),
        seconds_of_a_large_cell("on each block, with reports", {"kind": "rayleigh"}, report_bits=32.0),
    ]
    assert max(shares) < LARGEST_SHARE, (
        f"the cell takes {max(shares):.2%} of a round, not {LARGEST_SHARE:.0%}"
    )
    assert max(seconds) < LONGEST_S, f"a round takes {max(seconds):.2f} s, it may take {LONGEST_S:g} s"


if __name__ == "__main__":
    main()
