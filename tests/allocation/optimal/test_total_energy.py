"""One energy limit for computing and upload: against brute force over times, assignments and SNRs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, Status, account, allocate, build_allocation, total_cost, violations
from fedwave.errors import ProblemError
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import link_problem, small_problem
from tests.allocation.link_oracle import Pair

FEATURES = ("circuit", "errors", "rate", "round", "energy", "floors", "static", "prices")


def shared(rng: np.random.Generator, features, **sizes):
    """Return a problem whose devices have about as much energy as computing and upload at ease take."""
    problem = link_problem(rng, features, **sizes)
    if problem.delay_weight == 0.0:
        problem = replace(problem, delay_weight=0.1)
    plain = allocate(problem)
    costs = account(problem, plain)
    spent = costs.compute_energy_j + np.where(costs.is_selected, costs.upload_energy_j, 1.0)
    limit = spent * rng.uniform(0.4, 1.3, problem.num_devices)
    return replace(problem, max_total_energy_j=np.where(rng.random(limit.size) < 0.2, np.inf, limit))


def best_by_brute_force(problem, num_times=40, also=()):
    """Return the best objective over a grid of computing times, all assignments, and each pair's own SNRs."""
    work, busy = problem.workload_cycles, problem.workload_cycles > 0
    least = np.zeros(work.size) if problem.min_frequency_hz is None else problem.min_frequency_hz
    price = np.broadcast_to(problem.energy_weight, work.shape)
    grid = np.array([1.0])
    if busy.any():
        fastest = float((work[busy] / problem.max_frequency_hz[busy]).max())
        grid = np.append(fastest * np.geomspace(1.0, 60.0, num_times), also)
    best = -np.inf
    for finish in grid:
        frequency = np.zeros(work.size)
        energy = np.zeros(work.size)
        for i in np.flatnonzero(busy):  # every frequency that ends in time: the one of least energy
            low = max(work[i] / finish, least[i])
            some = np.geomspace(low, max(low, problem.max_frequency_hz[i]), 400)
            if problem.static_power_w[i] > 0 and problem.capacitance[i] > 0:
                some = np.append(
                    some,
                    np.clip((problem.static_power_w[i] / problem.capacitance[i]) ** (1 / 3), low, some[-1]),
                )
            joules = work[i] * (
                problem.capacitance[i] / 2 * some**2
                + problem.static_power_w[i] / some
                + problem.joules_per_cycle[i]
            )
            frequency[i], energy[i] = some[np.argmin(joules)], joules.min()
        if (energy > problem.max_total_energy_j * (1 + 1e-9)).any():
            continue
        took = float((work[busy] / frequency[busy]).max()) if busy.any() else 0.0
        cost = float((price * energy).sum()) + problem.delay_weight * took
        left = np.asarray(problem.max_total_energy_j) - energy
        if problem.max_energy_j is not None:
            left = np.minimum(left, problem.max_energy_j)
        part = replace(problem, max_total_energy_j=None, max_energy_j=np.maximum(left, 0.0))
        end = (
            np.inf
            if problem.max_round_delay_s is None
            else problem.max_round_delay_s - problem.fixed_delay_s - took
        )
        if end < -1e-9:
            continue
        best = max(best, -cost, _uploads(part, end) - cost)
    return best


def _uploads(problem, end):
    pairs = {
        (i, m): Pair(problem, i, m, 300)
        for i in range(problem.num_devices)
        for m in range(problem.num_blocks)
    }
    nat = problem.model_bits * np.log(2) / (problem.bandwidth_hz * problem.rate.efficiency)
    best = 0.0
    for chosen in assignments(problem.num_devices, problem.num_blocks):
        members = [pairs[pair] for pair in chosen]
        top = min(min(member.top for member in members), problem.rate.max_snr)
        if top <= 0:
            continue
        marks = [mark for member in members for mark in member.marks if mark <= top]
        snr = np.unique(np.concatenate([np.geomspace(1e-6 * top, top, 120), marks, [top]]))
        delay = nat / np.log1p(snr)
        value = sum(member.best(snr) for member in members) - problem.delay_weight * delay
        value = np.where(delay <= end * (1 + 1e-12), value, -np.inf)
        best = max(best, float(np.nanmax(value)))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_no_time_and_no_assignment_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    features = [name for name in FEATURES if rng.random() < 0.35]
    problem = shared(rng, features, max_devices=3, max_blocks=2)
    found = allocate(problem, relative_gap=1e-3)
    exact = best_by_brute_force(problem)
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(found.objective)
    if found.status is Status.INFEASIBLE:
        assert exact == -np.inf or (found.num_selected == 0 and exact <= found.objective + 1e-9)
        return
    assert violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, rel=1e-12, abs=1e-12)
    assert exact <= found.upper_bound + 1e-9 * scale
    assert exact >= found.objective - 0.05 * scale  # a grid of times is coarse
    assert found.status is not Status.LIMIT
    assert found.upper_bound <= found.objective + 1e-3 * scale


