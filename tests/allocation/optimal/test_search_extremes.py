"""The search ends, and its certificate holds, in any unit and at any SNR; steps are counted, not seconds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedwave.allocation import (
    METHODS,
    AllocationProblem,
    Status,
    allocate,
    allocate_many,
    compare_methods,
    pareto_front,
    total_cost,
    violations,
)
from fedwave.allocation.optimal import compiled_search
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.testing.method import random_problem
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_oracles import best_by_brute_force
from tests.allocation.allocation_problems import (
    FEATURES,
    UNITS,
    at_other_snr,
    in_other_units,
    link_problem,
    paper_problem,
    small_problem,
)
from tests.allocation.link_oracle import best_by_link_brute_force

SCALED = (
    "contribution",
    "channel_gain",
    "interference_w",
    "max_power_w",
    "workload_cycles",
    "max_frequency_hz",
    "capacitance",
    "model_bits",
    "bandwidth_hz",
    "noise_psd_w_per_hz",
    "energy_weight",
    "delay_weight",
)


def searched(problem, **options):
    search = BranchAndBound(problem, candidate_pairs(problem))
    plan = search.run(**({"relative_gap": 1e-6, "compute_cost": 0.0, "max_matchings": 10_000} | options))
    return search, plan


def some_link_problem(seed, **sizes):
    rng = np.random.default_rng(seed)
    return link_problem(rng, [feature for feature in FEATURES if rng.random() < 0.4], **sizes)


def oddly_scaled(seed, **sizes):
    """Return a problem of which some numbers are larger or smaller, each by up to thirty decades."""
    problem, rng = some_link_problem(seed, **sizes), np.random.default_rng(seed)
    scales = {name: 10.0 ** rng.uniform(-30, 30) for name in SCALED if rng.random() < 0.3}
    changes = {name: getattr(problem, name) * scale for name, scale in scales.items()}
    return replace(problem, **changes, min_frequency_hz=None)


def assert_certified(problem):
    found = allocate(problem)
    scale = float(np.maximum(problem.contribution, 0).sum()) + abs(found.objective)
    assert found.status in (Status.OPTIMAL, Status.GAP_REACHED, Status.INFEASIBLE)
    assert found.status is Status.INFEASIBLE or violations(problem, found) == ()
    assert total_cost(problem, found) == pytest.approx(found.objective, abs=1e-12 * scale)
    with np.errstate(all="ignore"):
        best = best_by_link_brute_force(problem)
    assert best <= found.upper_bound + 1e-9 * scale
    assert best <= found.objective + 1e-6 * scale


def test_a_round_whose_cpus_cannot_be_hurried_is_solved():
    """All must compute at full frequency, so the upload's deadline lies where hurrying would begin."""
    problem = AllocationProblem(
        contribution=[5.0] * 4,
        channel_gain=[
            [0.8508624922941354],
            [0.3267546932862484],
            [0.05374314710123897],
            [0.022013397826717553],
        ],
        interference_w=[0.7865932055129456],
        max_power_w=[2.770139838690064, 0.06725152064292998, 0.15498860077122967, 0.3505006194956508],
        workload_cycles=[2.482029700245378, 0.0, 0.0, 2.1481845360452176],
        max_frequency_hz=[1.172040926854442, 0.2966268637491281, 2.830051425606396, 0.32514258830630854],
        capacitance=[0.597963958144291, 0.9973844784004536, 0.03783675512794562, 0.18884012078828963],
        model_bits=0.9475040613282922,
        bandwidth_hz=1.0,
        noise_psd_w_per_hz=0.7299014694985441,
        energy_weight=0.3,
        delay_weight=0.3,
        rate=RateModel(efficiency=0.7765784106032654, min_snr=0.026644875432257357),
        radio=RadioPower(amplifier_efficiency=0.7305243082556667, circuit_power_w=0.0337587479886199),
        min_snr=0.1047597636045276,
        max_delay_s=6.27419532703583,
        max_round_delay_s=9.06529821804436,
        fixed_delay_s=0.6962061668253261,
    )
    assert allocate(problem).status is Status.OPTIMAL
    assert_certified(problem)


