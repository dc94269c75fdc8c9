from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fedwave.allocation.optimal.dominance as dominance
from fedwave.allocation import AllocationProblem
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_floor
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import paper_problem


def crowd(
    rng: np.random.Generator, *, max_devices: int, max_blocks: int, has_prices: bool = False
) -> AllocationProblem:
    """Return many devices: with ties and zeros or without, limits equal or not, gains per block or not."""
    n, num_blocks = int(rng.integers(1, max_devices + 1)), int(rng.integers(1, max_blocks + 1))
    has_ties = rng.random() < 0.5
    shape = (n, num_blocks) if rng.random() < 0.8 else (n,)

    def draw(size, scale=1.0):
        values = rng.integers(0, 4, size) / 2 if has_ties else rng.exponential(size=size)
        return scale * values

    def one_or_each(scale):
        return float(scale) if rng.random() < 0.4 else draw(n, scale)

    return paper_problem(
        int(rng.integers(1000)),
        num_devices=n,
        num_blocks=num_blocks,
        contribution=draw(n, 5.0) - rng.choice([0.0, 2.5]),
        channel_gain=draw(shape),
        interference_w=np.full(num_blocks, 0.5) if rng.random() < 0.5 else draw(num_blocks),
        max_power_w=one_or_each(0.5),
        energy_weight=draw(n) if has_prices else float(rng.choice([0.0, 0.2, 1.0])),
        max_delay_s=None if rng.random() < 0.5 else float(rng.uniform(1, 8)),
        max_energy_j=None if rng.random() < 0.4 else one_or_each(1.5),
    )


def pairs_by_definition(problem, may_upload=None):
    """Return each block's devices that are worth it and have fewer than M others at least as good."""
    every = np.arange(problem.num_devices)
    rows = []
    for block in range(problem.num_blocks):
        noise = (
            problem.block_noise_w[block] if problem.is_frequency_selective else problem.block_noise_w.min()
        )
        gain = problem.gain_of(every, np.full(every.shape, block))
        limit = problem.energy_limit_of(every)
        cost = problem.energy_weight * problem.nat_delay_s * noise * energy_factor(snr_floor(problem))
        able = (problem.contribution > 0) & (problem.max_power_w > 0) & (gain > 0)
        able &= problem.contribution * gain > cost * (1 - 1e-12)
        if may_upload is not None:
            able &= may_upload
        value_of_gain = gain[able]
        if problem.has_prices:
            with np.errstate(divide="ignore"):
                value_of_gain = gain[able] / problem.energy_weight[able]
        merits = np.stack(
            [
                problem.contribution[able],
                value_of_gain,
                (gain * problem.max_power_w)[able],
                gain[able] * limit[able],
            ]
        )
        row = []
        for position, device in enumerate(np.flatnonzero(able)):
            own = merits[:, position, None]
            no_worse = (merits >= own).all(axis=0)
            is_equal = (merits == own).all(axis=0)
            num_better = np.count_nonzero(no_worse & ~is_equal) + np.count_nonzero(is_equal[:position])
            if num_better < problem.num_blocks:
                row.append(device)
        rows.append(row)
    return rows


def rows_of(table):
    """Return each block's devices, with their padding, in the order of the blocks."""
    return np.broadcast_to(table.device, table.snr_cap.shape)[np.argsort(table.block)].tolist()


def assert_same_pairs(problem, may_upload=None):
    found = rows_of(candidate_pairs(problem, may_upload=may_upload))
    exact = pairs_by_definition(problem, may_upload)
    for own, expected in zip(found, exact, strict=True):
        assert own[: len(expected)] == expected
        assert set(own[len(expected) :]) <= {0}  # padding


def unpruned(problem):
    """Return all pairs of the devices that bring anything: the search takes that for granted."""
    return all_pairs(problem, may_upload=problem.contribution > 0)


def solve(problem, table):
    """Return the plan of a search that goes on until it is exact."""
    return BranchAndBound(problem, table).run(relative_gap=0.0, compute_cost=0.0, max_matchings=5000)


@pytest.fixture(params=[None, (4, 0, 8), (4, 0, 70)], ids=["as it is", "short strips", "longer strips"])
def short_cuts(request, monkeypatch):
    """Let small sets take the short cuts that are meant for large ones."""
    if request.param is not None:
        for name, value in zip(("_SMALL", "_TINY", "_STRIP"), request.param, strict=True):
            monkeypatch.setattr(dominance, name, value)


