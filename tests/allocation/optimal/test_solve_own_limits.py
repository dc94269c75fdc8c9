"""Deadlines and circuit power of each device's own: brute force, whole-number programmes, all methods."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp

from fedwave.allocation import METHODS, AllocationProblem, Status, account, allocate, total_cost, violations
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import link_problem, link_terms, paper_problem, small_problem
from tests.allocation.link_oracle import Pair, nat_time
from tests.allocation.optimal.test_solve import assert_equals_brute_force

SETS: list[list[str]] = [
    ["own_delay"],
    ["own_circuit"],
    ["own_delay", "own_circuit"],
    ["own_delay", "energy"],
    ["own_circuit", "energy"],
    ["own_circuit", "prices"],
    ["own_circuit", "prices", "energy"],
    ["own_delay", "errors"],
    ["own_delay", "round"],
    ["own_delay", "rate", "outage"],
    ["own_delay", "own_circuit", "prices", "energy", "errors", "rate", "round"],
]


@pytest.mark.parametrize("features", SETS, ids="-".join)
def test_limits_of_each_devices_own_equal_brute_force(features: list[str]) -> None:
    for seed in range(20):
        rng = np.random.default_rng(4000 + seed)
        assert_equals_brute_force(link_problem(rng, features, max_devices=4, max_blocks=2))


@pytest.mark.parametrize("seed", range(20))
def test_equal_limits_are_one_limit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = [name for name in ("energy", "errors", "round", "prices", "rate") if rng.random() < 0.4]
    one = link_problem(rng, ["circuit", "delay", *features], max_devices=8, max_blocks=4)
    radio = replace(one.radio, circuit_power_w=np.full(one.num_devices, one.radio.circuit_power_w))
    many = replace(one, radio=radio, max_delay_s=np.full(one.num_devices, one.max_delay_s))
    scale = float(np.maximum(one.contribution, 0).sum()) + 1.0
    for name in METHODS:
        first, second = (allocate(p, name, rng=np.random.default_rng(seed)) for p in (one, many))
        assert second.objective == pytest.approx(first.objective, abs=1e-10 * scale), name
        assert second.block_of_device.tolist() == first.block_of_device.tolist(), name
        assert second.status is first.status
        np.testing.assert_allclose(second.transmit_power_w, first.transmit_power_w, rtol=1e-7)


def test_whoever_must_be_early_is_early_and_the_others_take_their_time() -> None:
    free = small_problem(max_power_w=1e3, energy_weight=1.0, delay_weight=1e-3)
    at_ease = allocate(free)
    device = int(at_ease.selected[0])
    own_s = np.full(3, np.inf)
    own_s[device] = 0.25 * at_ease.upload_delay_s
    hurried = allocate(replace(free, max_delay_s=own_s))
    costs = account(free, hurried)
    assert hurried.status is Status.OPTIMAL
    assert costs.upload_delay_s[device] == pytest.approx(own_s[device], rel=1e-9)
    others = np.delete(hurried.selected, np.searchsorted(hurried.selected, device))
    assert (costs.upload_delay_s[others] > 2.0 * own_s[device]).all()
    assert hurried.objective < at_ease.objective
    late = replace(
        free, max_delay_s=np.where(own_s < np.inf, 1e-4, np.inf)
    )  # 2^10,000: nobody has that power
    assert device not in allocate(late).selected.tolist()


def test_without_a_delay_weight_each_takes_all_of_its_own_deadline() -> None:
    own_s = np.array([2.0, 3.0, 5.0])
    problem = small_problem(delay_weight=0.0, max_power_w=50.0, max_delay_s=own_s, workload_cycles=0.0)
    found = allocate(problem)
    assert found.num_selected == 2
    costs = account(problem, found)
    np.testing.assert_allclose(costs.upload_delay_s[found.selected], own_s[found.selected], rtol=1e-8)


def best_matching_by_milp(
    problem: AllocationProblem, pairs: dict[tuple[int, int], Pair], snr: float
) -> float:
    """Return the largest sum of worths at a common SNR, as a whole-number programme that HiGHS solves."""
    n, num_blocks = problem.num_devices, problem.num_blocks
    worth = np.zeros(n * num_blocks)
    for (i, m), pair in pairs.items():
        value = float(pair.best(np.array([snr]))[0]) if pair.top >= snr else -np.inf
        worth[i * num_blocks + m] = max(value, -1e6)
    rows = np.zeros((n + num_blocks, n * num_blocks))
    for i in range(n):
        rows[i, i * num_blocks : (i + 1) * num_blocks] = 1.0
    for m in range(num_blocks):
        rows[n + m, m::num_blocks] = 1.0
    found = milp(
        -worth,
        integrality=np.ones(worth.size),
        bounds=(0, 1),
        constraints=LinearConstraint(rows, -np.inf, 1.0),
    )
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prices", [False, True])
def test_no_whole_number_programme_beats_the_bound(seed: int, prices: bool) -> None:
    rng = np.random.default_rng(seed)
    n, num_blocks = 12, 3
    problem = paper_problem(
        seed,
        num_devices=n,
        num_blocks=num_blocks,
        workload_cycles=0.0,
        contribution=rng.uniform(5, 40, n),
        max_power_w=rng.uniform(1, 6, n),
        channel_gain=rng.uniform(0.1, 1, (n, num_blocks)),
        energy_weight=10.0 ** rng.uniform(-1, 0.5, n) if prices else 0.5,
        **link_terms(rng, ["own_delay", "own_circuit", "energy"], n),
    )
    found = allocate(problem)
    assert found.status is Status.OPTIMAL
    assert (found.num_selected > 0) == ((seed, prices) != (2, True))  # whose limits shut everybody out
    pairs = {(i, m): Pair(problem, i, m, 400) for i in range(n) for m in range(num_blocks)}
    unit = nat_time(problem)

    def best_at(delay_s: float) -> float:
        snr = math.expm1(unit / delay_s)
        return best_matching_by_milp(problem, pairs, snr) - problem.delay_weight * delay_s

    scale = float(problem.contribution.sum())
    if found.num_selected:
        assert best_at(found.upload_delay_s * (1 + 1e-12)) == pytest.approx(found.objective, abs=1e-6 * scale)
    for delay_s in (found.upload_delay_s or 1.0) * np.geomspace(0.2, 5.0, 15):
        assert best_at(float(delay_s)) <= found.upper_bound + 1e-9 * scale


@pytest.mark.parametrize("seed", range(24))
def test_pruning_never_costs_the_optimum(seed: int) -> None:
    """Ties and zeros in every criterion: who may stand in for whom must not be judged by u and h alone."""
    rng = np.random.default_rng(seed)
    n, num_blocks = 50, int(rng.integers(1, 4))

    def draw(size: object) -> np.ndarray:
        return rng.integers(1, 5, size) / 2 if seed % 2 else 0.2 + rng.exponential(size=size)

    problem = paper_problem(
        seed,
        num_devices=n,
        num_blocks=num_blocks,
        contribution=5 * draw(n),
        channel_gain=draw((n, num_blocks) if rng.random() < 0.5 else n),
        max_power_w=2.0,
        energy_weight=draw(n) if rng.random() < 0.5 else 0.7,
        max_energy_j=2 * draw(n) if rng.random() < 0.5 else None,
        max_delay_s=draw(n) if rng.random() < 0.7 else None,
        radio=RadioPower(amplifier_efficiency=0.5, circuit_power_w=2.0 * draw(n)),
        packet_error_waterfall=0.3 if rng.random() < 0.3 else None,
    )

    def solve(table: object) -> object:
        return BranchAndBound(problem, table).run(relative_gap=0.0, compute_cost=0.0, max_matchings=5000)  # type: ignore[arg-type]

    few = candidate_pairs(problem)
    pruned, whole = solve(few), solve(all_pairs(problem))
    scale = 1e-11 * float(problem.contribution.sum())
    assert few.device.shape[1] < n
    assert pruned.value == pytest.approx(whole.value, abs=scale)  # type: ignore[attr-defined]
    assert whole.value <= pruned.upper_bound + scale  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_limits_of_each_devices_own(name: str) -> None:
    seen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        others = [feature for feature in ("energy", "rate", "prices") if rng.random() < 0.4]
        problem = link_problem(rng, ["own_delay", "own_circuit", *others], max_devices=7, max_blocks=3)
        options = {"max_delay_s": 100.0} if name == "chen2020" else {}
        found = allocate(problem, name, rng=rng, **options)
        scale = float(np.abs(problem.contribution).sum())
        assert violations(problem, found) == ()
        assert found.objective <= allocate(problem).upper_bound + 1e-9 * scale
        assert total_cost(problem, found) == pytest.approx(found.objective, rel=1e-12, abs=1e-12)
        costs = account(problem, found)
        i = found.selected
        assert (costs.upload_delay_s[i] <= np.asarray(problem.max_delay_s)[i] * (1 + 1e-9)).all()
        circuit_w = np.asarray(problem.radio.circuit_power_w)[i]
        drain_w = found.transmit_power_w[i] / problem.radio.amplifier_efficiency + circuit_w
        np.testing.assert_allclose(costs.upload_energy_j[i], drain_w * costs.upload_delay_s[i], rtol=1e-12)
        seen += found.num_selected
    assert seen > 10


def two_alike(**changes: object) -> AllocationProblem:
    """Two devices that want one block, alike but for what is given."""
    return small_problem(
        contribution=[10.0, 10.0, 0.0],
        channel_gain=1.0,
        interference_w=[0.0],
        max_power_w=10.0,
        workload_cycles=0.0,
        delay_weight=0.1,
        **changes,
    )


def test_a_cheaper_joule_does_not_make_up_for_a_thirstier_circuit() -> None:
    """Device 1 is ahead in u, h / a, h p_max and a, but a P_circuit is what its circuit costs."""
    radio = RadioPower(circuit_power_w=np.array([0.01, 5.0, 0.0]))
    found = allocate(two_alike(energy_weight=np.array([1.0, 0.9, 1.0]), radio=radio))
    assert found.selected.tolist() == [0]


def test_a_free_joule_does_not_make_up_for_a_circuit_that_breaks_its_limit() -> None:
    """Device 1 is ahead in all that costs, but its circuit alone takes more than it has."""
    radio = RadioPower(circuit_power_w=np.array([0.1, 5.0, 0.0]))
    found = allocate(two_alike(energy_weight=np.array([1.0, 0.01, 1.0]), radio=radio, max_energy_j=1.5))
    assert found.selected.tolist() == [0]


@pytest.mark.parametrize("seed", range(10))
def test_who_meets_its_own_deadline_exactly_at_full_power_is_never_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gain, most_w = rng.uniform(0.1, 2.0, 3), rng.uniform(0.1, 3.0, 3)
    own_s = 1.0 / np.log2(1.0 + most_w * gain / 1.0)  # S = B = N0 = 1, no interference
    problem = small_problem(
        contribution=np.full(3, 1e3),
        channel_gain=gain,
        max_power_w=most_w,
        interference_w=np.zeros(3),
        max_delay_s=own_s * (1.0 - 5e-10 * rng.random(3)),  # or by less than the tolerance not
    )
    found = allocate(problem)
    assert found.selected.tolist() == [0, 1, 2]
    assert violations(problem, found) == ()
