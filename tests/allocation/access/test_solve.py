"""The certified optimum of each access against all sets, all numbers of blocks and general solvers."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, Status, account, allocate, total_cost, violations
from fedwave.allocation.access.solve import power_for
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.access.access_oracles import (
    FEATURES,
    alike_problem,
    best_areas,
    best_blocks,
    by_mixed_integers,
    computing_cost,
)
from tests.allocation.allocation_problems import paper_problem

OTHERS = ("shared-band", "blocks", "tdma")
PROVEN = (Status.OPTIMAL, Status.GAP_REACHED)


def random_problem(access: str, seed: int) -> AllocationProblem:
    rng = np.random.default_rng([seed, 7])
    features = [feature for feature in FEATURES if rng.random() < 0.3]
    return alike_problem(rng, access, n=int(rng.integers(1, 5)), m=int(rng.integers(1, 4)), features=features)


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_better_and_what_is_found_keeps_every_limit(access: str, seed: int) -> None:
    problem = random_problem(access, seed)
    found = allocate(problem)
    assert found.status in PROVEN
    assert violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, abs=1e-9)
    assert found.upper_bound - found.objective <= 1.1e-6 * abs(found.objective) + 1e-9  # what PROVEN says
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the general solver tries absurd points
        oracle = best_blocks(problem, points=15) if access == "blocks" else best_areas(problem)
    assert oracle <= found.upper_bound + 1e-6 * (1 + abs(oracle))


@pytest.mark.parametrize("access", ["shared-band", "tdma"])
@pytest.mark.parametrize("features", [(), ("circuit",)])
def test_the_oracle_reaches_the_optimum_where_it_should(access: str, features: tuple[str, ...]) -> None:
    """Or the test above would say nothing: few features, so a general solver finds the same."""
    for seed in range(4):
        problem = alike_problem(np.random.default_rng(seed), access, n=3, m=2, features=features)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            oracle = best_areas(problem)
        assert allocate(problem).objective == pytest.approx(oracle, abs=2e-5)


def paper_cell(seed: int, **changes: Any) -> AllocationProblem:
    alike = {"interference_w": np.full(4, 0.4)}
    return paper_problem(seed, num_devices=12, num_blocks=4, **(alike | changes))


@pytest.mark.parametrize("seed", range(8))
def test_a_shared_band_bounds_blocks_and_blocks_bound_one_block_each(seed: int) -> None:
    one = allocate(paper_cell(seed))
    blocks = allocate(paper_cell(seed, access="blocks"))
    shared = allocate(paper_cell(seed, access="shared-band"))
    slots = allocate(paper_cell(seed, access="tdma"))
    assert one.objective <= blocks.upper_bound + 1e-9
    assert blocks.objective <= shared.upper_bound + 1e-9
    assert slots.objective <= shared.upper_bound + 1e-9  # turns are shares in time


@pytest.mark.parametrize("seed", range(5))
def test_with_one_block_blocks_are_one_block_each(seed: int) -> None:
    problem = paper_problem(seed, num_devices=8, num_blocks=1, max_delay_s=6.0)
    blocks = allocate(replace(problem, access="blocks"))
    assert blocks.objective == pytest.approx(allocate(problem).objective, rel=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_device_takes_the_whole_band_in_every_access(seed: int) -> None:
    problem = paper_problem(
        seed, num_devices=1, num_blocks=3, interference_w=np.full(3, 0.2), contribution=[9.0]
    )
    wide = replace(problem, interference_w=np.array([0.6]), bandwidth_hz=3.0)
    best = allocate(wide).objective
    for access in OTHERS:
        assert allocate(replace(problem, access=access)).objective == pytest.approx(best, rel=2e-6)


def test_with_huge_gains_time_alone_counts() -> None:
    """At a capped rate and no energy to speak of, all useful devices share the time that their bits take."""
    problem = paper_cell(
        0,
        channel_gain=1e12,
        max_power_w=1.0,
        rate=RateModel(max_spectral_efficiency=2.0),
        workload_cycles=0.0,
    )
    second_each = 1.0 / (4 * 2.0)
    worth = np.maximum(problem.contribution - second_each, 0.0).sum()
    for access in ("shared-band", "tdma"):
        assert allocate(replace(problem, access=access)).objective == pytest.approx(worth, rel=1e-9)


@pytest.mark.parametrize("access", OTHERS)
def test_more_uploads_are_never_worse_and_the_limit_is_kept(access: str) -> None:
    values = []
    for most in (0, 1, 2, 4, 12):
        found = allocate(paper_cell(2, access=access, max_uploads=most))
        assert found.num_selected <= most
        assert found.status in PROVEN
        values.append(found.objective)
    assert all(more >= less - 1e-9 for less, more in itertools.pairwise(values))
    assert values[-1] == pytest.approx(allocate(paper_cell(2, access=access)).objective, rel=2e-6)
    one = max(
        allocate(paper_cell(2, access=access), selected=[i]).objective for i in range(12)
    )  # the best device alone
    assert values[1] == pytest.approx(one, rel=2e-6)


@pytest.mark.parametrize("access", OTHERS)
def test_random_allocations_are_not_better(access: str) -> None:
    rng = np.random.default_rng(5)
    problem = paper_cell(3, access=access, workload_cycles=0.0)
    bound = allocate(problem).upper_bound
    noise, total = 1.4, 4.0
    for _ in range(400):
        chosen = np.flatnonzero((rng.random(12) < 0.5) & (problem.max_power_w > 0.0))
        if chosen.size == 0:
            continue
        width = rng.dirichlet(np.ones(chosen.size)) * total
        if access == "blocks":
            width = rng.multinomial(4, np.ones(chosen.size) / chosen.size).astype(float)
            chosen, width = chosen[width > 0], width[width > 0]
        if access == "tdma":
            width = np.full(chosen.size, total)
        power = problem.max_power_w[chosen] * rng.uniform(0.2, 1.0, chosen.size)
        seconds = 1.0 / (width * np.log2(1.0 + power * problem.channel_gain[chosen] / (noise * width)))
        delay = seconds.sum() if access == "tdma" else seconds.max()
        assert problem.contribution[chosen].sum() - (power * seconds).sum() - delay <= bound


def test_slots_add_up_one_after_another() -> None:
    problem = paper_cell(1, access="tdma")
    found = allocate(problem)
    costs = account(problem, found)
    uploads = found.selected
    assert uploads.size > 1
    assert costs.upload_start_s[uploads[0]] == 0.0
    assert costs.upload_start_s[uploads[1:]] == pytest.approx(costs.upload_end_s[uploads[:-1]])
    assert found.upload_delay_s == pytest.approx(costs.upload_delay_s.sum())


def test_slots_without_a_deadline_are_each_device_alone() -> None:
    """eta_2 prices every slot, so a device uploads if that is worth it alone on the whole band."""
    problem = paper_cell(4, access="tdma", workload_cycles=0.0)
    alone = [max(allocate(problem, selected=[i]).objective, 0.0) for i in range(12)]
    assert allocate(problem).objective == pytest.approx(sum(alone), rel=1e-9)


def test_shares_end_together_and_fill_the_band() -> None:
    problem = paper_cell(1, access="shared-band")
    found = allocate(problem)
    assert found.bandwidth_of_device_hz is not None
    assert found.bandwidth_of_device_hz.sum() == pytest.approx(4.0)
    delays = account(problem, found).upload_delay_s[found.selected]
    assert delays == pytest.approx(np.full(delays.size, found.upload_delay_s))


def test_blocks_lie_side_by_side() -> None:
    problem = paper_cell(1, access="blocks", max_uploads=2)
    found = allocate(problem)
    assert found.bandwidth_of_device_hz is not None
    held = np.concatenate(
        [
            np.arange(found.block_of_device[i], found.block_of_device[i] + found.bandwidth_of_device_hz[i])
            for i in found.selected
        ]
    )
    assert sorted(held) == list(range(held.size))
    assert held.size <= 4


def test_circuit_power_ends_uploads_early_on_whole_blocks() -> None:
    radio = RadioPower(amplifier_efficiency=0.5, circuit_power_w=2.0)
    problem = paper_cell(0, access="blocks", radio=radio, max_power_w=5.0, delay_weight=0.01)
    found = allocate(problem)
    delays = account(problem, found).upload_delay_s[found.selected]
    assert found.status in PROVEN
    assert delays.min() < 0.9 * delays.max()


@pytest.mark.parametrize("access", OTHERS)
def test_a_limit_of_steps_leaves_a_valid_bound(access: str) -> None:
    problem = paper_cell(6, access=access, max_delay_s=5.0)
    best = allocate(problem)
    few = allocate(problem, max_matchings=1)
    assert few.upper_bound >= best.objective - 1e-9
    assert few.objective <= best.upper_bound + 1e-9


@pytest.mark.parametrize("access", OTHERS)
def test_nobody_is_a_plan_with_a_reason(access: str) -> None:
    nobody = allocate(paper_cell(0, access=access, contribution=np.full(12, -1.0)))
    assert nobody.num_selected == 0
    assert nobody.status is Status.OPTIMAL
    assert "contribution > 0" in nobody.reason
    late = allocate(paper_cell(0, access=access, max_delay_s=1e-6))
    assert late.num_selected == 0
    assert "within the limits" in late.reason
    assert "no blocks" in allocate(empty(access)).reason


def empty(access: str) -> AllocationProblem:
    return paper_problem(0, num_devices=3, num_blocks=0, access=access)


@pytest.mark.parametrize("access", OTHERS)
def test_only_those_named_may_upload(access: str) -> None:
    found = allocate(paper_cell(2, access=access), selected=[1, 5, 7])
    assert set(found.selected) <= {1, 5, 7}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"access": "fdma"}, "access must be one of one-block, shared-band, blocks, tdma, got 'fdma'"),
        ({"access": "blocks", "max_uploads": -1}, "max_uploads must be a whole number >= 0, got -1"),
        ({"access": "blocks", "max_uploads": True}, "max_uploads must be a whole number >= 0, got True"),
        ({"max_uploads": 2.5}, "max_uploads must be a whole number >= 0, got 2.5"),
        ({"access": "tdma", "interference_w": np.arange(4.0)}, "needs blocks that are alike"),
        ({"access": "blocks", "packet_error_waterfall": 0.1}, "no proof with packet errors"),
        (
            {"access": "shared-band", "radio": RadioPower(circuit_power_w=1.0), "max_energy_j": 3.0},
            "no proof with circuit_power_w and max_energy_j together",
        ),
        (
            {"access": "blocks", "min_snr": 5.0, "rate": RateModel(max_spectral_efficiency=1.0)},
            "needs min_snr below 1, where the rate is capped, got 5",
        ),
        (
            {"access": "tdma", "delay_weight": 0.0, "energy_weight": 0.0},
            "needs a delay_weight > 0 or a deadline",
        ),
    ],
)
def test_what_has_no_proof_is_refused_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError) as caught:
        paper_cell(0, **changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_method_that_does_not_know_the_access_says_who_does() -> None:
    with pytest.raises(ProblemError, match='method "greedy" must know the access of the problem, got "tdma"'):
        allocate(paper_cell(0, access="tdma"), "greedy", rng=np.random.default_rng(0))


@pytest.mark.parametrize("access", OTHERS)
def test_violations_see_what_the_access_forbids(access: str) -> None:
    problem = paper_cell(1, access=access, max_uploads=12, max_delay_s=50.0)
    found = allocate(problem)
    width = found.bandwidth_of_device_hz
    assert width is not None
    first = int(found.selected[0])
    tweaked = width.copy()
    tweaked[first] *= 1.7
    assert violations(problem, replace(found, bandwidth_of_device_hz=tweaked)) != ()
    assert violations(problem, replace(found, bandwidth_of_device_hz=None)) != ()
    assert violations(problem, replace(found, bandwidth_of_device_hz=np.zeros(12))) != ()
    few = replace(problem, max_uploads=found.num_selected - 1)
    assert any("max_uploads" in line for line in violations(few, found))
    late = replace(problem, max_delay_s=0.9 * found.upload_delay_s)
    assert any("max_delay_s" in line for line in violations(late, found))


@pytest.mark.parametrize("access", OTHERS)
def test_the_round_s_deadline_hurries_the_cpus(access: str) -> None:
    free = allocate(paper_cell(3, access=access))
    problem = paper_cell(3, access=access, max_round_delay_s=0.8 * free.delay_s, max_frequency_hz=5.0)
    hurried = allocate(problem)
    assert violations(problem, hurried) == ()
    assert hurried.delay_s <= 0.8 * free.delay_s * (1 + 1e-9)
    assert hurried.status in PROVEN
    assert math.isfinite(hurried.upper_bound)


def devices_and_levels(problem: AllocationProblem, found: Any) -> dict[int, list[float]]:
    """Return what the mixed-integer solver may give each device: a grid, and what was found."""
    n, band = problem.num_devices, problem.num_blocks * problem.bandwidth_hz
    if problem.access == "blocks":
        return {i: [k * problem.bandwidth_hz for k in range(1, problem.num_blocks + 1)] for i in range(n)}
    if problem.access == "shared-band":
        levels = {i: list(band * np.arange(1, 17) / 16) for i in range(n)}
        for i in found.selected:
            levels[int(i)].append(float(found.bandwidth_of_device_hz[i]))
        return levels
    slots = account(problem, found).upload_delay_s
    typical = float(slots[found.selected].mean()) if found.num_selected else 1.0
    levels = {i: list(band * typical * np.geomspace(0.2, 5.0, 17)) for i in range(n)}
    for i in found.selected:
        levels[int(i)].append(float(band * slots[i]))
    return levels


@pytest.mark.parametrize("access", OTHERS)
@pytest.mark.parametrize("features", [(), ("deadline",), ("few", "circuit"), ("round",), ("energy", "cap")])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_mixed_integer_solver_on_a_grid_finds_what_is_found_and_no_more(
    access: str, features: tuple[str, ...], seed: int
) -> None:
    """HiGHS on the whole problem at once: a grid of delays and widths that holds the answer, too."""
    rng = np.random.default_rng([seed, 21])
    problem = alike_problem(rng, access, n=7, m=4, features=features)
    found = allocate(problem)
    if found.num_selected == 0:
        problem = replace(problem, contribution=problem.contribution + 4.0)
        found = allocate(problem)
    assert found.num_selected > 0
    centre = found.upload_delay_s
    delays = [centre, *(centre * np.geomspace(0.4, 1.6, 8))]
    late = min(problem.max_delay_s or math.inf, problem.max_round_delay_s or math.inf)
    delays = [t for t in delays if t <= late]
    value = by_mixed_integers(problem, devices_and_levels(problem, found), delays, most=problem.max_uploads)
    assert value <= found.upper_bound + 1e-7
    assert found.upper_bound - found.objective <= 1.1e-6 * abs(found.objective) + 1e-9
    assert value >= found.objective - 1e-6 * (1 + abs(found.objective))


@pytest.mark.parametrize("access", OTHERS)
def test_late_uploads_make_the_cpus_hurry_as_much_as_is_best(access: str) -> None:
    """The weakest power takes most of the round; what the CPUs then cost is scipy's answer."""
    problem = paper_cell(
        3,
        access=access,
        max_power_w=0.1,
        contribution=np.full(12, 20.0),
        capacitance=0.3,
        workload_cycles=1.0,
        max_frequency_hz=20.0,
        delay_weight=0.05,
    )
    free = allocate(problem)
    unhurried = account(problem, free).compute_delay_s.max()
    hurried = replace(problem, max_round_delay_s=free.upload_delay_s + 0.3 * unhurried)
    found = allocate(hurried)
    costs = account(hurried, found)
    assert violations(hurried, found) == ()
    assert found.status in PROVEN
    assert costs.compute_delay_s.max() < 0.9 * unhurried
    left = hurried.max_round_delay_s - found.upload_delay_s  # type: ignore[operator]
    assert costs.compute_delay_s.max() == pytest.approx(left)
    uploads = (
        problem.contribution[found.selected].sum()
        - float(costs.upload_energy_j.sum())
        - problem.delay_weight * found.upload_delay_s
    )
    assert found.objective == pytest.approx(uploads - computing_cost(hurried, found.upload_delay_s), rel=1e-7)


