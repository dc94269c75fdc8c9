from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import Status, account, allocate, violations
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.wireless.rate import RateModel
from tests.allocation.allocation_oracles import assignments, upload_value
from tests.allocation.allocation_problems import paper_problem, random_problem, small_problem


def by_definition(problem) -> float:
    """Return the value of (SP2) of the rule, by enumeration and a fine grid of delays."""
    noise = problem.interference_w + problem.bandwidth_hz * problem.noise_psd_w_per_hz
    gain = np.broadcast_to(
        problem.channel_gain.reshape(problem.num_devices, -1), (problem.num_devices, noise.size)
    )
    rate = np.log2(1 + gain * problem.max_power_w[:, None] / noise).mean(axis=1)
    chosen = np.argsort(-problem.contribution * rate, kind="stable")[: problem.num_blocks]
    watts = noise / gain
    full = [
        pairs for pairs in assignments(problem.num_devices, problem.num_blocks) if len(pairs) == chosen.size
    ]
    own = [pairs for pairs in full if {i for i, _ in pairs} == set(chosen.tolist())]
    pairs = min(own, key=lambda pairs: sum(watts[i, m] for i, m in pairs))
    fastest = min(problem.max_power_w[i] / watts[i, m] for i, m in pairs)
    return max(
        upload_value(problem, pairs, {i: snr * watts[i, m] for i, m in pairs})
        for snr in np.geomspace(fastest * 1e-4, fastest, 20_001)
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_selective", [False, True])
def test_it_is_the_rule_by_its_definition(seed, is_selective):
    rng = np.random.default_rng(seed)
    changes = {"channel_gain": rng.uniform(0.1, 1, (5, 3))} if is_selective else {}
    problem = paper_problem(seed, num_devices=5, num_blocks=3, max_power_w=rng.uniform(0.5, 2, 5), **changes)
    found, idle = allocate(problem, "value-rate"), allocate(problem, selected=[])
    assert found.objective - idle.objective == pytest.approx(by_definition(problem), rel=1e-6)
    assert found.status is Status.FEASIBLE
    np.testing.assert_array_equal(found.cpu_frequency_hz, solve_cpu_frequencies(problem).cpu_frequency_hz)


def test_all_finish_together():
    problem = paper_problem(4)
    delays = account(problem, found := allocate(problem, "value-rate")).upload_delay_s[found.selected]
    assert found.num_selected == problem.num_blocks
    np.testing.assert_allclose(delays, delays[0], rtol=1e-12)


def test_it_serves_also_where_nobody_had_better_upload():
    problem = small_problem(delay_weight=1e3)
    found = allocate(problem, "value-rate")
    assert found.num_selected == 2
    assert found.objective < allocate(problem).objective


def test_who_brings_nothing_or_has_no_link_is_left_out():
    problem = small_problem(contribution=[5.0, -1.0, 4.0])
    assert allocate(problem, "value-rate").selected.tolist() == [0, 2]
    faint = small_problem(channel_gain=[1.0, 0.5, 1e-9], rate=RateModel(min_snr=0.1))
    assert allocate(faint, "value-rate").selected.tolist() == [0, 1]
    assert allocate(problem, "value-rate", selected=[1, 2]).selected.tolist() == [2]
    assert allocate(problem, "value-rate", selected=[1]).num_selected == 0


def test_ties_go_to_the_lower_index():
    alike = small_problem(contribution=1.0 * np.ones(3), channel_gain=0.5, max_power_w=1.0)
    assert allocate(alike, "value-rate").selected.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(60))
def test_it_breaks_no_limit_and_beats_no_bound(seed):
    problem = random_problem(seed)
    found = allocate(problem, "value-rate")
    if found.status is Status.FEASIBLE:
        assert violations(problem, found) == ()
    assert found.objective <= allocate(problem).upper_bound + 1e-9
