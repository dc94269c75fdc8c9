from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import (
    METHODS,
    account,
    allocate,
    describe,
    describe_front,
    objective_terms,
    pareto_front,
    total_cost,
)
from fedwave.testing.method import random_problem
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import small_problem


@pytest.mark.parametrize("method", METHODS)
def test_the_description_is_json_and_says_what_the_allocation_says(method):
    problem = small_problem()
    found = allocate(problem, method, rng=np.random.default_rng(0))
    plain = json.loads(json.dumps(describe(problem, found), allow_nan=False))
    assert (plain["method"], plain["status"], plain["reason"]) == (method, found.status.value, found.reason)
    for name in ("objective", "contribution", "energy_j", "compute_delay_s", "upload_delay_s", "iterations"):
        assert plain[name] == getattr(found, name)
    for name in ("block_of_device", "transmit_power_w", "cpu_frequency_hz", "trace"):
        assert plain[name] == getattr(found, name).tolist()
    entry = account(problem, found)
    assert plain["device_upload_energy_j"] == entry.upload_energy_j.tolist()
    assert plain["device_compute_energy_j"] == entry.compute_energy_j.tolist()
    assert plain["device_upload_delay_s"] == entry.upload_delay_s.tolist()
    for i, block in enumerate(found.block_of_device):
        if block < 0:
            assert plain["device_sinr_db"][i] is plain["device_rate_bps"][i] is None
            continue
        snr = found.transmit_power_w[i] * problem.channel_gain[i] / problem.block_noise_w[block]
        assert plain["device_sinr_db"][i] == pytest.approx(10 * np.log10(snr))
        assert plain["device_rate_bps"][i] == pytest.approx(problem.bandwidth_hz * np.log2(1 + snr))
        assert plain["device_margin_db"][i] is None  # nothing is required, so the margin is infinite
    is_proven = method == "optimal"
    assert plain["upper_bound"] == (found.upper_bound if is_proven else None)
    assert plain["gap"] == (found.gap if is_proven else None)


def test_what_never_ends_becomes_none():
    problem = small_problem(max_frequency_hz=[1.0, 0.0, 1.0])  # device 1 never finishes computing
    plain = describe(problem, allocate(problem))
    assert plain["objective"] is plain["compute_delay_s"] is None
    assert set(plain["trace"]) == {None}
    json.dumps(plain, allow_nan=False)


def test_terms_add_up_to_the_objective_on_any_problem():
    for seed in range(60):
        problem = random_problem(np.random.default_rng(seed))
        found = allocate(problem)
        terms = objective_terms(problem, found)
        total = sum(term.worth for term in terms)
        scale = sum(abs(term.worth) for term in terms)
        assert total == pytest.approx(found.objective, abs=1e-12 * scale)
        assert all(term.worth == pytest.approx(-term.weight * term.value) for term in terms[1:])


def test_terms_by_hand():
    # Device 0 on block 1 (noise 2 W) at 2 W: SNR 1, so 1 s and 2 J.
    problem = small_problem(max_power_w=2.0)
    found = replace(
        allocate(problem),
        block_of_device=np.array([1, -1, -1]),
        transmit_power_w=np.array([2.0, 0.0, 0.0]),
        cpu_frequency_hz=np.array([1.0, 0.5, 0.5]),
    )
    assert [(term.name, term.value, term.unit, term.weight) for term in objective_terms(problem, found)] == [
        ("contribution of the selected", 5.0, "", 1.0),
        ("energy, computing (all 3 devices)", 0.515625, "J", 0.25),
        ("energy, upload (1 of 3)", 2.0, "J", 0.25),
        ("delay, computing", 4.0, "s", 0.5),
        ("delay, upload", 1.0, "s", 0.5),
    ]


def test_without_devices_all_terms_are_zero():
    per_device = (
        "contribution",
        "channel_gain",
        "max_power_w",
        "workload_cycles",
        "max_frequency_hz",
        "capacitance",
    )
    problem = small_problem(**dict.fromkeys(per_device, np.zeros(0)))
    found = allocate(problem)
    assert [term.worth for term in objective_terms(problem, found)] == [0.0] * 5
    assert found.objective == 0.0


def test_a_weight_of_zero_ignores_an_endless_delay():
    problem = small_problem(max_frequency_hz=[1.0, 0.0, 1.0], energy_weight=0.0, delay_weight=0.0)
    delay = objective_terms(problem, allocate(problem))[3]
    assert (delay.value, delay.worth) == (np.inf, 0.0)


def test_a_front_is_described_point_by_point():
    front = pareto_front(small_problem(), [0.5, 2.0])
    plain = json.loads(json.dumps(describe_front(front), allow_nan=False))
    assert list(plain) == [
        "energy_weight",
        "delay_weight",
        "energy_j",
        "delay_s",
        "contribution",
        "num_selected",
    ]
    for name, values in plain.items():
        assert values == getattr(front, name).tolist()


def test_terms_and_description_count_what_arrives():
    problem = small_problem(packet_error_waterfall=0.2, radio=RadioPower(circuit_power_w=0.1))
    found = allocate(problem)
    terms = objective_terms(problem, found)
    assert terms[0].name == "expected contribution of the selected"
    assert sum(term.worth for term in terms) == pytest.approx(found.objective)
    plain = describe(problem, found)
    entry = account(problem, found)
    assert plain["device_success_probability"] == entry.success_probability.tolist()
    assert 0 < min(entry.success_probability[found.selected]) < 1
    assert entry.success_probability[found.block_of_device < 0].tolist() == [0.0]


def test_terms_add_up_under_prices():
    problem = small_problem(energy_weight=[1.0, 0.1, 0.0])
    found = allocate(problem)
    terms = objective_terms(problem, found)
    assert sum(term.worth for term in terms) == pytest.approx(total_cost(problem, found), rel=1e-14)
    costs = account(problem, found)
    computing = terms[1]
    assert computing.worth == pytest.approx(-(costs.compute_energy_j[0] + 0.1 * costs.compute_energy_j[1]))
    assert computing.weight * computing.value == pytest.approx(
        -computing.worth
    )  # what a joule cost on average
    idle = small_problem(energy_weight=[1.0, 0.1, 0.0], workload_cycles=0.0)
    assert objective_terms(idle, allocate(idle))[1].weight == 0.0
