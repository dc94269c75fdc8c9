"""Problem (P) with rate, drain, outage, packet errors, floors and deadlines, alone and together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.allocation import (
    METHODS,
    Status,
    account,
    allocate,
    build_allocation,
    total_cost,
    violations,
)
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_floor
from fedwave.allocation.uploads.upload_plan import value_at_best_snr
from fedwave.testing.method import random_problem
from fedwave.wireless.delivery import packet_error_probability
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import (
    ALL_FEATURES as FEATURES,
)
from tests.allocation.allocation_problems import (
    link_problem,
    link_terms,
    paper_problem,
    small_problem,
)
from tests.allocation.link_oracle import best_by_link_brute_force

PLANNING = ("optimal", "ives", "chen2020")


def some_features(rng, share):
    return [feature for feature in FEATURES if rng.random() < share]


def assert_equals_brute_force(problem):
    """Check that the brute force beats neither plan nor bound, and that the plan is one that it sees."""
    found = allocate(problem)
    exact = best_by_link_brute_force(problem)
    if exact == -np.inf:
        assert found.status is Status.INFEASIBLE
        assert "cannot compute by" in found.reason
        return
    assert violations(problem, found) == ()
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(found.objective)
    assert found.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert found.objective >= exact - 1e-9 * scale
    assert found.upper_bound >= exact - 1e-11 * scale
    assert found.objective <= exact + 1e-7 * scale  # the brute force is fine, not exact
    assert found.upper_bound <= found.objective + 1e-11 * scale
    assert total_cost(problem, found) == pytest.approx(found.objective, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("feature", FEATURES)
def test_each_term_alone_equals_brute_force(feature):
    for seed in range(25):
        assert_equals_brute_force(link_problem(np.random.default_rng(seed), [feature]))


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_terms_together_equal_brute_force(share):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        assert_equals_brute_force(link_problem(rng, some_features(rng, share)))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_larger_assignments_equal_brute_force(share):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        features = some_features(rng, share)
        assert_equals_brute_force(link_problem(rng, features, max_devices=4, max_blocks=3))


@pytest.mark.parametrize(
    "others", [(), ("circuit",), ("circuit", "energy"), ("energy",), ("errors",), ("round", "static")]
)
def test_a_price_for_each_device_equals_brute_force(others):
    for seed in range(25):
        rng = np.random.default_rng(7000 + seed)
        assert_equals_brute_force(link_problem(rng, ["prices", *others], max_devices=4, max_blocks=2))


@pytest.mark.parametrize("seed", range(40))
def test_prices_are_another_unit_of_each_devices_watt(seed):
    """h / a, a p_max, a iota, a P_0, a e_0 and a E_max with a weight of 1 are the same problem."""
    rng = np.random.default_rng(seed)
    features = [
        name
        for name in ("outage", "rate", "round", "energy", "floors", "delay", "static")
        if rng.random() < 0.4
    ]
    problem = link_problem(rng, ["prices", *features], max_devices=8, max_blocks=4)
    a = np.maximum(problem.energy_weight, 1e-3)
    gain = problem.channel_gain / (a if problem.channel_gain.ndim == 1 else a[:, None])
    priced = replace(problem, energy_weight=a)
    same = replace(
        problem,
        energy_weight=1.0,
        channel_gain=gain,
        max_power_w=a * problem.max_power_w,
        capacitance=a * problem.capacitance,
        static_power_w=a * problem.static_power_w,
        joules_per_cycle=a * problem.joules_per_cycle,
        max_energy_j=None if problem.max_energy_j is None else a * problem.max_energy_j,
    )
    ours, theirs = allocate(priced), allocate(same)
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(theirs.objective)
    assert ours.objective == pytest.approx(theirs.objective, abs=1e-11 * scale)
    assert ours.upper_bound == pytest.approx(theirs.upper_bound, abs=1e-11 * scale)
    assert ours.block_of_device.tolist() == theirs.block_of_device.tolist()
    np.testing.assert_allclose(a * ours.transmit_power_w, theirs.transmit_power_w, rtol=1e-7)
    np.testing.assert_allclose(ours.cpu_frequency_hz, theirs.cpu_frequency_hz, rtol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_equal_prices_are_one_weight(seed):
    problem = replace(random_problem(np.random.default_rng(seed)), energy_weight=0.3, delay_weight=0.5)
    each = replace(problem, energy_weight=np.full(problem.num_devices, 0.3))
    scale = 1e-11 * float(np.maximum(problem.contribution, 0).sum() + 1)
    one, many = allocate(problem), allocate(each)
    assert many.objective == pytest.approx(one.objective, rel=1e-11, abs=scale)
    assert many.status is one.status
    assert total_cost(each, many) == pytest.approx(many.objective, rel=1e-12, abs=scale)


@pytest.mark.parametrize("seed", range(12))
def test_no_random_plan_beats_the_bound_under_prices(seed):
    """Any devices, blocks, powers and frequencies that keep all limits are worth no more than proven."""
    rng = np.random.default_rng(9000 + seed)
    features = [name for name in FEATURES if rng.random() < 0.35 and name not in ("round", "delay")]
    problem = link_problem(rng, {"prices", *features}, max_devices=8, max_blocks=4)
    best = allocate(problem)
    seen = 0
    for _ in range(400):
        count = int(rng.integers(0, min(problem.num_devices, problem.num_blocks) + 1))
        device = rng.permutation(problem.num_devices)[:count]
        share = 10.0 ** rng.uniform(-2, 0, count)
        near = rng.random() < 0.5
        frequency = problem.max_frequency_hz * rng.uniform(0.05, 1, problem.num_devices)
        trial = build_allocation(
            problem,
            method="random",
            device=best.selected if near else device,
            block=best.block_of_device[best.selected]
            if near
            else rng.permutation(problem.num_blocks)[:count],
            power_w=best.transmit_power_w[best.selected] * 10.0 ** rng.uniform(-0.1, 0.1, best.num_selected)
            if near
            else share * problem.max_power_w[device],
            cpu_frequency_hz=best.cpu_frequency_hz if near else frequency,
            status=Status.FEASIBLE,
        )
        if violations(problem, trial) == ():
            seen += 1
            assert trial.objective <= best.upper_bound + 1e-11 * (1 + np.abs(problem.contribution).sum())
    assert seen > 20


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 4100, 500))
def test_many_problems_equal_brute_force(start):
    for seed in range(start, start + 500):
        rng = np.random.default_rng(seed)
        assert_equals_brute_force(link_problem(rng, some_features(rng, rng.choice([0.3, 0.6, 1.0]))))


def wild_terms(rng, num_devices):
    """Return terms of the link over many orders of magnitude."""

    def scale(low, high):
        return float(10.0 ** rng.uniform(low, high))

    terms = {}
    if rng.random() < 0.5:
        power = float(rng.choice([0.0, scale(-12, 4)]))
        terms["radio"] = RadioPower(amplifier_efficiency=float(rng.uniform(0.05, 1)), circuit_power_w=power)
    if rng.random() < 0.5:
        terms["packet_error_waterfall"] = float(rng.choice([0.0, scale(-8, 6), 1.0]))
    if rng.random() < 0.4:
        terms["min_snr"] = scale(-12, 6)
    if rng.random() < 0.4:
        cap = scale(-3, 2) if rng.random() < 0.6 else None
        terms["rate"] = RateModel(efficiency=float(rng.uniform(0.05, 1)), max_spectral_efficiency=cap)
    if rng.random() < 0.4:
        terms["max_round_delay_s"] = scale(-2, 8)
        terms["fixed_delay_s"] = float(rng.choice([0.0, scale(-3, 3)]))
    if rng.random() < 0.3:
        terms["min_frequency_hz"] = scale(-3, -1.01) * np.ones(num_devices)
    return terms


def assert_nobody_is_better(problem, rng):
    best = allocate(problem)
    scale = abs(best.objective) + best.contribution
    is_late = "cannot compute by" in best.reason
    assert is_late or violations(problem, best) == ()
    assert best.status is not Status.LIMIT
    most = float(np.maximum(problem.contribution, 0).sum())
    assert best.gap <= 1e-6 or best.upper_bound - best.objective <= 1e-12 * (scale + most)
    for method in METHODS:
        for options in ({}, {"keep_negative": True}) if method == "ives" else ({},):
            other = allocate(problem, method, rng=rng, **options)
            broken = violations(problem, other)
            assert not broken or is_late or method not in PLANNING, (method, broken)
            assert total_cost(problem, other) == pytest.approx(other.objective, rel=1e-9, abs=1e-9 * scale)
            if not broken:
                assert other.objective <= best.upper_bound + 1e-11 * scale, method
                assert other.objective <= best.objective + 1e-6 * scale, method


@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=pytest.mark.slow if start else ()) for start in range(0, 600, 200)]
)
def test_no_method_beats_the_bound_at_any_scale(start):
    for seed in range(start, start + 200):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng)
        assert_nobody_is_better(replace(problem, **wild_terms(rng, problem.num_devices)), rng)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(600, 12_600, 1000))
def test_no_method_beats_the_bound_at_any_scale_for_long(start):
    for seed in range(start, start + 1000):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, max_devices=12, max_blocks=6)
        assert_nobody_is_better(replace(problem, **wild_terms(rng, problem.num_devices)), rng)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_on_a_dense_sweep_over_delays(seed):
    rng = np.random.default_rng(seed)
    features = some_features(rng, 0.6)
    problem = paper_problem(
        seed,
        num_devices=40,
        num_blocks=8,
        contribution=rng.uniform(0, 40, 40),
        max_power_w=rng.uniform(0, 6, 40),
    )
    terms = link_terms(rng, [f for f in features if f not in ("round", "floors")], 40)
    if "round" in features:
        terms["max_round_delay_s"] = problem.fastest_compute_s * 1.05 + 3.0
    problem = replace(problem, **terms)
    found, table, delay = allocate(problem), all_pairs(problem), DelayCost.of(problem)
    floor = snr_floor(problem)
    caps = table.snr_cap[table.snr_cap >= max(floor, 1e-9)]
    best = 0.0
    if caps.size:
        for snr in np.unique(np.concatenate([caps, np.geomspace(caps.min(), caps.max(), 400)])):
            if snr < floor:
                continue
            lines = table.tangent(float(snr))
            matching = best_matching(lines, energy_factor=energy_factor(float(snr)), smallest_cap=float(snr))
            if matching.row.size:
                best = max(best, value_at_best_snr(table, matching, delay, snr_floor=floor)[1])
    assert found.status in (Status.OPTIMAL, Status.INFEASIBLE)
    value = best - (account_free_cost(problem))
    scale = float(problem.contribution.sum())
    assert value <= found.upper_bound + 1e-11 * scale
    assert found.objective == pytest.approx(value, abs=1e-9 * scale)


def account_free_cost(problem):
    """Return what computing costs if nobody uploads."""
    return -allocate(replace(problem, contribution=np.zeros(problem.num_devices))).objective


@pytest.mark.parametrize("seed", range(30))
def test_pruning_never_costs_the_optimum(seed):
    rng = np.random.default_rng(seed)
    n, num_blocks = 60, int(rng.integers(1, 4))
    has_ties = seed % 2 == 0

    def draw(size):
        return rng.integers(0, 4, size) / 2 if has_ties else rng.exponential(size=size)

    problem = paper_problem(
        seed,
        num_devices=n,
        num_blocks=num_blocks,
        contribution=5 * draw(n),
        channel_gain=draw((n, num_blocks) if rng.random() < 0.6 else n),
        max_power_w=draw(n) if rng.random() < 0.6 else 2.0,
    )
    terms = link_terms(rng, [f for f in some_features(rng, 0.6) if f != "round"], n) | {
        "max_energy_j": None if rng.random() < 0.3 else 1 + 2 * draw(n),
        "radio": RadioPower(amplifier_efficiency=0.5, circuit_power_w=float(rng.choice([0.0, 0.3]))),
        "min_frequency_hz": None,
    }
    problem = replace(problem, **terms)

    def solve(table):
        return BranchAndBound(problem, table).run(relative_gap=0.0, compute_cost=0.0, max_matchings=5000)

    few = candidate_pairs(problem)
    pruned, whole = solve(few), solve(all_pairs(problem, may_upload=problem.contribution > 0))
    scale = 1e-11 * float(problem.contribution.sum())
    assert few.device.shape[1] < n
    assert pruned.value == pytest.approx(whole.value, abs=scale)
    assert whole.value <= pruned.upper_bound + scale


def test_defaults_are_the_papers_problem_to_the_last_bit():
    plain = {
        "rate": RateModel(),
        "radio": RadioPower(),
        "min_snr": 0.0,
        "packet_error_waterfall": 0.0,
        "min_frequency_hz": np.zeros(100),
        "fixed_delay_s": 3.0,
    }
    for seed in range(3):
        problem = paper_problem(seed, max_delay_s=9.0, max_energy_j=3.0)
        for method in METHODS:
            old = allocate(problem, method, rng=np.random.default_rng(0))
            new = allocate(replace(problem, **plain), method, rng=np.random.default_rng(0))
            assert_array_equal(old.block_of_device, new.block_of_device)
            assert_array_equal(old.transmit_power_w, new.transmit_power_w)
            assert old.contribution == new.contribution
            if method in ("optimal", "ives", "fedl-power"):
                np.testing.assert_allclose(old.cpu_frequency_hz, new.cpu_frequency_hz, rtol=1e-14)
            else:
                assert_array_equal(old.cpu_frequency_hz, new.cpu_frequency_hz)


# One device, gain and noise 1, S = B = 1: an SNR of 1 takes a watt, a second and a joule.
ONE = {
    "contribution": [9.0, 0.0, 0.0],
    "interference_w": [0.0],
    "max_power_w": [8.0, 0.0, 0.0],
    "workload_cycles": 0.0,
}


def test_an_efficiency_makes_the_model_larger():
    found = allocate(small_problem(**ONE, rate=RateModel(efficiency=0.5), max_delay_s=2.0, delay_weight=1e-9))
    assert found.transmit_power_w[0] == pytest.approx(1.0)  # half a bit per second: two seconds
    assert found.upload_delay_s == pytest.approx(2.0)
    same = small_problem(**ONE, model_bits=2.0, max_delay_s=2.0, delay_weight=1e-9)
    assert found.objective == pytest.approx(allocate(same).objective)


def test_nobody_sends_faster_than_the_modem():
    rate = RateModel(max_spectral_efficiency=2.0)
    found = allocate(small_problem(**ONE, rate=rate, energy_weight=1e-9))
    assert found.transmit_power_w[0] == pytest.approx(3.0)  # log2(1 + 3) = 2
    assert found.upload_delay_s == pytest.approx(0.5)
    too_soon = allocate(small_problem(**ONE, rate=rate, max_delay_s=0.4))
    assert too_soon.status is Status.INFEASIBLE
    assert too_soon.reason == (
        "device 0 cannot finish by 0.4 s even at full power (it needs 0.5 s): it misses max_delay_s by 25 %"
    )


@pytest.mark.parametrize("terms", [{"min_snr": 3.0}, {"rate": RateModel(min_snr=3.0)}])
def test_nobody_sends_below_what_is_decoded(terms):
    problem = small_problem(**ONE, delay_weight=0.01)
    assert allocate(problem).transmit_power_w[0] < 1.0
    found = allocate(replace(problem, **terms))
    assert found.transmit_power_w[0] == pytest.approx(3.0)
    assert account(replace(problem, **terms), found).success_probability[0] == 1.0
    weak = allocate(replace(problem, max_power_w=[2.97, 0.0, 0.0], **terms))
    assert weak.status is Status.INFEASIBLE
    name = "min_snr" if "min_snr" in terms else "rate.min_snr"
    assert weak.reason == (f"device 0 reaches an SNR of 2.97 at full power: it misses {name} by 1.01 %")


def test_a_threshold_above_the_rates_cap_is_reached_by_power_alone():
    problem = small_problem(**ONE, min_snr=7.0, rate=RateModel(max_spectral_efficiency=1.0))
    found = allocate(problem)
    assert found.transmit_power_w[0] == pytest.approx(7.0)
    assert found.upload_delay_s == pytest.approx(1.0)  # no faster than at an SNR of 1
    assert_equals_brute_force(problem)


def test_packet_errors_make_louder_uploads_worth_their_energy():
    problem = small_problem(**ONE, delay_weight=0.1)
    problem = replace(problem, max_power_w=[50.0, 0.0, 0.0])
    calm, risky = allocate(problem), allocate(replace(problem, packet_error_waterfall=0.5))
    assert risky.transmit_power_w[0] > 2 * calm.transmit_power_w[0]
    snr = risky.transmit_power_w[:1]
    success = 1 - packet_error_probability(snr, waterfall=0.5)[0]
    assert risky.contribution == pytest.approx(9.0 * success)
    entry = account(replace(problem, packet_error_waterfall=0.5), risky)
    assert entry.success_probability[0] == pytest.approx(success)
    # At its best power a device gains nothing by a little more or less.
    for factor in (0.99, 1.01):
        power = snr[0] * factor
        delay = 1 / np.log2(1 + power)
        value = 9 * np.exp(-0.5 / power) - 0.25 * power * delay - 0.1 * delay
        assert value < risky.objective


def test_past_the_rates_cap_power_still_buys_certainty():
    problem = small_problem(
        **ONE, packet_error_waterfall=2.0, rate=RateModel(max_spectral_efficiency=1.0), energy_weight=0.05
    )
    found = allocate(problem)
    assert found.transmit_power_w[0] > 2.0  # the rate needs only 1 W
    assert found.upload_delay_s == pytest.approx(1.0)
    assert_equals_brute_force(problem)


def test_with_circuit_power_a_device_may_finish_early():
    # Alone, device 0 sends at the SNR where (1 + x) ln(1 + x) - x = 1, that is e - 1; device 2 is slower.
    problem = small_problem(
        contribution=[9.0, 0.0, 9.0],
        interference_w=[0.0, 0.0],
        max_power_w=[8.0, 0.0, 1.0],
        workload_cycles=0.0,
        delay_weight=1e-9,
        radio=RadioPower(circuit_power_w=1.0),
    )
    found = allocate(problem)
    assert found.selected.tolist() == [0, 2]
    assert found.transmit_power_w[0] == pytest.approx(np.e - 1)
    entry = account(problem, found)
    assert entry.upload_delay_s[0] < 0.5 * entry.upload_delay_s[2]
    assert entry.upload_energy_j[0] == pytest.approx(np.e * np.log(2))  # (x + 1) / log2(1 + x)
    assert found.transmit_power_w[2] == 1.0  # its most economical SNR is out of reach


def test_an_amplifier_that_wastes_makes_energy_dearer():
    problem = small_problem(**ONE)
    dear = replace(problem, energy_weight=1.0)
    wasteful = replace(problem, radio=RadioPower(amplifier_efficiency=0.25))
    assert allocate(wasteful).objective == pytest.approx(allocate(dear).objective)
    assert account(wasteful, allocate(wasteful)).upload_energy_j[0] == pytest.approx(
        4 * account(dear, allocate(dear)).upload_energy_j[0]
    )


def test_energy_limits_count_the_circuit():
    problem = small_problem(**ONE, radio=RadioPower(circuit_power_w=1.0), max_energy_j=1.9, delay_weight=2.0)
    found = allocate(problem)
    assert account(problem, found).upload_energy_j[0] == pytest.approx(1.9)
    # The cheapest upload takes e ln 2 = 1.884 J.
    none = allocate(replace(problem, max_energy_j=1.88))
    assert none.status is Status.INFEASIBLE
    assert none.reason == (
        "device 0 cannot upload within 1.88 J even at the cheapest rate (it needs more than 1.88417 J): it "
        "misses max_energy_j by 0.222 % (nearly feasible)"
    )


def test_without_delay_weight_the_rounds_deadline_is_enough():
    problem = small_problem(delay_weight=0.0, max_round_delay_s=6.0)
    found = allocate(problem)
    assert found.delay_s == pytest.approx(6.0)
    assert_equals_brute_force(problem)
    for method in METHODS:
        allocate(problem, method, rng=np.random.default_rng(0))


# Limits at an allocation's own values, as in test_tolerance.py ------------------------------------------


def test_who_meets_the_limits_of_the_link_exactly_is_never_lost():
    for seed in range(120):
        rng = np.random.default_rng(seed)
        features = [f for f in some_features(rng, 0.5) if f in ("circuit", "errors", "rate", "floors")]
        problem = replace(link_problem(rng, features), max_power_w=1e3)
        problem = replace(problem, contribution=rng.uniform(50, 90, problem.num_devices))
        count = min(problem.num_devices, problem.num_blocks)
        device, block = (
            rng.permutation(problem.num_devices)[:count],
            rng.permutation(problem.num_blocks)[:count],
        )
        snr = float(rng.uniform(0.2, 1)) * rng.uniform(1, 2, count)
        power = snr * problem.block_noise_w[block] / problem.gain_of(device, block)
        given = build_allocation(
            problem,
            method="given",
            device=device,
            block=block,
            power_w=power,
            cpu_frequency_hz=np.where(problem.workload_cycles > 0, problem.max_frequency_hz, 0.0),
            status=Status.FEASIBLE,
        )
        entry = account(problem, given)
        own_snr = problem.snr_of(device, block, power)
        energy = np.where(entry.upload_energy_j > 0, entry.upload_energy_j, 0.0)
        limits = {
            "max_delay_s": given.upload_delay_s,
            "max_energy_j": energy,
            "max_power_w": np.where(given.transmit_power_w > 0, given.transmit_power_w, 0.0),
            "min_snr": float(own_snr.min()),
            "max_round_delay_s": given.delay_s,
        }
        chosen = {name: limit for name, limit in limits.items() if rng.random() < 0.6}
        problem = replace(problem, **chosen)
        assert violations(problem, given) == ()
        witness = total_cost(problem, given)
        scale = float(problem.contribution.sum())
        for method in ("optimal", "ives"):
            found = allocate(problem, method)
            assert violations(problem, found) == (), (seed, chosen)
            if method == "optimal":
                assert found.objective >= witness - 1e-8 * scale, (seed, list(chosen))
                assert found.upper_bound >= witness - 1e-8 * scale