@pytest.mark.parametrize("seed", range(12))
def test_it_is_certified_under_a_rounds_deadline_and_limits_of_each_devices_own(seed):
    """A round that ends with the plan without it, or sooner; the brute force also tries the plan's time."""
    rng = np.random.default_rng(300 + seed)
    own = [name for name in ("own_delay", "own_circuit", "prices", "static") if rng.random() < 0.4]
    problem = shared(rng, own, max_devices=3, max_blocks=2)
    plain = allocate(replace(problem, max_total_energy_j=None))
    limit_s = max(plain.delay_s * rng.uniform(0.6, 1.0), 1.05 * problem.fastest_compute_s)
    problem = replace(problem, max_round_delay_s=limit_s)
    found = allocate(problem, relative_gap=1e-4)
    exact = best_by_brute_force(problem, num_times=20, also=[max(found.compute_delay_s, 1e-9)])
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(found.objective)
    if found.status is Status.INFEASIBLE:
        assert exact == -np.inf or (found.num_selected == 0 and exact <= found.objective + 1e-9)
        return
    assert violations(problem, found) == ()
    assert exact <= found.upper_bound + 1e-9 * scale
    assert exact >= found.objective - 2e-3 * scale
    assert found.upper_bound <= found.objective + 1e-3 * scale


def test_a_limit_that_nobody_meets_changes_nothing():
    for seed in range(10):
        problem = link_problem(np.random.default_rng(seed), ["static", "rate"], max_devices=6, max_blocks=3)
        limited = replace(problem, max_total_energy_j=1e9)
        plain, found = allocate(problem), allocate(limited)
        assert found.objective == pytest.approx(plain.objective, rel=1e-9, abs=1e-9)
        assert found.upper_bound >= plain.objective - 1e-9


def test_slower_computing_leaves_more_for_the_upload():
    # At ease T = (eta_1 iota w^3 / eta_2)^(1/3) = 1 s takes 0.5 J. With 0.4 J in all, it must slow down.
    problem = small_problem(
        contribution=[9.0, 0.0, 0.0],
        workload_cycles=[1.0, 0.0, 0.0],
        capacitance=1.0,
        energy_weight=1.0,
        delay_weight=1.0,
        max_frequency_hz=5.0,
        channel_gain=100.0,
        max_total_energy_j=0.4,
    )
    found = allocate(problem)
    assert found.num_selected == 1
    assert found.compute_delay_s > (0.5 / 0.4) ** 0.5
    costs = account(problem, found)
    assert costs.compute_energy_j[0] + costs.upload_energy_j[0] <= 0.4 * (1 + 1e-9)
    times = np.linspace(1.12, 3.0, 4000)
    part = [
        replace(problem, max_total_energy_j=None, workload_cycles=0.0, max_energy_j=0.4 - 0.5 / t**2)
        for t in times[::100]
    ]
    values = [allocate(one).objective - 0.5 / t**2 - t for one, t in zip(part, times[::100], strict=True)]
    assert max(values) <= found.upper_bound + 1e-9
    assert max(values) >= found.objective - 0.01


def test_who_cannot_even_compute_is_named_and_other_methods_refuse():
    problem = small_problem(max_total_energy_j=[1.0, 1e-6, 1.0], min_frequency_hz=0.5)
    found = allocate(problem)
    assert found.status is Status.INFEASIBLE
    assert "device 1 cannot compute within 1e-06 J even at its most economical frequency" in found.reason
    for name, method in METHODS.items():
        if name != "optimal":
            assert not method.keeps_total_energy
            with pytest.raises(ProblemError, match=f'max_total_energy_j is not known to method "{name}"'):
                allocate(problem, name, rng=np.random.default_rng(0))
    greedy = replace(problem, max_total_energy_j=None)
    plan = allocate(greedy, "greedy", rng=np.random.default_rng(0))
    again = build_allocation(
        problem,
        method="x",
        device=plan.selected,
        block=plan.block_of_device[plan.selected],
        power_w=plan.transmit_power_w[plan.selected],
        cpu_frequency_hz=plan.cpu_frequency_hz,
        status=Status.FEASIBLE,
    )
    assert any(
        "device 1 takes" in line and "max_total_energy_j" in line for line in violations(problem, again)
    )
    endless = small_problem(max_total_energy_j=1.0, energy_weight=0.0, delay_weight=0.0)
    with pytest.raises(ProblemError, match="max_total_energy_j needs a delay_weight > 0, a deadline"):
        allocate(endless)
    idle = small_problem(max_total_energy_j=0.5, workload_cycles=0.0)
    assert (
        allocate(idle).objective == allocate(small_problem(max_energy_j=0.5, workload_cycles=0.0)).objective
    )


def test_the_limit_of_the_upload_alone_holds_as_well():
    problem = small_problem(max_total_energy_j=1e3, max_energy_j=0.6)
    found = allocate(problem)
    assert violations(problem, found) == ()
    assert found.objective == pytest.approx(allocate(small_problem(max_energy_j=0.6)).objective, rel=1e-5)
    assert allocate(small_problem()).objective > found.objective + 1e-3  # it binds