def test_power_never_falls_below_what_is_decoded_nor_rises_above_the_cap() -> None:
    rate = RateModel(max_spectral_efficiency=2.0, min_snr=0.1)
    problem = paper_cell(0, access="blocks", rate=rate, channel_gain=0.5, max_power_w=50.0)
    device, width = np.array([0, 1]), np.array([1.0, 2.0])
    slow = power_for(problem, device, width, np.array([1e3, 1e3]))
    fast = power_for(problem, device, width, np.array([1e-3, 1e-3]))
    assert slow == pytest.approx(1.4 * width / 0.5 * 0.1)  # SNR 0.1 over the noise of 1.4 W/Hz
    assert fast == pytest.approx(1.4 * width / 0.5 * 3.0)  # two bits per second and hertz
    strict = replace(problem, min_snr=0.3)
    assert power_for(strict, device, width, np.array([1e3, 1e3])) == pytest.approx(1.4 * width / 0.5 * 0.3)
    right = power_for(problem, device[:1], width[:1], np.array([1.0]))  # one bit in one second over one hertz
    assert right == pytest.approx([1.4 / 0.5 * 1.0])
    weak = replace(problem, max_power_w=0.2)
    assert power_for(weak, device, width, np.array([1e-3, 1e-3])).tolist() == [0.2, 0.2]


@pytest.mark.parametrize("seed", [46, 80, 127])
def test_who_sends_at_peak_power_and_at_the_modem_s_floor_is_still_heard(seed: int) -> None:
    """Rounding once took such an SNR below the floor: nothing was sent, and the plan was worth nothing."""
    rng = np.random.default_rng([seed, 77])
    features = [name for name in FEATURES if rng.random() < 0.25]
    n, m = int(rng.choice([4, 8, 15, 30, 60])), int(rng.choice([2, 4, 8, 12]))
    problem = alike_problem(rng, "shared-band", n=n, m=m, features=features)
    assert problem.rate.min_snr > 0.0
    found = allocate(problem)
    assert violations(problem, found) == ()
    assert found.objective >= found.upper_bound - 1e-6 * abs(found.upper_bound)
    who = found.selected
    assert (account(problem, found).sinr[who] >= problem.rate.min_snr).all()
    assert found.bandwidth_of_device_hz is not None
    band_hz = problem.num_blocks * problem.bandwidth_hz
    assert found.bandwidth_of_device_hz.sum() <= band_hz * (1 + 1e-12)
