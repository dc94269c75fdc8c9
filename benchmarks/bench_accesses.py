"""Certified optima of all accesses beside one block each, in CPU seconds of one run.

Prints times as multiples of the one-block optimum of the same problem, objectives, uploads and proven gaps,
and asserts that each certificate holds and that a shared band bounds the others.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from fedwave import load_cell
from fedwave.allocation import METHODS, Allocation, AllocationProblem, Status, account, allocate
from fedwave.server.round_problem import problem_of_cell

_ACCESSES = ("one-block", "blocks", "shared-band", "tdma")


def paper_cell(seed: int, num_devices: int, num_blocks: int, access: str) -> AllocationProblem:
    """Return a draw of Table III with equal blocks, u ~ U(0, 10) and nothing to compute."""
    rng = np.random.default_rng(seed)
    return AllocationProblem(
        contribution=rng.uniform(0, 10, num_devices),
        channel_gain=rng.uniform(0.1, 1, num_devices),
        interference_w=np.full(num_blocks, 0.4),
        max_power_w=rng.uniform(0, 1, num_devices),
        workload_cycles=0.0,
        max_frequency_hz=1.0,
        capacitance=0.0,
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=1,
        delay_weight=1,
        access=access,
    )


def hurried_cell(seed: int, num_devices: int, num_blocks: int) -> AllocationProblem:
    """Return slots with work to do before, and a deadline of the round that makes the CPUs hurry."""
    rng = np.random.default_rng(seed)
    free = replace(
        paper_cell(seed, num_devices, num_blocks, "tdma"),
        workload_cycles=rng.uniform(0.1, 1.0, num_devices),
        max_frequency_hz=2.0,
        capacitance=0.5,
    )
    found = account(free, allocate(free))
    slots_s = float(found.upload_end_s.max())
    return replace(free, max_round_delay_s=0.8 * slots_s + free.fastest_compute_s)


def compare_deadlines(num_draws: int, num_devices: int, num_blocks: int) -> None:
    """Print what a deadline of the whole round costs slots, in multiples of slots without one."""
    without = [timed(paper_cell(seed, num_devices, num_blocks, "tdma"))[1] for seed in range(num_draws)]
    runs = [timed(hurried_cell(seed, num_devices, num_blocks)) for seed in range(num_draws)]
    assert all(found.status in (Status.OPTIMAL, Status.GAP_REACHED) for found, _ in runs)
    seconds = float(np.median([used for _, used in runs]))
    print(
        f"  tdma with a deadline of the round {1e3 * seconds:.1f} ms = {seconds / np.median(without):.1f} x "
        f"without, at most {max(found.iterations for found, _ in runs)} nodes",
        flush=True,
    )


def timed(problem: AllocationProblem) -> tuple[Allocation, float]:
    """Return the optimum and the CPU seconds that it took."""
    start = time.process_time()
    found = allocate(problem)
    return found, time.process_time() - start


def compare_rules(num_draws: int = 20) -> None:
    """Print what each simple rule loses against the certified optimum of its access, in a street cell."""
    rules = ("threshold", "value-rate", "proportional-fair", "equal-split", "fedl-power")
    for access in _ACCESSES:
        losses: dict[str, list[float]] = {name: [] for name in rules if access in METHODS[name].accesses}
        for seed in range(num_draws):
            cell = load_cell("umi-3.5ghz", num_devices=50, seed=seed)
            contribution = np.random.default_rng(seed).exponential(1.0, 50)
            problem = problem_of_cell(cell, contribution, model_bits=113_162 * 32, access=access)
            best = allocate(problem)
            assert best.status in (Status.OPTIMAL, Status.GAP_REACHED)
            for name, lost in losses.items():
                found = allocate(problem, name)
                assert found.objective <= best.upper_bound + 1e-9
                lost.append((best.objective - found.objective) / best.objective)
        row = ", ".join(f"{name} {np.median(lost):.1%}" for name, lost in losses.items())
        print(f"  {access:12s} {row}", flush=True)


def main() -> None:
    """Print a line for each access and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="also n = 1,000, M = 50 and n = 10,000, M = 100")
    parser.add_argument("--rules", action="store_true", help="losses of simple rules in a street cell")
    arguments = parser.parse_args()
    if arguments.rules:
        compare_rules()
        return
    before: dict[str, tuple[int, float]] = {}
    sizes = [(50, 10), (100, 20)] + ([(1_000, 50), (10_000, 100)] if arguments.large else [])
    for num_devices, num_blocks in sizes:
        draws = arguments.draws if num_devices <= 100 else 1
        for access in _ACCESSES:
            allocate(paper_cell(0, 20, 4, access))  # loads what is loaded once
        results = {
            access: [timed(paper_cell(seed, num_devices, num_blocks, access)) for seed in range(draws)]
            for access in _ACCESSES
        }
        base = float(np.median([seconds for _, seconds in results["one-block"]]))
        print(f"n = {num_devices}, M = {num_blocks}, medians of {draws} draws")
        for access, runs in results.items():
            seconds = float(np.median([used for _, used in runs]))
            value = float(np.median([found.objective for found, _ in runs]))
            uploads = int(np.median([found.num_selected for found, _ in runs]))
            delay = float(np.median([found.upload_delay_s for found, _ in runs]))
            gap = max(found.gap for found, _ in runs)
            grown = ""
            if access in before:
                size, past = before[access]
                power = np.log(seconds / past) / np.log(num_devices / size)
                grown = f", grows as n^{power:.2f}"
            before[access] = (num_devices, seconds)
            print(
                f"  {access:12s} {1e3 * seconds:8.1f} ms = {seconds / base:6.1f} x one-block, objective "
                f"{value:7.1f}, {uploads} uploads, {delay:.1f} s, gap <= {gap:.1e}{grown}",
                flush=True,
            )
            assert all(found.status in (Status.OPTIMAL, Status.GAP_REACHED) for found, _ in runs)
        compare_deadlines(draws, num_devices, num_blocks)
        for access in ("one-block", "blocks", "tdma"):
            for (other, _), (shared, _) in zip(results[access], results["shared-band"], strict=True):
                assert other.objective <= shared.upper_bound + 1e-9


if __name__ == "__main__":
    main()