@pytest.mark.parametrize("bandwidth_hz", [1e13, 1e15, 1e16, 1e18, 1e20, 1e30])
@pytest.mark.parametrize("seed", range(3))
def test_wide_bands_of_much_noise_are_solved_at_snrs_where_one_plus_x_is_one(seed, bandwidth_hz):
    problem = paper_problem(
        seed, num_devices=4, num_blocks=2, bandwidth_hz=bandwidth_hz, energy_weight=0.1, delay_weight=0.1
    )
    search, plan = searched(problem)
    assert plan.status is Status.OPTIMAL
    assert search._num_steps <= 100
    best = best_by_brute_force(problem)
    assert plan.value == pytest.approx(best, rel=1e-6)
    assert plan.upper_bound >= best * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_normal_problems_take_few_steps(seed):
    rng = np.random.default_rng(seed)
    for problem in (
        random_problem(rng, max_devices=30, max_blocks=8),
        some_link_problem(seed, max_devices=6, max_blocks=4),
    ):
        search, _ = searched(problem)
        assert search._num_steps <= 2 * search._num_matchings
        assert search._num_steps <= 150


def test_a_search_that_gets_nowhere_ends_with_the_gap_it_has(monkeypatch):
    problem = paper_problem(1, num_devices=20, num_blocks=4)
    exact = allocate(problem)
    monkeypatch.setattr(BranchAndBound, "_branch", lambda self, node: [node])
    monkeypatch.setattr(compiled_search, "library", lambda source: None)
    search, plan = searched(problem, max_matchings=50)
    assert plan.status is Status.LIMIT
    assert search._num_steps == 100
    assert plan.upper_bound > plan.value * (1 + 1e-6)
    stuck = allocate(problem, max_matchings=50)
    assert stuck.upper_bound >= exact.objective >= stuck.objective
    assert stuck.status is Status.LIMIT


def test_a_search_that_is_good_enough_is_granted_few_steps_more(monkeypatch):
    problem = paper_problem(1, num_devices=20, num_blocks=4)
    monkeypatch.setattr(BranchAndBound, "_branch", lambda self, node: [node])
    search, plan = searched(problem, relative_gap=0.99)
    assert plan.status is Status.GAP_REACHED
    assert 0 < search._num_steps <= 50
    assert plan.upper_bound <= plan.value * 1.99


@pytest.mark.parametrize("terms", [{}, {"radio": RadioPower(circuit_power_w=0.3)}])
def test_what_no_float_divides_is_closed_with_the_value_of_its_point(terms):
    problem = paper_problem(3, num_devices=12, num_blocks=3, **terms)
    search, plan = searched(problem, relative_gap=0.0)
    table = candidate_pairs(problem)
    snr = 0.7 * plan.snr
    low, lines = math.nextafter(snr, 0.0), table.tangent(0.3 * plan.snr)
    wide = search._root()
    node = replace(wide, low=low, high=snr, smallest_cap=snr, lines=replace(wide.lines, table=lines))
    assert not node.is_divisible
    assert replace(node, high=math.nextafter(math.nextafter(low, 1.0), 1.0)).is_divisible
    (point,) = search._branch(node)
    assert point.is_point
    there = table.tangent(snr)
    matching = search._match(replace(wide.lines, table=there), snr, snr)
    value = matching.best_value - search._delay.at(snr)
    assert point.upper_bound == pytest.approx(value, rel=1e-13)
    assert point.upper_bound < node.upper_bound
    search._heap.clear()
    search._value = 0.0
    search._sort_in(point)
    assert search._heap == []
    assert search._closed[-1] is point


def test_a_closed_point_above_the_incumbent_is_no_proof(monkeypatch):
    """Then the bound says so, and the status too."""
    problem = paper_problem(1, num_devices=20, num_blocks=4)
    monkeypatch.setattr(BranchAndBound, "_branch", lambda self, node: [replace(node, is_point=True)])
    _, plan = searched(problem)
    assert plan.status is Status.LIMIT
    assert plan.upper_bound > plan.value * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_units_change_nothing_but_the_numbers(seed):
    """Factors are powers of two, so only what logarithms and roots round may differ."""
    problem, rng = some_link_problem(seed), np.random.default_rng(seed)
    together = 2.0 ** int(rng.integers(-99, 100))
    for scales in (
        {unit: 2.0 ** int(rng.integers(-99, 100)) for unit in UNITS},
        {str(rng.choice(UNITS)): together},
        dict.fromkeys(UNITS, together),
    ):
        other = in_other_units(problem, **scales)
        worth = scales.get("contribution", 1.0)
        for method in METHODS:
            here = allocate(problem, method, rng=np.random.default_rng(0))
            there = allocate(other, method, rng=np.random.default_rng(0))
            assert there.status is here.status
            assert there.block_of_device.tolist() == here.block_of_device.tolist()
            scale = 1e-9 * (abs(here.objective) + abs(here.contribution))
            assert there.objective / worth == pytest.approx(here.objective, abs=scale)
            if method == "optimal":
                assert there.upper_bound / worth == pytest.approx(here.upper_bound, abs=scale)


