"""The certificate on rounds of calibrated cells: antennas, capped means, phones, estimated gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from fedwave.allocation import AllocationProblem, Status, allocate, violations
from fedwave.server import problem_of_cell
from fedwave.server.estimation import LogNormalError
from fedwave.wireless.settings.load import load_cell
from tests.allocation.link_oracle import Computing, Pair, best_by_link_brute_force

PRESETS = ("umi-3.5ghz", "uma-2ghz", "rma-700mhz")
NUM_DEVICES, NUM_BLOCKS, MODEL_BITS = 5, 3, 3.6e6


def a_round(preset: str, seed: int, *, estimated: bool = False, **link: object) -> AllocationProblem:
    cell = load_cell(preset, num_devices=NUM_DEVICES, seed=seed, overrides={"num_blocks": NUM_BLOCKS})
    assert cell.fleet.static_power_w.min() > 0  # these cells have phones
    rng = np.random.default_rng(seed)
    problem = problem_of_cell(cell, rng.uniform(0, 2, NUM_DEVICES), model_bits=MODEL_BITS, **link)
    if not estimated:
        return problem
    seen = LogNormalError(num_devices=NUM_DEVICES, error_db=6.0, quantile=0.1).seen(cell.draw(0), rng=rng)
    return replace(problem, channel_gain=seen.channel_gain)


def best_on_a_grid(problem: AllocationProblem, upload_delay_s: float) -> float:
    """Return the optimum of a linear programme in whole numbers over (device, block, delay).

    Delays are of a grid that has the given one among them, and an upload may end before its delay. Worths
    come from the definitions (`Pair`), the choice among them from HiGHS.
    """
    end = np.inf if problem.max_round_delay_s is None else problem.max_round_delay_s - problem.fixed_delay_s
    computing = Computing(problem)
    nat_time = problem.model_bits * np.log(2) / (problem.bandwidth_hz * problem.rate.efficiency)
    delays = np.unique([upload_delay_s, *np.geomspace(0.2 * upload_delay_s, 5 * upload_delay_s, 25)])
    pairs = [
        (i, m, Pair(problem, i, m)) for i in range(problem.num_devices) for m in range(problem.num_blocks)
    ]
    best = -float(computing.by(end))
    for delay in delays:
        rest = float(problem.delay_weight * delay + computing.by(end - delay))
        snr = np.array([np.expm1(nat_time / delay) * (1 - 1e-12)])
        if not np.isfinite(rest) or snr[0] > problem.rate.max_snr:  # no modem is faster than its cap
            continue
        worth = np.array([float(pair.best(snr)[0]) if pair.top > 0 else -np.inf for *_, pair in pairs])
        possible = [k for k in range(len(pairs)) if np.isfinite(worth[k])]
        if not possible:
            continue
        rows = [[pairs[k][0] == i for k in possible] for i in range(problem.num_devices)]
        rows += [[pairs[k][1] == m for k in possible] for m in range(problem.num_blocks)]
        found = milp(
            -worth[possible],
            constraints=LinearConstraint(np.array(rows, dtype=float), -np.inf, 1.0),
            integrality=np.ones(len(possible)),
            bounds=(0, 1),
        )
        best = max(best, -float(found.fun) - rest)
    return best


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["plain", "patient", "deadline", "estimated"])
def test_rounds_of_calibrated_cells_are_certified(preset: str, seed: int, case: str) -> None:
    # With time as cheap as this no CPU runs at its top: static power and the delay's price decide its speed.
    weights = {"energy_weight": 0.07, "delay_weight": 0.01} if case == "patient" else {}
    problem = a_round(preset, seed, estimated=case == "estimated", **weights)
    found = allocate(problem)
    if case == "deadline":  # computing has to hurry; uploads at the modem's cap could not
        fastest_s = float((problem.workload_cycles / problem.max_frequency_hz).max())
        hurried_s = 0.5 * (fastest_s + found.delay_s - found.upload_delay_s)
        problem = a_round(preset, seed, max_round_delay_s=found.upload_delay_s + hurried_s)
        slower, found = found, allocate(problem)
        assert found.objective < slower.objective
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(found.objective)
    assert violations(problem, found) == ()
    assert found.status is Status.OPTIMAL
    exact = best_by_link_brute_force(problem)
    assert exact - 1e-9 * scale <= found.objective <= exact + 1e-7 * scale
    assert found.upper_bound >= exact - 1e-11 * scale
    assert found.num_selected > 0
    on_grid = best_on_a_grid(problem, found.upload_delay_s)
    assert found.objective - 1e-6 * scale <= on_grid <= found.upper_bound + 1e-9 * scale
