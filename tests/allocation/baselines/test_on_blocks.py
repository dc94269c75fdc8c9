from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import Status, allocate
from tests.allocation.allocation_problems import small_problem


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("method", ["greedy", "random", "fedl"])
def test_a_device_that_cannot_keep_a_limit_is_dropped_and_named(method):
    problem = small_problem(max_delay_s=1.1)
    found = allocate(problem, method, rng=rng(), selected=[2])
    assert found.status is Status.INFEASIBLE
    assert found.num_selected == 0
    assert found.reason.startswith("device 2 cannot finish by 1.1 s even at full power")
    assert found.reason.endswith("so it does not upload")


def test_the_reason_is_that_of_the_devices_own_block():
    # At full power device 1 needs 1 s on block 0 and 1.71 s on block 1, device 2 1.24 s on block 0.
    problem = small_problem(max_delay_s=1.5)
    reasons = {
        allocate(problem, "greedy", rng=np.random.default_rng(seed), selected=[1, 2]).reason
        for seed in range(20)
    }
    missed = "misses max_delay_s by 14 % on block 1, so it does not upload"
    assert any(
        reason.startswith("device 1 cannot finish by 1.5 s even at full power (it needs 1.70951 s)")
        and missed in reason
        for reason in reasons
    )


def test_others_that_cannot_upload_are_counted():
    found = allocate(small_problem(max_power_w=0.0), "greedy", rng=rng(), selected=[1, 2])
    assert found.status is Status.INFEASIBLE
    assert "device 1 cannot upload: its max_power_w is 0" in found.reason
    assert "(nor do 1 others)" in found.reason


def test_the_others_still_upload():
    found = allocate(small_problem(max_power_w=[0.0, 2.0, 3.0]), "fedl", selected=[0, 2])
    assert found.status is Status.INFEASIBLE
    assert found.selected.tolist() == [2]


def test_all_that_can_upload_is_feasible():
    found = allocate(small_problem(), "fedl")
    assert (found.status, found.reason, found.iterations) == (Status.FEASIBLE, "", 1)
    assert allocate(small_problem(), "greedy", rng=rng()).iterations == 0  # no matching is solved