@pytest.mark.parametrize("exponent", range(-20, 21, 4))
@pytest.mark.parametrize("seed", range(2))
def test_the_certificate_holds_at_any_snr(seed, exponent):
    assert_certified(at_other_snr(some_link_problem(31 * seed + 400 + exponent), 10.0**exponent))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_the_certificate_holds_at_many_snrs(seed):
    factor = 10.0 ** np.random.default_rng(seed).uniform(-20, 20)
    assert_certified(at_other_snr(some_link_problem(1000 + seed), factor))


@pytest.mark.parametrize("feature", ["circuit", "errors"])
@pytest.mark.parametrize("exponent", [-6, -9, -12, -16, -20])
def test_own_snrs_are_certified_where_all_snrs_are_tiny(feature, exponent):
    for seed in range(6):
        problem = link_problem(np.random.default_rng(seed), [feature], max_devices=6, max_blocks=3)
        _, here = searched(problem)
        search, faint = searched(at_other_snr(problem, 10.0**exponent))
        assert faint.status is Status.OPTIMAL
        assert search._num_steps <= 100
        if here.matching is not None and faint.matching is not None:
            assert faint.value <= faint.upper_bound <= faint.value * (1 + 1e-11)


@pytest.mark.parametrize("seed", range(40))
def test_every_method_ends_without_a_warning_at_odd_scales(seed):
    problem = oddly_scaled(seed, max_devices=5, max_blocks=3)
    best = allocate(problem)
    scale = abs(best.objective) + float(np.maximum(problem.contribution, 0).sum())
    for name, compared in compare_methods(problem, seed=0).items():
        other = compared.allocation
        if other.status is not Status.INFEASIBLE and not violations(problem, other):
            assert other.objective <= best.upper_bound + 1e-9 * scale, name
    many = allocate_many([problem, problem], workers=1)
    assert many[1].objective == best.objective
    if np.ndim(problem.energy_weight) == 0 and problem.energy_weight > 0.0 < problem.delay_weight:
        assert len(pareto_front(problem, [1e-20, 1.0, 1e20]).allocations) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 220))
def test_the_certificate_holds_at_odd_scales(seed):
    assert_certified(oddly_scaled(seed))


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 10**6),
    st.floats(-20, 20),
    st.dictionaries(st.sampled_from(UNITS), st.integers(-99, 99), max_size=3),
)
def test_no_search_is_endless(seed, exponent, units):
    problem = at_other_snr(some_link_problem(seed, max_devices=5, max_blocks=3), 10.0**exponent)
    problem = in_other_units(problem, **{name: 2.0**power for name, power in units.items()})
    search, plan = searched(problem)
    assert search._num_steps <= 200
    assert plan.status in (Status.OPTIMAL, Status.GAP_REACHED)


@pytest.mark.parametrize("energy_weight", [0.0, 1e-200])
def test_a_price_that_overflows_rules_nobody_out(energy_weight):
    """The second block takes more than 1e308 J at a gain of 1; what it takes at these gains is little."""
    problem = small_problem(
        contribution=[9e4, 8e4, 7e4],
        channel_gain=[[1.0, 2e307], [0.5, 1e307], [0.25, 1e307]],
        interference_w=[0.0, 1e307],
        model_bits=1e3,
        energy_weight=energy_weight,
    )
    assert allocate(problem).num_selected == 2
    assert_certified(problem)


@pytest.mark.parametrize("gain", [1e-20, 1e-50, 1e-70, 1e-100, 1e-140, 1e-200])
@pytest.mark.parametrize("terms", [{}, {"circuit_power_w": 0.1}, {"waterfall": 1e-3}])
def test_signals_that_nobody_could_hear_are_computed_all_the_same(gain, terms):
    """The model shrinks with the gain, so every delay stays, and all that changes is below rounding."""

    def at(gain):
        return small_problem(
            channel_gain=[gain, 0.5 * gain, 0.25 * gain],
            model_bits=gain,
            radio=RadioPower(circuit_power_w=terms.get("circuit_power_w", 0.0)),
            packet_error_waterfall=terms.get("waterfall", 0.0) * gain,
            max_energy_j=30.0,
        )

    found, reference = allocate(at(gain)), allocate(at(1e-18))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(reference.objective, rel=1e-9)
    assert violations(at(gain), found) == ()
