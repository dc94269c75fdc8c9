"""Limits that only just allow an allocation: set to its own delays, energies and powers, to the last bit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fedwave.allocation import (
    METHODS,
    AllocationProblem,
    Status,
    account,
    allocate,
    build_allocation,
    violations,
)
from fedwave.allocation.tolerance import LIMIT_TOLERANCE, RELAXED, exceeds
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import small_problem

LIMITS = ("max_delay_s", "max_energy_j", "max_power_w")


def exact_watts(problem, i, m):
    """Return (I + B N0) / h in high precision, or None without a gain."""
    gain = problem.channel_gain[i, m] if problem.is_frequency_selective else problem.channel_gain[i]
    noise = mpf(problem.interference_w[m]) + mpf(problem.bandwidth_hz) * mpf(problem.noise_psd_w_per_hz)
    return noise / mpf(gain) if gain > 0 else None


def exact_upload(problem, i, m, power):
    """Return delay and energy of an upload in high precision, Eq. (28), (29)."""
    rate = mpf(problem.bandwidth_hz) * mpmath.log1p(mpf(power) / exact_watts(problem, i, m)) / mpmath.log(2)
    delay = mpf(problem.model_bits) / rate
    return delay, delay * mpf(power)


def best_within(problem, slack):
    """Return the best g2 over all assignments if every limit is ``slack`` larger: brute force, 60 digits."""
    nat_time = mpf(problem.model_bits) / mpf(problem.bandwidth_hz) * mpmath.log(2)
    floor = mpf(0)
    if problem.max_delay_s is not None:
        floor = mpmath.expm1(nat_time / (mpf(problem.max_delay_s) * slack))
    watts, cap = {}, {}
    for i, m in itertools.product(range(problem.num_devices), range(problem.num_blocks)):
        watts[i, m] = exact_watts(problem, i, m)
        if watts[i, m] is None or problem.max_power_w[i] == 0:
            cap[i, m] = mpf(-1)
            continue
        cap[i, m] = mpf(problem.max_power_w[i]) * slack / watts[i, m]
        if problem.max_energy_j is not None and np.isfinite(problem.max_energy_j[i]):
            factor = mpf(problem.max_energy_j[i]) * slack / (watts[i, m] * nat_time)
            if factor <= 1:
                cap[i, m] = mpf(-1)
                continue
            branch = mpmath.lambertw(-mpmath.exp(-1 / factor) / factor, -1).real
            cap[i, m] = min(cap[i, m], mpmath.expm1(-1 / factor - branch))
    best = mpf(0)
    for pairs in assignments(problem.num_devices, problem.num_blocks):
        highest = min(cap[pair] for pair in pairs)
        if highest <= 0 or highest < floor:
            continue
        unit = mpf(problem.energy_weight) * nat_time * sum(watts[pair] for pair in pairs)
        snr = highest
        if unit > 0:
            ratio = mpf(problem.delay_weight) * nat_time / unit
            snr = mpmath.expm1(1 + mpmath.lambertw((ratio - 1) / mpmath.e).real)
        snr = max(floor, min(snr, highest))
        logarithm = mpmath.log1p(snr)
        value = sum(mpf(problem.contribution[i]) for i, _ in pairs)
        value -= (unit * snr + mpf(problem.delay_weight) * nat_time) / logarithm
        best = max(best, value)
    return best


def draw(rng):
    """Return a problem without limits, and an allocation of it at one SNR or at one per device."""
    n, num_blocks = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    is_round = rng.random() < 0.5
    shape = (n, num_blocks) if rng.random() < 0.4 else (n,)
    if is_round:
        gain = rng.choice([0.0, 0.25, 0.5, 1.0, 2.0], shape)
        scale = {"model_bits": 1.0, "bandwidth_hz": 1.0, "noise_psd_w_per_hz": 1.0}
    else:
        gain = 10.0 ** rng.uniform(-3, 1, shape)
        scale = {"model_bits": 1e6, "bandwidth_hz": 1.8e5, "noise_psd_w_per_hz": 1e-6}
    problem = AllocationProblem(
        contribution=rng.uniform(50, 100, n),
        channel_gain=gain,
        interference_w=rng.choice([0.0, 1.0], num_blocks),
        max_power_w=1e9,
        workload_cycles=0.0,
        max_frequency_hz=1.0,
        capacitance=0.0,
        energy_weight=float(rng.choice([0.0, 1e-3, 0.25])),
        delay_weight=float(rng.choice([1e-3, 0.5])),
        **scale,
    )
    block = rng.permutation(num_blocks)[: min(n, num_blocks)]
    device = rng.permutation(n)[: block.size]
    heard = problem.gain_of(device, block) > 0
    device, block = device[heard], block[heard]
    snr = rng.choice([1.0, 3.0, 7.0]) if is_round else 10.0 ** rng.uniform(-1, 2)
    if rng.random() < 0.3:
        snr = snr * rng.uniform(1, 3, device.size)
    power = snr * problem.block_noise_w[block] / problem.gain_of(device, block)
    return problem, device, block, power


def limited(problem, device, block, power, which, rng):
    """Return the problem with limits at the allocation's own values, others' limits being 0 or none."""
    given = build_allocation(
        problem,
        method="given",
        device=device,
        block=block,
        power_w=power,
        cpu_frequency_hz=np.zeros(problem.num_devices),
        status=Status.FEASIBLE,
    )
    entry = account(problem, given)
    changes = {}
    if "max_delay_s" in which:
        changes["max_delay_s"] = float(entry.upload_delay_s.max())
        if rng.random() < 0.5:  # the definition's own value, or the true one, rounded
            changes["max_delay_s"] = float(
                max(exact_upload(problem, i, m, p)[0] for i, m, p in zip(device, block, power, strict=True))
            )
    if "max_energy_j" in which:
        energy = entry.upload_energy_j.copy()
        if rng.random() < 0.5:
            for i, m, p in zip(device, block, power, strict=True):
                energy[i] = float(exact_upload(problem, i, m, p)[1])
        energy[np.setdiff1d(np.arange(problem.num_devices), device)] = rng.choice([0.0, np.inf])
        changes["max_energy_j"] = energy
    if "max_power_w" in which:
        changes["max_power_w"] = given.transmit_power_w
    return replace(problem, **changes)


CASES = [which for size in (1, 2, 3) for which in itertools.combinations(LIMITS, size)]


@pytest.mark.parametrize("which", CASES, ids="+".join)
def test_who_meets_the_limits_exactly_is_never_lost(which):
    for seed in range(45):
        rng = np.random.default_rng(seed)
        problem, device, block, power = draw(rng)
        if device.size == 0:
            continue
        problem = limited(problem, device, block, power, which, rng)
        with mpmath.workdps(60):
            exact, relaxed = best_within(problem, 1 + mpf("1e-12")), best_within(problem, 1 + mpf("1e-9"))
            scale = float(problem.contribution.sum())
            for method in ("optimal", "ives"):
                found = allocate(problem, method)
                assert violations(problem, found) == ()
                assert found.objective <= float(relaxed) + 1e-9 * scale
                for i in found.selected:
                    delay, energy = exact_upload(
                        problem, i, found.block_of_device[i], found.transmit_power_w[i]
                    )
                    assert found.transmit_power_w[i] <= problem.max_power_w[i]
                    if problem.max_delay_s is not None:
                        assert delay <= mpf(problem.max_delay_s) * (1 + mpf(LIMIT_TOLERANCE))
                    if problem.max_energy_j is not None and np.isfinite(problem.max_energy_j[i]):
                        assert energy <= mpf(problem.max_energy_j[i]) * (1 + mpf(LIMIT_TOLERANCE))
                if method == "optimal":
                    assert found.objective >= float(exact) - 1e-9 * scale, seed
                    assert found.upper_bound >= float(exact) - 1e-9 * scale
                    assert found.status is not Status.INFEASIBLE


def test_the_only_block_that_a_device_can_use_may_meet_both_limits_exactly():
    # On block 2 an SNR of 1 takes one second and one joule; block 0 is too noisy, block 1 deaf.
    problem = AllocationProblem(
        contribution=[4.0],
        channel_gain=[[0.5, 0.0, 1.0]],
        interference_w=[1.0, 0.0, 0.0],
        max_power_w=2.0,
        workload_cycles=0.0,
        max_frequency_hz=1.0,
        capacitance=0.0,
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=0.25,
        delay_weight=0.5,
        max_delay_s=1.0,
        max_energy_j=1.0,
    )
    for method in ("optimal", "ives"):
        found = allocate(problem, method)
        assert found.block_of_device.tolist() == [2]
        assert found.objective == pytest.approx(3.25, rel=1e-9)  # 4 - 0.25 J - 0.5 s
        assert violations(problem, found) == ()
    best = allocate(problem)
    assert best.status is Status.OPTIMAL
    assert best.upper_bound == pytest.approx(3.25, rel=1e-9)


@pytest.mark.parametrize("snr", [1e-15, 1e-12, 1e-9, 1e-7, 1e-4])
def test_an_energy_limit_at_a_faint_signal_is_met_at_that_signal(snr):
    # The energy 1 + snr / 2 of such an upload hardly depends on the SNR: rounding must not hide it.
    problem = small_problem(
        contribution=[1e3, 0.0, 0.0], max_power_w=[10.0, 0.0, 0.0], interference_w=[0.0], workload_cycles=0.0,
        delay_weight=snr, energy_weight=1e-6,
    )  # fmt: skip
    delay, energy = exact_upload(problem, 0, 0, snr)
    problem = replace(problem, max_energy_j=float(energy))
    found = allocate(problem)
    assert found.num_selected == 1
    assert found.objective >= 1e3 - 1e-6 * float(energy) - snr * float(delay) * (1 + 1e-6)
    assert violations(problem, found) == ()


@pytest.mark.parametrize(
    ("changes", "is_feasible"),
    [
        ({"max_delay_s": 1.0 - 0.9e-9}, True),
        ({"max_delay_s": 1.0 - 1.1e-9}, False),
        ({"max_delay_s": 1.0, "max_energy_j": 1.0 - 0.9e-9}, True),
        ({"max_delay_s": 1.0, "max_energy_j": 1.0 - 1.5e-9}, False),
        ({"max_energy_j": np.log(2) * (1 - 0.9e-9)}, True),  # less than the slowest upload takes
        ({"max_energy_j": np.log(2) * (1 - 1.1e-9)}, False),
        # Half a tolerance of each: a little slower than allowed, with a little more energy than allowed.
        ({"max_delay_s": 1.0 - 0.9e-9, "max_energy_j": 1.0 - 0.5e-9}, True),
    ],
)
def test_the_tolerance_is_a_relative_billionth(changes, is_feasible):
    # One watt is an SNR of 1: one second, one joule.
    values = {
        "max_power_w": [1.0, 0.0, 0.0],
        "interference_w": [0.0],
        "workload_cycles": 0.0,
        "delay_weight": 1e-12,
    }
    problem = small_problem(**(values | changes))
    found = allocate(problem)
    assert (found.num_selected == 1) is is_feasible
    assert (found.status is Status.INFEASIBLE) is not is_feasible
    assert violations(problem, found) == ()


def test_violations_use_the_same_tolerance():
    assert not exceeds(1.0 + 0.9e-9, 1.0)
    assert exceeds(1.0 + 1.1e-9, 1.0)
    assert exceeds(np.nan, 1.0)
    assert not exceeds(1e308, np.inf)
    assert 1.0 < RELAXED < 1.0 + LIMIT_TOLERANCE
    problem = small_problem(workload_cycles=0.0)
    found = allocate(problem)
    entry = account(problem, found)
    tight = {
        "max_delay_s": float(entry.upload_delay_s.max()),
        "max_energy_j": np.where(entry.upload_energy_j > 0, entry.upload_energy_j, 1.0),
        "max_power_w": np.where(found.transmit_power_w > 0, found.transmit_power_w, 1.0),
    }
    for name, limit in tight.items():
        assert violations(replace(problem, **{name: limit * (1 - 0.9e-9)}), found) == ()
        lines = violations(replace(problem, **{name: limit * (1 - 2e-9)}), found)
        assert lines
        assert all(f"({name})" in line for line in lines)


@pytest.mark.parametrize("method", METHODS)
def test_zero_gains_powers_and_limits_raise_no_warning(method):
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, num_blocks = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        problem = AllocationProblem(
            contribution=rng.integers(-1, 4, n),
            channel_gain=rng.integers(0, 3, (n, num_blocks) if rng.random() < 0.5 else n),
            interference_w=rng.integers(0, 2, num_blocks),
            max_power_w=rng.integers(0, 3, n),
            workload_cycles=rng.integers(0, 2, n),
            max_frequency_hz=1.0,
            capacitance=rng.integers(0, 2, n),
            model_bits=1,
            bandwidth_hz=1,
            noise_psd_w_per_hz=1,
            energy_weight=float(rng.choice([0.0, 0.25, 1.0])),
            delay_weight=float(rng.choice([0.5, 1.0])),
            max_delay_s=None if rng.random() < 0.5 else float(rng.choice([0.5, 1.0, 2.0])),
            max_energy_j=[None, np.inf, rng.choice([0.0, 1.0, np.inf], n), 1.0][int(rng.integers(4))],
        )
        found = allocate(problem, method, rng=rng)  # warnings are errors, and numpy raises
        assert violations(problem, found) == ()
        assert not np.isnan(found.objective)
