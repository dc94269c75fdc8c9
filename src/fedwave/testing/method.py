"""The contract of allocation methods: within every limit, repeatable, with the objective that it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, Status, allocate, total_cost, violations
from fedwave.allocation.methods import METHOD, METHODS, Method, find_method
from fedwave.testing.contract import Contract, named
from fedwave.wireless.sanity import units_were_said

NUM_PROBLEMS = 40


def check_method(part: str | Method, /, **options: Any) -> None:
    """Raise unless a method keeps its contract on random problems: tiny, tied, in real units, extreme."""
    contract = Contract(part if isinstance(part, str) else getattr(part.solve, "__name__", "method"))
    with named(METHOD, part) as name, units_were_said():  # powers of any size are meant
        method = find_method(name)
        for seed in range(NUM_PROBLEMS):
            rng = np.random.default_rng(seed)
            problem = random_problem(rng)
            found = contract.answer("solve", allocate, problem, name, seed=seed, **options)
            _check_allocation(contract, problem, found)
            if name in METHODS and part == name:
                fix = "Pass it to build_allocation."
                contract.require(found.method == name, f" must sign as {name}", found.method, fix)
            some = np.flatnonzero(rng.random(problem.num_devices) < 0.5)[: problem.num_blocks]
            among = contract.answer("solve", allocate, problem, name, seed=seed, selected=some, **options)
            _check_allocation(contract, problem, among)
            strange = sorted(set(among.selected.tolist()) - set(some.tolist()))
            given = "selected" if method.serves_given_devices else "may_upload"
            contract.require(not strange, f" must keep to {given} = {some.tolist()}", strange, "Look at it.")


def _check_allocation(contract: Contract, problem: AllocationProblem, found: Allocation) -> None:
    fix = "Make it with fedwave.allocation.build_allocation."
    contract.require(isinstance(found, Allocation), " must return an Allocation", found, fix)
    broken = violations(problem, found)
    contract.require(
        not broken,
        " must keep every limit of the problem",
        broken[:1] and broken[0],
        "Lower it, or leave the device out.",
    )
    cost = total_cost(problem, found)
    close = abs(found.objective - cost) <= 1e-12 * max(abs(cost), 1.0)
    contract.require(close, f".objective must be U - eta_1 E - eta_2 T = {cost:g}", found.objective, fix)
    contract.require(isinstance(found.status, Status), ".status must be a Status", found.status, fix)
    explains = bool(found.reason) or found.status is not Status.INFEASIBLE
    contract.require(explains, " must say why a problem is infeasible", "no reason", "Pass reason=.")
    bound = f".upper_bound must not lie below the objective {found.objective:g}"
    contract.require(
        found.upper_bound >= found.objective, bound, found.upper_bound, "Use inf if none is known."
    )


def random_problem(
    rng: np.random.Generator, *, max_devices: int = 8, max_blocks: int = 5
) -> AllocationProblem:
    """Return a problem of one of four kinds: paper-like, ties and zeros, a real cell, extreme scales."""
    n, num_blocks = int(rng.integers(1, max_devices + 1)), int(rng.integers(1, max_blocks + 1))
    shape = (n, num_blocks) if rng.random() < 0.3 else (n,)

    def scales(low: float, high: float, size: Any = None) -> Any:
        return 10.0 ** rng.uniform(low, high, size)

    u: Any
    h: Any
    p: Any
    interference: Any
    match int(rng.integers(4)):
        case 0:
            u, h, p = rng.uniform(-3, 10, n), rng.uniform(0.1, 1, shape), rng.uniform(0, 1, n)
            interference, bits, bandwidth, noise = rng.uniform(0, 0.8, num_blocks), 1.0, 1.0, 1.0
        case 1:
            u, h, p = rng.integers(-1, 4, n), rng.integers(0, 3, shape), rng.integers(0, 3, n)
            interference, bits, bandwidth, noise = rng.integers(0, 2, num_blocks), 1.0, 1.0, 1.0
        case 2:
            u, h, p = scales(-3, 3, n), scales(-15, -5, shape), scales(-4, 1, n)
            interference, bits, bandwidth, noise = scales(-16, -12, num_blocks), 1e6, 1.8e5, 4e-21
        case _:
            u, h, p = scales(-6, 6, n) * rng.choice([-1, 1], n), scales(-15, 0, shape), scales(-20, 3, n)
            interference, bits = scales(-20, 3, num_blocks), scales(0, 9)
            bandwidth, noise = scales(0, 8), scales(-21, 0)
    return AllocationProblem(
        contribution=u,
        channel_gain=h,
        interference_w=interference,
        max_power_w=p * (rng.random(n) > 0.1),
        workload_cycles=rng.uniform(0, 5, n) * (rng.random(n) > 0.1),
        max_frequency_hz=rng.uniform(0.1, 2, n),
        capacitance=rng.uniform(0, 1, n),
        model_bits=bits,
        bandwidth_hz=bandwidth,
        noise_psd_w_per_hz=noise,
        energy_weight=float(rng.choice([0, 1, scales(-6, 6)])),
        delay_weight=float(rng.choice([1, scales(-6, 6)])),
        max_delay_s=None if rng.random() < 0.6 else scales(-2, 3),
        max_energy_j=None
        if rng.random() < 0.6
        else (scales(-3, 3, n) if rng.random() < 0.5 else scales(-3, 3)),
    )
