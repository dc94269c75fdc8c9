"""Does the radio cell slow training down, and does it carry a hundred thousand devices?

    python benchmarks/bench_cell.py

Asserted: at paper scale, drawing the channel, planning and accounting take less than 5 % of a round; and
100,000 devices with 100 blocks are drawn, planned to a proven optimum and accounted in under 2 s, with one
gain per device or one per block, with equal or random maximum powers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.rng import Stream, generator
from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, Outcome, Plan, PolicyRunner, Reports, RoundAims, Work
from fedwave.simulation.cell_world import CellWorld
from fedwave.units import IntArray
from fedwave.wireless.settings.load import load_cell

NUM_ROUNDS = 6
LARGEST_SHARE = 0.05
NUM_DEVICES, NUM_BLOCKS = 100_000, 100
LONGEST_S = 2.0
RANDOM_POWERS: dict[str, object] = {"max_power_w": {"low": 0.0005, "high": 0.04}}  # -3 to 16 dBm


@dataclass
class Timed:
    """A planner or a world that notes how long its answers take."""

    inner: Any
    seconds: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self._timed(found) if name in ("ask", "plan", "channel", "play") else found

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.perf_counter()
            answer = call(*arguments)
            self.seconds.append(time.perf_counter() - start)
            return answer

        return timed


def share_of_a_round(cell_preset: str) -> float:
    """Return the planner's and the world's share of a round: the paper's CNN, 50 devices, 20 blocks."""
    experiment = load_experiment(
        "paper/ural",
        [
            f"cell.preset={cell_preset}",
            f"num_rounds={NUM_ROUNDS}",
            "data.dataset=synthetic",
            "data.dataset.num_samples=20000",
            "data.dataset.shape=[1, 28, 28]",
            "evaluation.every=1000",  # learning and allocating alone
        ],
    )
    sim = build_simulation(experiment)
    planner, world = Timed(sim.federation.planner), Timed(sim.federation.world)
    sim = replace(sim, federation=replace(sim.federation, planner=planner, world=world))
    state, rounds_s, cell_s = sim.initial_state(), [], []
    with closing(sim.open_devices()) as devices:
        for _ in range(NUM_ROUNDS - 1):  # the last round would evaluate
            planner.seconds.clear()
            world.seconds.clear()
            state, record = sim.run_round(state, devices)
            assert len(planner.seconds) == len(world.seconds) == 2  # ask and plan, channel and play
            rounds_s.append(record.columns["wall_time_s"])
            cell_s.append(sum(planner.seconds) + sum(world.seconds))
    assert state.ledger is not None
    assert state.ledger.elapsed_s > 0
    shares = [own / whole for own, whole in zip(cell_s[1:], rounds_s[1:], strict=True)]
    share = statistics.median(shares)  # the first round is a warm-up
    print(
        f"{cell_preset:14} a round takes {statistics.median(rounds_s[1:]):.3f} s, the cell "
        f"{1e3 * statistics.median(cell_s[1:]):.2f} ms of it: {share:.2%} "
        f"(each: {', '.join(f'{one:.2%}' for one in shares)})"
    )
    return share


def seconds_of_a_large_cell(
    name: str,
    fading: dict[str, object],
    *,
    fleet: dict[str, object] | None = None,
    report_bits: float = 0.0,
) -> float:
    """Return the shortest of three rounds' times: draw, plan, play."""
    changes = {"num_blocks": NUM_BLOCKS, "channel": {"fading": fading}, "fleet": fleet or {}}
    start = time.perf_counter()
    cell = load_cell("umi-3.5ghz", num_devices=NUM_DEVICES, overrides=changes)
    built_s = time.perf_counter() - start
    rng = generator(0, Stream.SYNTHETIC_DATA)
    num_samples = rng.integers(4, 20, NUM_DEVICES)
    model_bits = 32 * 110_000.0  # about the paper's CNN
    terms = replace(cell.terms, report_bits=report_bits)
    work = Work(model_bits=model_bits, num_local_steps=1, num_samples=num_samples)
    planner = CellPlanner(
        runner=PolicyRunner(TopContribution(NUM_DEVICES), num_samples, 0),
        fleet=cell.fleet,
        terms=terms,
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0),
        work=work,
    )
    world = CellWorld(cell=cell, terms=terms, work=work, seed=0)
    state = planner.initial_state()
    seconds, drawing = [], []
    for round_index in range(3):
        reports = reports_of_everyone(num_samples, rng)
        start = time.perf_counter()
        channel = world.channel(round_index)
        drawn = time.perf_counter()
        plan = planner.plan(round_index, reports.device_index, reports, channel, state)
        outcome = world.answer(round_index, plan, reports, channel)
        state = planner.after(round_index, reports, plan, outcome, state)
        seconds.append(time.perf_counter() - start)
        drawing.append(drawn - start)
        check(plan, outcome, round_index)
    assert plan.allocation is not None
    print(
        f"{name:28} {min(seconds):.2f} s a round (each: {', '.join(f'{one:.2f}' for one in seconds)}), "
        f"drawing {min(drawing):.2f} s of it; built once in {built_s:.2f} s; "
        f"{plan.allocation.status.value}, {len(plan.selected)} uploads"
    )
    return min(seconds)


def reports_of_everyone(num_samples: IntArray, rng: np.random.Generator) -> Reports:
    """Return reports with contributions u ~ U(0, 10)."""
    count = len(num_samples)
    return Reports(
        device_index=np.arange(count),
        contribution=rng.uniform(0.0, 10.0, count),
        loss=np.zeros(count),
        num_samples=num_samples,
        gradient_norms=np.zeros((count, 1)),
    )


def check(plan: Plan, outcome: Outcome, round_index: int) -> None:
    """Assert that the decision and its account are whole."""
    allocation, costs = plan.allocation, outcome.costs
    assert allocation is not None
    assert costs is not None
    used = allocation.block_of_device[allocation.block_of_device >= 0]
    assert len(np.unique(used)) == len(used) == len(plan.selected) > 0, f"round {round_index}"
    assert allocation.gap < 1e-3
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
