"""Each limit is broken alone, by hand, from an allocation that keeps them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, AllocationProblem, Status, allocate, total_cost, violations
from fedwave.testing.method import random_problem
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import small_problem


def problem_with_every_limit(**changes) -> AllocationProblem:
    """Return three devices and two blocks; gains, noise, model and bandwidth are 1: SNR = power in watts."""
    values = {
        "contribution": [5.0, 4.0, 3.0],
        "channel_gain": [1.0, 1.0, 1.0],
        "interference_w": [0.0, 0.0],
        "max_power_w": [4.0, 4.0, 4.0],
        "workload_cycles": [1.0, 2.0, 4.0],
        "max_frequency_hz": [4.0, 4.0, 4.0],
        "max_delay_s": 2.0,
        "max_energy_j": [3.0, 1.25, 3.0],
        "max_compute_delay_s": 2.0,
    }
    return small_problem(**(values | changes))


def allocation_that_keeps_them(problem, **changes):
    """Return devices 0 and 1 at 1 W: one second and one joule each; all compute for 1, 2 and 1 seconds."""
    sound = {
        "block_of_device": np.array([1, 0, -1]),
        "transmit_power_w": np.array([1.0, 1.0, 0.0]),
        "cpu_frequency_hz": np.array([1.0, 1.0, 4.0]),
    }
    return replace(allocate(problem), **(sound | changes))


def lines_of(problem, **changes):
    return violations(problem, allocation_that_keeps_them(problem, **changes))


def test_an_allocation_that_keeps_every_limit_breaks_none():
    assert lines_of(problem_with_every_limit()) == ()


SLOW = 2**0.4 - 1  # W: 0.4 bit/s, so 2.5 s for the one bit


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"block_of_device": np.array([0, 0, -1])},
            "block 0 carries devices 0, 1: one may hold it, Eq. (27)",
        ),
        ({"block_of_device": np.array([1, 2, -1])}, "device 1 has block 2, outside -1..1"),
        ({"block_of_device": np.array([1, 0, -2])}, "device 2 has block -2, outside -1..1"),
        (
            {"block_of_device": np.array([1.0, 0.0, -1.0])},
            "block_of_device must hold whole numbers, got float64",
        ),
        (
            {"block_of_device": np.array([1, 0])},
            "block_of_device has the shape (2,), but there are 3 devices",
        ),
        (
            {"transmit_power_w": np.array([[1.0, 1.0, 0.0]])},
            "transmit_power_w has the shape (1, 3), but there are 3 devices",
        ),
        ({"cpu_frequency_hz": np.float64(1.0)}, "cpu_frequency_hz has the shape (), but there are 3 devices"),
        (
            {"transmit_power_w": np.array([4.5, 1.0, 0.0])},
            "device 0 transmits at 4.5 W, outside 0..4 (max_power_w)",
        ),
        (
            {"transmit_power_w": np.array([1.0, -1.0, 0.0])},
            "device 1 transmits at -1 W, outside 0..4 (max_power_w)",
        ),
        (
            {"transmit_power_w": np.array([1.0, 1.0, -1.0])},
            "device 2 transmits at -1 W, outside 0..4 (max_power_w)",
        ),
        (
            {"transmit_power_w": np.array([np.nan, 1.0, 0.0])},
            "device 0 transmits at nan W, outside 0..4 (max_power_w)",
        ),
        (
            {"transmit_power_w": np.array([np.inf, 1.0, 0.0])},
            "device 0 transmits at inf W, outside 0..4 (max_power_w)",
        ),
        ({"transmit_power_w": np.array([1.0, 1.0, 0.5])}, "device 2 transmits at 0.5 W without a block"),
        (
            {"transmit_power_w": np.array([0.0, 1.0, 0.0])},
            "device 0 sends nothing on block 1 (0 W at a gain of 1): it never finishes",
        ),
        (
            {"transmit_power_w": np.array([SLOW, 1.0, 0.0])},
            "device 0 uploads for 2.5 s, above 2 (max_delay_s)",
        ),
        (
            {"transmit_power_w": np.array([1.0, 3.0, 0.0])},
            "device 1 uploads with 1.5 J, above 1.25 (max_energy_j)",
        ),
        (
            {"cpu_frequency_hz": np.array([1.0, 4.5, 4.0])},
            "device 1 computes at 4.5 Hz, outside 0..4 (max_frequency_hz)",
        ),
        (
            {"cpu_frequency_hz": np.array([-1.0, 1.0, 4.0])},
            "device 0 computes at -1 Hz, outside 0..4 (max_frequency_hz)",
        ),
        (
            {"cpu_frequency_hz": np.array([1.0, np.nan, 4.0])},
            "device 1 computes at nan Hz, outside 0..4 (max_frequency_hz)",
        ),
        (
            {"cpu_frequency_hz": np.array([1.0, 1.0, np.inf])},
            "device 2 computes at inf Hz, outside 0..4 (max_frequency_hz)",
        ),
        (
            {"cpu_frequency_hz": np.array([1.0, 0.0, 4.0])},
            "device 1 has 2 cycles of work at 0 Hz: it never finishes",
        ),
        (
            {"cpu_frequency_hz": np.array([1.0, 1.0, 0.02])},
            "device 2 computes for 200 s, above 2 (max_compute_delay_s)",
        ),
    ],
)
def test_one_broken_limit_is_the_one_that_is_named(changes, line):
    assert lines_of(problem_with_every_limit(), **changes) == (line,)


def test_a_selected_device_without_a_gain_never_finishes():
    gain = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    line = "device 0 sends nothing on block 1 (1 W at a gain of 0): it never finishes"
    assert lines_of(problem_with_every_limit(channel_gain=gain)) == (line,)


def test_limits_that_are_not_set_are_not_broken():
    free = problem_with_every_limit(max_delay_s=None, max_energy_j=None, max_compute_delay_s=None)
    assert lines_of(free, transmit_power_w=np.array([1e-9, 4.0, 0.0])) == ()
    assert lines_of(free, cpu_frequency_hz=np.array([1e-9, 1e-9, 1e-9])) == ()
    assert lines_of(free, cpu_frequency_hz=np.zeros(3)) != ()  # work at 0 Hz needs no limit to be endless
    idle = problem_with_every_limit(workload_cycles=0.0)
    assert lines_of(idle, cpu_frequency_hz=np.zeros(3)) == ()


def test_who_stands_exactly_at_a_limit_keeps_it():
    # 1 W: one second; 3 W: half a second and 1.5 J; device 2 computes its 4 cycles in 1 s at its full 4 Hz.
    problem = problem_with_every_limit(
        max_power_w=[1.0, 3.0, 4.0], max_delay_s=1.0, max_energy_j=[1.0, 1.5, 0.0], max_compute_delay_s=1.0
    )
    power, frequency = np.array([1.0, 3.0, 0.0]), np.array([1.0, 2.0, 4.0])
    assert lines_of(problem, transmit_power_w=power, cpu_frequency_hz=frequency) == ()


def test_every_broken_limit_has_its_line():
    lines = lines_of(
        problem_with_every_limit(),
        block_of_device=np.array([0, 0, 1]),
        transmit_power_w=np.array([SLOW, 5.0, np.nan]),
        cpu_frequency_hz=np.array([0.25, 9.0, -1.0]),
    )
    for part in (
        "block 0 carries devices 0, 1",
        "device 1 transmits at 5 W",
        "device 2 transmits at nan W",
        "device 0 uploads for 2.5 s",
        "device 1 uploads with",
        "device 1 computes at 9 Hz",
        "device 2 computes at -1 Hz",
        "device 0 computes for 4 s",
    ):
        assert [part in line for line in lines].count(True) == 1
    assert len(lines) == 8


def test_absurd_numbers_are_listed_not_raised():
    loud = lines_of(problem_with_every_limit(), transmit_power_w=np.array([1.0, 1e308, 0.0]))
    assert any("device 1 transmits at 1e+308 W" in line for line in loud)
    slow = lines_of(problem_with_every_limit(), cpu_frequency_hz=np.array([1.0, 5e-324, 4.0]))
    assert slow == ("device 1 computes for inf s, above 2 (max_compute_delay_s)",)
    faint = lines_of(problem_with_every_limit(), transmit_power_w=np.array([1.0, 1e-310, 0.0]))
    assert faint == ("device 1 sends nothing on block 0 (1e-310 W at a gain of 1): it never finishes",)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_breaks_a_compute_deadline_that_can_be_kept(method):
    kept = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        drawn = random_problem(rng)
        problem = replace(drawn, max_compute_delay_s=float(rng.uniform(0.5, 20)))
        found = allocate(problem, method, rng=rng)
        lines = violations(problem, found)
        if "cannot compute by" in found.reason:
            assert found.status is Status.INFEASIBLE
            assert lines  # nobody can: the deadline is broken, and said to be
            assert all("max_compute_delay_s" in line for line in lines)
        else:
            kept += 1
            assert lines == ()
    assert kept > 100


def test_a_limit_holds_within_a_billionth_and_no_more():
    # w = 2.3 f in three roundings; the frequencies miss the deadline by known shares.
    workload, limit = np.random.default_rng(0).uniform(0.5, 5, 5000), 2.3
    per_device = dict.fromkeys(("contribution", "channel_gain", "max_power_w", "capacitance"), np.ones(5000))
    problem = small_problem(
        **per_device, workload_cycles=workload, max_frequency_hz=10.0, max_compute_delay_s=limit
    )
    for share, num_late in ((0.0, 0), (1e-15, 0), (9.9e-10, 0), (1.1e-9, 5000), (1e-3, 5000)):
        frequency = workload / limit / (1.0 + share)
        lines = violations(problem, replace(allocate(problem), cpu_frequency_hz=frequency))
        assert len(lines) == num_late, share


def test_a_deadline_that_nobody_can_keep_is_named_for_each_late_device():
    problem = small_problem(max_compute_delay_s=0.4)  # the fastest need 0.5, 2 and 0.33 s
    found = allocate(problem)
    assert found.status is Status.INFEASIBLE
    assert violations(problem, found) == (
        "device 0 computes for 0.5 s, above 0.4 (max_compute_delay_s)",
        "device 1 computes for 2 s, above 0.4 (max_compute_delay_s)",
    )


def test_each_broken_limit_of_the_link_is_named():
    problem = AllocationProblem(
        contribution=[1.0, 1.0],
        channel_gain=1.0,
        interference_w=[0.0, 0.0],
        max_power_w=8.0,
        workload_cycles=[1.0, 1.0],
        max_frequency_hz=2.0,
        capacitance=0.0,
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=1,
        delay_weight=1,
    )
    given = replace(
        allocate(problem),
        block_of_device=np.array([0, 1]),
        transmit_power_w=np.array([1.0, 3.0]),
        cpu_frequency_hz=np.array([1.0, 0.5]),
    )
    assert violations(problem, given) == ()
    for terms, line in (
        ({"min_snr": 2.0}, "device 0 sends at an SNR of 1, below 2 (min_snr)"),
        ({"min_frequency_hz": 0.75}, "device 1 computes at 0.5 Hz, below 0.75 (min_frequency_hz)"),
        (
            {"max_round_delay_s": 2.75},
            "device 0 uploads until 3 s of the round, above 2.75 (max_round_delay_s)",
        ),
        (
            {"max_round_delay_s": 3.0, "fixed_delay_s": 0.25},
            "device 0 uploads until 3.25 s of the round, above 3 (max_round_delay_s)",
        ),
        (
            {"max_round_delay_s": 1.75},
            "computing ends after 2 s of the round, above 1.75 (max_round_delay_s)",
        ),
        (
            {"radio": RadioPower(amplifier_efficiency=0.5, circuit_power_w=1.0), "max_energy_j": 3.25},
            "device 1 uploads with 3.5 J, above 3.25 (max_energy_j)",
        ),
        (
            {"rate": RateModel(max_spectral_efficiency=1.0), "max_energy_j": 2.0},
            "device 1 uploads with 3 J, above 2 (max_energy_j)",
        ),
        (
            {"rate": RateModel(min_snr=2.0)},
            "device 0 sends nothing on block 0 (1 W at a gain of 1): it never finishes",
        ),
    ):
        assert violations(replace(problem, **terms), given) == (line,)
    kept = replace(problem, min_snr=1.0, max_round_delay_s=3.0, min_frequency_hz=0.5, max_energy_j=1.5)
    assert violations(kept, given) == ()


@pytest.mark.parametrize("seed", range(30))
def test_nobody_beats_the_bound_by_computing_slowly_where_delay_is_free(seed):
    """With delay_weight 0 the upload's deadline holds for computing, for the bound and here alike."""
    rng = np.random.default_rng(seed)
    deadline_s = float(10.0 ** rng.uniform(-1, 1))
    problem = replace(random_problem(rng), delay_weight=0.0, energy_weight=1.0, max_delay_s=deadline_s)
    problem = replace(problem, max_compute_delay_s=None)
    best = allocate(problem)
    is_busy = problem.workload_cycles > 0
    for slower in (0.999, 0.9, 0.5):
        other = replace(best, cpu_frequency_hz=best.cpu_frequency_hz * slower)
        slow = total_cost(problem, other)
        assert violations(problem, other) != () or slow <= best.upper_bound + 1e-12 * abs(best.upper_bound)
        assert violations(problem, other) == () or is_busy.any()
    for method in METHODS:
        found = allocate(problem, method, rng=rng)
        assert found.status is Status.INFEASIBLE or violations(problem, found) == (), method


def test_the_deadline_that_holds_for_free_delays_is_named():
    problem = small_problem(delay_weight=0.0, max_delay_s=7.0)
    best = allocate(problem)
    slow = replace(best, cpu_frequency_hz=best.cpu_frequency_hz * 0.5)
    assert violations(problem, best) == ()
    assert (
        "device 1 computes for 14 s, above 7 (max_delay_s, which holds for computing, too, where"
        in "".join(violations(problem, slow))
    )
    assert violations(replace(problem, delay_weight=0.1), slow) == ()
    assert violations(replace(problem, max_compute_delay_s=14.0), slow) == ()
    late = replace(problem, max_delay_s=0.9)  # the slowest device takes 2 s at full frequency
    assert violations(late, allocate(late)) == ()
    over = violations(replace(problem, max_round_delay_s=30.0), slow)
    assert over == ()
