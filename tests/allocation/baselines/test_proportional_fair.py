from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import Status, allocate, violations
from fedwave.allocation.baselines.proportional_fair import mean_rates_after
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RateModel
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import paper_problem, random_problem, small_problem


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("has_past", [False, True])
def test_it_has_the_largest_sum_of_rate_over_mean_rate(seed, has_past):
    rng = np.random.default_rng(seed)
    problem = paper_problem(seed, num_devices=4, num_blocks=3, channel_gain=rng.uniform(0.1, 1, (4, 3)))
    past = rng.uniform(0.1, 2, 4) if has_past else np.ones(4)
    found = allocate(problem, "proportional-fair", mean_rate_bps=past if has_past else None)
    noise = problem.interference_w + 1.0
    ratio = np.log2(1 + problem.max_power_w[:, None] * problem.channel_gain / noise) / past[:, None]
    best = max(sum(ratio[i, m] for i, m in pairs) for pairs in assignments(4, 3))
    assert sum(ratio[i, found.block_of_device[i]] for i in found.selected) == pytest.approx(best)
    np.testing.assert_allclose(found.transmit_power_w[found.selected], problem.max_power_w[found.selected])


def test_who_was_never_served_comes_first_and_who_had_much_comes_last():
    problem = small_problem(channel_gain=[1.0, 0.5, 0.25], max_power_w=1.0)
    served = allocate(problem, "proportional-fair", mean_rate_bps=np.array([1.0, 1.0, 0.0]))
    assert served.selected.tolist() == [0, 2]
    assert allocate(
        problem, "proportional-fair", mean_rate_bps=np.array([9.0, 1.0, 1.0])
    ).selected.tolist() == [1, 2]


def test_it_knows_nothing_of_learning():
    one, other = small_problem(contribution=[1.0, 1.0, 1.0]), small_problem(contribution=[0.0, -5.0, 9.0])
    blocks = [allocate(problem, "proportional-fair").block_of_device.tolist() for problem in (one, other)]
    assert blocks[0] == blocks[1]


def test_no_power_is_spent_past_the_cap_of_the_rate():
    problem = small_problem(rate=RateModel(max_spectral_efficiency=0.5))
    found = allocate(problem, "proportional-fair")
    snr = problem.snr_of(
        found.selected, found.block_of_device[found.selected], found.transmit_power_w[found.selected]
    )
    assert np.all(snr <= problem.rate.max_snr * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(60))
def test_it_breaks_no_limit_and_beats_no_bound(seed):
    problem = random_problem(seed)
    found = allocate(problem, "proportional-fair")
    if found.status is Status.FEASIBLE:
        assert violations(problem, found) == ()
    assert found.objective <= allocate(problem).upper_bound + 1e-9


def test_nobody_and_one_of_few():
    assert allocate(small_problem(max_power_w=0.0), "proportional-fair").num_selected == 0
    assert allocate(small_problem(), "proportional-fair", selected=[1]).selected.tolist() == [1]


def test_a_mean_forgets_by_a_tenth():
    after = mean_rates_after(np.array([10.0, 10.0, 0.0]), np.array([20.0, np.nan, 5.0]))
    np.testing.assert_allclose(after, [11.0, 9.0, 0.5])


@pytest.mark.parametrize("rates", [[1.0, 2.0], [1.0, -1.0, 2.0], [1.0, np.inf, 2.0]])
def test_mean_rates_are_checked(rates):
    with pytest.raises(
        ProblemError, match="mean_rate_bps must be a finite rate >= 0 for each of the 3 devices"
    ):
        allocate(small_problem(), "proportional-fair", mean_rate_bps=np.array(rates))
