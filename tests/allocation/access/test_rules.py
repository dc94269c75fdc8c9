"""Simple rules in every access: within the limits, below the optimum, and what hand arithmetic says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, AllocationProblem, Status, account, allocate, total_cost, violations
from fedwave.allocation.access.rules import best_prefix, equal_split, serve
from tests.allocation.access.access_oracles import FEATURES, alike_problem, computing_cost, upload
from tests.allocation.allocation_problems import paper_problem

OTHERS = ("shared-band", "blocks", "tdma")
RULES = [(name, access) for name in METHODS for access in OTHERS if access in METHODS[name].accesses]


def cell(access: str, **changes: object) -> AllocationProblem:
    """Return 8 devices on 4 blocks without noise to speak of: SNRs by hand."""
    values = {"interference_w": np.full(4, 0.4), "workload_cycles": 0.0, "access": access} | changes
    return paper_problem(3, num_devices=8, num_blocks=4, **values)


def test_which_methods_know_which_access() -> None:
    assert {name for name, _ in RULES} == {
        "optimal",
        "threshold",
        "value-rate",
        "proportional-fair",
        "fedl-power",
        "equal-split",
    }
    assert ("fedl-power", "blocks") not in RULES


@pytest.mark.parametrize(("method", "access"), RULES)
@pytest.mark.parametrize("seed", range(8))
def test_every_rule_keeps_the_limits_and_stays_below_the_bound(method: str, access: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 31])
    features = [feature for feature in FEATURES if rng.random() < 0.3]
    problem = alike_problem(
        rng, access, n=int(rng.integers(1, 9)), m=int(rng.integers(1, 5)), features=features
    )
    found = allocate(problem, method)
    if found.status is not Status.LOST:  # FEDL does not know of outages and rounds that end
        assert violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, abs=1e-9)
    assert found.objective <= allocate(problem).upper_bound + 1e-9
    assert problem.max_uploads is None or found.num_selected <= problem.max_uploads or method == "fedl-power"
    assert found.method == method


@pytest.mark.parametrize("seed", range(6))
def test_over_shares_all_end_together_at_full_power_if_energy_is_free(seed: int) -> None:
    problem = alike_problem(np.random.default_rng(seed), "shared-band", n=5, m=3)
    problem = replace(problem, energy_weight=0.0)
    served = serve(problem, np.arange(5))
    band = problem.num_blocks * problem.bandwidth_hz
    assert served.width_hz.sum() == pytest.approx(band)
    noise = problem.block_noise_w[0] / problem.bandwidth_hz
    for i, b in zip(served.device, served.width_hz, strict=True):
        snr = problem.max_power_w[i] * problem.channel_gain[i] / (b * noise)
        assert b * math.log2(1.0 + snr) * served.delay_s == pytest.approx(problem.model_bits, rel=1e-6)


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("seed", range(5))
def test_the_value_of_what_is_served_is_that_of_the_definitions(access: str, seed: int) -> None:
    features = ("circuit", "round") if seed % 2 else ("deadline",)
    problem = alike_problem(np.random.default_rng([seed, 4]), access, n=4, m=4, features=features)
    served = serve(problem, np.array([2, 0, 3, 1]))
    if served.device.size == 0:
        assert served.value == 0.0
        return
    joules = [
        upload(problem, int(i), b, t)
        for i, b, t in zip(served.device, served.width_hz, served.sending_s, strict=True)
    ]
    value = problem.contribution[served.device].sum() - problem.energy_weight * sum(joules)
    value -= problem.delay_weight * served.delay_s
    value -= computing_cost(problem, served.delay_s) - computing_cost(problem, 0.0)
    assert served.value == pytest.approx(value, rel=1e-6)
    longest = served.sending_s.sum() if access == "tdma" else served.sending_s.max()
    assert served.delay_s == pytest.approx(longest, rel=1e-9)


@pytest.mark.parametrize("access", ["shared-band", "blocks"])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_delay_is_better_with_the_same_shares(access: str, seed: int) -> None:
    problem = alike_problem(np.random.default_rng([seed, 8]), access, n=3, m=3)
    problem = replace(problem, contribution=np.full(3, 50.0))
    served = serve(problem, np.arange(3))
    for factor in np.geomspace(0.3, 5.0, 200):
        joules = [
            upload(problem, int(i), b, served.delay_s * factor)
            for i, b in zip(served.device, served.width_hz, strict=True)
        ]
        value = 150.0 - problem.energy_weight * sum(joules)
        assert value - problem.delay_weight * served.delay_s * factor <= served.value + 1e-7


def test_spare_blocks_go_to_whoever_would_end_last() -> None:
    problem = cell("blocks", channel_gain=np.array([1.0, 0.2, 1, 1, 1, 1, 1, 1]), max_power_w=3.0)
    served = serve(problem, np.array([0, 1]))
    assert served.width_hz.tolist() == [1.0, 3.0]  # the weak one has all that is left
    ends = [1.0 / (k * math.log2(1 + 3.0 * h / (k * 1.4))) for k, h in ((1, 1.0), (3, 0.2))]
    assert ends[0] < ends[1]


def test_equal_split_by_hand() -> None:
    """Power 2, gain 0.7 and noise 1.4 a hertz: SNR 1 over a hertz, one bit in a second."""
    values = {"channel_gain": 0.7, "max_power_w": 2.0}
    shared = equal_split(cell("shared-band", **values), np.arange(4))
    assert shared.width_hz.tolist() == [1.0] * 4
    assert shared.sending_s == pytest.approx([1.0] * 4)
    two = equal_split(cell("blocks", **values), np.arange(2))
    assert two.width_hz.tolist() == [2.0, 2.0]
    assert two.sending_s == pytest.approx([1 / (2 * math.log2(1.5))] * 2)
    three = equal_split(cell("blocks", **values), np.arange(3))
    assert three.width_hz.tolist() == [1.0] * 3  # the fourth block goes not round
    turns = equal_split(cell("tdma", **values), np.arange(4))
    assert turns.sending_s == pytest.approx([1 / (4 * math.log2(1.25))] * 4)
    assert turns.delay_s == pytest.approx(1 / math.log2(1.25))


@pytest.mark.parametrize("peak", [0.5, 40.0])  # full power, or well below it
def test_fedl_over_slots_is_each_device_s_own_best_and_all_take_part(peak: float) -> None:
    """By a fine grid of powers: the least of energy and time, for every device, also the useless."""
    problem = cell("tdma", contribution=np.linspace(-1.0, 5.0, 8), max_power_w=peak)
    able = np.flatnonzero(problem.max_power_w > 0.0)
    found = allocate(problem, "fedl-power")
    assert found.selected.tolist() == able.tolist()
    costs = account(problem, found)
    for i in able:
        power = problem.max_power_w[i] * np.linspace(0.001, 1.0, 20_000)
        seconds = 1.0 / (4.0 * np.log2(1.0 + power * problem.channel_gain[i] / (1.4 * 4.0)))
        least = float((power * seconds + seconds).min())
        assert costs.upload_energy_j[i] + costs.upload_delay_s[i] == pytest.approx(least, rel=1e-6)


def test_over_slots_without_a_deadline_the_threshold_finds_the_optimum_if_it_may_try_all() -> None:
    problem = cell("tdma", contribution=np.arange(8) + 3.0, channel_gain=0.7, max_power_w=2.0)
    assert allocate(problem, "threshold", num_thresholds=8).objective == pytest.approx(
        allocate(problem).objective, rel=1e-6
    )


def test_a_deadline_too_short_for_all_leaves_out_the_last() -> None:
    values = {"channel_gain": 0.7, "max_power_w": 2.0}
    one = 1 / (4 * math.log2(1.25))  # a slot at full power
    turns = serve(cell("tdma", **values, max_delay_s=2.5 * one), np.array([5, 1, 7]))
    assert turns.device.tolist() == [5, 1]
    shared = serve(cell("shared-band", **values, max_delay_s=0.9), np.arange(8))
    assert 0 < shared.device.size < 8
    assert shared.device.tolist() == list(range(shared.device.size))
    late = serve(cell("shared-band", **values, max_delay_s=1e-3), np.arange(8))
    assert late.device.size == 0


def test_the_best_prefix_is_the_best_of_all() -> None:
    problem = cell("shared-band", max_power_w=2.0)
    ranked = np.array([4, 2, 6, 0, 1])
    values = [serve(problem, ranked[:k]).value for k in range(1, 6)]
    assert max(values) > 0.0
    assert best_prefix(problem, ranked, 5).value == max(values)
    assert best_prefix(problem, ranked[:0], 5).device.size == 0