@pytest.mark.parametrize("start", range(0, 300, 100))
@pytest.mark.usefixtures("short_cuts")
def test_the_pairs_are_those_of_the_definition(start):
    for seed in range(start, start + 100):
        rng = np.random.default_rng(seed)
        problem = crowd(rng, max_devices=120, max_blocks=5, has_prices=seed % 3 == 0)
        assert_same_pairs(problem, None if rng.random() < 0.7 else rng.random(problem.num_devices) < 0.8)


@pytest.mark.parametrize("powers", ["equal", "random", "few"])
@pytest.mark.parametrize("limits", ["none", "equal", "random"])
def test_the_pairs_of_many_devices_are_those_of_the_definition(powers, limits):
    rng = np.random.default_rng(1)
    n, num_blocks = 3000, 3
    power = {"equal": 0.5, "random": rng.random(n), "few": rng.integers(0, 3, n) / 2}[powers]
    limit = {"none": None, "equal": 2.0, "random": rng.uniform(0.5, 3, n)}[limits]
    gain = rng.exponential(size=(n, num_blocks)) * (rng.random((n, num_blocks)) > 0.05)
    gain[:, 2] = gain[:, 2].round(1)
    problem = paper_problem(
        1, num_devices=n, num_blocks=num_blocks, channel_gain=gain, max_power_w=power, max_energy_j=limit
    )
    assert_same_pairs(problem)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 600]), st.booleans(), st.booleans())
def test_pruning_never_costs_the_optimum(seed, small, has_prices, has_circuit):
    problem = crowd(np.random.default_rng(seed), max_devices=40, max_blocks=4, has_prices=has_prices)
    if has_circuit:
        problem = replace(
            problem, radio=RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.1 * (1 + seed % 20))
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dominance, "_SMALL", small)
        patch.setattr(dominance, "_TINY", 0 if small == 4 else 200)
        pruned = solve(problem, candidate_pairs(problem))
    whole = solve(problem, unpruned(problem))
    scale = 1e-11 * float(np.maximum(problem.contribution, 0).sum())
    assert_allclose(pruned.value, whole.value, rtol=0, atol=scale)
    assert whole.value <= pruned.upper_bound + scale


@pytest.mark.parametrize("equal_powers", [True, False])
@pytest.mark.parametrize("per_device_limits", [True, False])
def test_pruning_never_costs_the_optimum_of_a_large_problem(equal_powers, per_device_limits):
    rng = np.random.default_rng(3)
    n, num_blocks = 4000, 8
    problem = paper_problem(
        3,
        num_devices=n,
        num_blocks=num_blocks,
        channel_gain=rng.exponential(size=(n, num_blocks)),
        max_power_w=0.5 if equal_powers else rng.random(n),
        max_energy_j=rng.uniform(0.05, 1, n) if per_device_limits else None,
    )
    few = candidate_pairs(problem)
    assert few.device.shape[1] < 400
    assert_allclose(solve(problem, few).value, solve(problem, unpruned(problem)).value, rtol=1e-12)


def test_with_circuit_power_a_cheap_joule_counts_by_itself():
    # Device 0 has the larger u, h / a and h p, but its circuit costs 10 a joule: device 1 is the better one.
    problem = paper_problem(
        0,
        num_devices=2,
        num_blocks=1,
        contribution=[5.0, 4.9],
        channel_gain=[100.0, 1.0],
        max_power_w=1.0,
        interference_w=[0.0],
        workload_cycles=0.0,
        energy_weight=[10.0, 0.5],
        delay_weight=0.1,
        radio=RadioPower(circuit_power_w=2.0),
    )
    assert candidate_pairs(problem).device.tolist() == [[0, 1]]
    found = solve(problem, candidate_pairs(problem))
    assert found.value == pytest.approx(solve(problem, unpruned(problem)).value)
    assert found.table.device[0, found.matching.column].tolist() == [1]


def test_with_circuit_power_and_energy_limits_the_gain_counts_by_itself():
    # Device 0 is better in u, h / a, a and h p, but with its gain no upload keeps to the 2 J of both.
    problem = paper_problem(
        0,
        num_devices=2,
        num_blocks=1,
        contribution=[9.0, 8.0],
        channel_gain=[0.1, 0.5],
        max_power_w=[100.0, 10.0],
        interference_w=[0.0],
        workload_cycles=0.0,
        energy_weight=[0.01, 0.1],
        delay_weight=0.1,
        max_energy_j=2.0,
        radio=RadioPower(circuit_power_w=0.01),
    )
    assert solve(problem, candidate_pairs(problem)).value == pytest.approx(
        solve(problem, unpruned(problem)).value
    )
    assert solve(problem, candidate_pairs(problem)).value > 1.0
