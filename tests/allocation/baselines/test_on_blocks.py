from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave.allocation import (
    Status,
    account,
    allocate,
    violations,
)
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import (
    paper_problem,
    small_problem,
)


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("method", ["greedy", "random", "fedl-power"])
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
    found = allocate(small_problem(max_power_w=[0.0, 2.0, 3.0]), "fedl-power", selected=[0, 2])
    assert found.status is Status.INFEASIBLE
    assert found.selected.tolist() == [2]


def test_all_that_can_upload_is_feasible():
    found = allocate(small_problem(), "fedl-power")
    assert (found.status, found.reason, found.iterations) == (Status.FEASIBLE, "", 1)
    assert allocate(small_problem(), "greedy", rng=rng()).iterations == 0  # no matching is solved


# One device, gain and noise 1, S = B = 1: an SNR of 1 takes a watt, a second and a joule.
ONE = {
    "contribution": [9.0, 0.0, 0.0],
    "interference_w": [0.0],
    "max_power_w": [8.0, 0.0, 0.0],
    "workload_cycles": 0.0,
}


@pytest.mark.parametrize("method", ["greedy", "random", "fedl-power"])
def test_baselines_decide_as_if_nothing_could_be_lost_and_run_into_it(method):
    plain = paper_problem(3, contribution=np.full(100, 50.0))
    old = allocate(plain, method, rng=np.random.default_rng(0))
    snr = plain.snr_of(old.selected, old.block_of_device[old.selected], old.transmit_power_w[old.selected])
    end = old.compute_delay_s + account(plain, old).upload_delay_s[old.selected]
    for terms, arrives in (
        ({"min_snr": float(np.median(snr))}, snr >= np.median(snr)),
        ({"max_round_delay_s": float(np.median(end))}, end <= np.median(end)),
        ({"packet_error_waterfall": 0.1}, np.exp(-0.1 / snr)),
    ):
        problem = replace(plain, **terms)
        new = allocate(problem, method, rng=np.random.default_rng(0))
        for name in ("block_of_device", "transmit_power_w", "cpu_frequency_hz"):
            assert_array_equal(getattr(old, name), getattr(new, name))
        assert new.contribution == pytest.approx(50.0 * arrives.sum())
        assert new.objective == pytest.approx(old.objective - old.contribution + new.contribution)
        if "packet_error_waterfall" in terms:
            assert new.status is old.status
            continue
        assert new.status is Status.LOST
        assert new.reason.startswith(f"{np.count_nonzero(~arrives)} of 20 uploads are lost: device ")
        assert len(violations(problem, new)) == np.count_nonzero(~arrives)


@pytest.mark.parametrize("method", ["greedy", "random", "fedl-power"])
def test_baselines_know_modem_and_drain(method):
    rate, radio = RateModel(efficiency=0.5, max_spectral_efficiency=0.2), RadioPower(circuit_power_w=0.5)
    problem = paper_problem(3, rate=rate, radio=radio, max_energy_j=20.0, num_devices=30)
    found = allocate(problem, method, rng=np.random.default_rng(0))
    assert violations(problem, found) == ()
    chosen = found.selected
    snr = problem.snr_of(chosen, found.block_of_device[chosen], found.transmit_power_w[chosen])
    assert (snr <= rate.max_snr * (1 + 1e-9)).all()
    assert found.num_selected > 5


def test_selfish_power_counts_what_the_circuit_draws():
    problem = small_problem(**ONE, radio=RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.3))
    for method in ("greedy", "fedl-power"):
        found = allocate(problem, method, rng=np.random.default_rng(0), selected=[0])
        power = np.linspace(0.01, 8, 200_000)
        delay = 1 / np.log2(1 + power)
        cost = (0.25 * (power / 0.5 + 0.3) + 0.5) * delay
        assert found.transmit_power_w[0] == pytest.approx(power[np.argmin(cost)], abs=1e-3)
