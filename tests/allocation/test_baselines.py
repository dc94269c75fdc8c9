from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import lambertw

import fedwave.allocation.chen2020 as chen_module
from fedwave.allocation import FIGURE_4, Status, account, allocate
from fedwave.allocation.cpu_frequency import solve_cpu_frequencies
from fedwave.errors import ProblemError
from tests.allocation.allocation_cells import paper_cell, small_problem
from tests.allocation.allocation_oracles import assignments


def rng(seed=0):
    return np.random.default_rng(seed)


def test_greedy_power_solves_eq_56_as_corrected():
    problem = paper_cell(0, energy_weight=2.0, delay_weight=0.5)
    found = allocate(problem, "greedy", rng=rng())
    for i in found.selected:
        m = found.block_of_device[i]
        noise = problem.interference_w[m] + 1.0
        grid = np.linspace(1e-4, 1, 20_001) * problem.max_power_w[i]

        def cost(p, i=i, noise=noise):
            return (2.0 * p + 0.5) / np.log2(1 + problem.channel_gain[i] * p / noise)

        assert cost(found.transmit_power_w[i]) <= cost(grid).min() * (1 + 1e-12)


@pytest.mark.parametrize("method", ["greedy", "random", "fedl"])
def test_selection_by_contribution_takes_the_largest(method):
    problem = paper_cell(1)
    found = allocate(problem, method, rng=rng(), num_selected=7)
    assert set(found.selected) == set(np.argsort(-problem.contribution)[:7])


@pytest.mark.parametrize("method", ["greedy", "random"])
def test_uniform_selection_serves_all_devices_equally_often(method):
    problem = paper_cell(1, num_devices=10, num_blocks=5)
    generator = rng(3)
    counts = np.zeros(10)
    for _ in range(400):
        counts[allocate(problem, method, rng=generator, selection="uniform").selected] += 1
    assert np.abs(counts - 200).max() < 5 * np.sqrt(400 * 0.25)  # five standard deviations


@pytest.mark.parametrize("method", ["greedy", "random"])
def test_given_devices_are_the_ones_that_upload(method):
    found = allocate(paper_cell(1), method, rng=rng(), selected=[9, 4, 77])
    assert found.selected.tolist() == [4, 9, 77]


def test_blocks_are_drawn_uniformly():
    problem = paper_cell(1, num_devices=1, num_blocks=4)
    generator = rng(5)
    counts = np.bincount(
        [allocate(problem, "greedy", rng=generator).block_of_device[0] for _ in range(800)], minlength=4
    )
    assert np.abs(counts - 200).max() < 5 * np.sqrt(800 * 0.25 * 0.75)


def test_random_powers_are_uniform_on_the_feasible_region():
    problem = paper_cell(1, num_devices=20, max_delay_s=100.0, max_power_w=1.0)
    generator = rng(2)
    shares = np.concatenate([allocate(problem, "random", rng=generator).transmit_power_w for _ in range(200)])
    assert (shares > 0).all()
    assert shares.mean() == pytest.approx(0.5, abs=0.02)
    assert np.quantile(shares, 0.25) == pytest.approx(0.25, abs=0.03)


def test_the_same_seed_gives_the_same_allocation():
    for method in ("greedy", "random"):
        first, second = (allocate(paper_cell(0), method, rng=rng(4), selection="uniform") for _ in range(2))
        np.testing.assert_array_equal(first.block_of_device, second.block_of_device)
        np.testing.assert_array_equal(first.transmit_power_w, second.transmit_power_w)


@pytest.mark.parametrize("method", ["greedy", "random"])
def test_a_selected_device_that_breaks_a_limit_is_dropped_and_named(method):
    problem = small_problem(max_delay_s=1.1)
    found = allocate(problem, method, rng=rng(), selected=[2])
    assert found.status is Status.INFEASIBLE
    assert found.num_selected == 0
    assert found.reason.startswith("device 2 cannot finish by 1.1 s even at full power")
    assert found.reason.endswith("so it does not upload")


def test_a_selected_device_without_power_is_dropped_and_named():
    found = allocate(small_problem(max_power_w=0.0), "greedy", rng=rng(), selected=[1, 2])
    assert found.status is Status.INFEASIBLE
    assert "device 1 cannot upload: its max_power_w is 0" in found.reason
    assert "(nor do 1 others)" in found.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r'method "greedy" draws at random and needs rng=, got None'),
        ({"rng": 1, "num_selected": 3}, r"num_selected must not exceed the 2 blocks, got 3"),
        ({"rng": 1, "num_selected": -1}, r"num_selected must lie in 0..3 devices, got -1"),
        ({"rng": 1, "selected": [0], "num_selected": 1}, r"Give selected or num_selected, not both"),
        ({"rng": 1, "selected": [0, 5]}, r"selected must lie in 0..2, got 5"),
        ({"rng": 1, "selected": [1, 1]}, r"selected must name each device once"),
        ({"rng": 1, "selected": [True, False, True]}, r"selected must be a list of device indices, got bool"),
        (
            {"rng": 1, "selection": "unifrom"},
            r"selection is not known, got 'unifrom'. Did you mean \"uniform\"\?",
        ),
        ({"selection": "uniform"}, r"selection='uniform' draws at random and needs rng="),
    ],
)
def test_bad_options_are_refused(options, message):
    if "rng" in options:
        options = options | {"rng": rng(options["rng"])}
    with pytest.raises(ProblemError, match=message):
        allocate(small_problem(), "greedy", **options)


def test_figure_4_is_one_call_each():
    problem = paper_cell(0)
    objectives = {
        name: allocate(problem, rng=rng(), **options).objective for name, options in FIGURE_4.items()
    }
    assert list(objectives) == ["URAL", "NUFM-Greedy", "NUFM-Random", "RU-Greedy", "RU-Random"]
    assert objectives["NUFM-Greedy"] > objectives["NUFM-Random"]


def test_chen_matches_the_best_weights_within_the_limits_at_full_power():
    problem = paper_cell(2, max_delay_s=4.0)
    found = allocate(problem, "chen2020")
    assert found.status is Status.FEASIBLE
    assert_allclose(found.transmit_power_w[found.selected], problem.max_power_w[found.selected], rtol=1e-12)
    assert account(problem, found).upload_delay_s.max() <= 4.0
    np.testing.assert_array_equal(found.cpu_frequency_hz, problem.max_frequency_hz)


def test_chen_without_packet_errors_serves_the_largest_contributions():
    problem = paper_cell(2)
    found = allocate(problem, "chen2020", waterfall_threshold=0.0)
    assert set(found.selected) == set(np.argsort(-problem.contribution)[:20])


def test_chen_equals_brute_force_over_permutations():
    problem = paper_cell(6, num_devices=4, num_blocks=3)
    found = allocate(problem, "chen2020", max_delay_s=6.0)
    noise = problem.interference_w + 1.0

    def weight(i, m):
        snr = problem.max_power_w[i] * problem.channel_gain[i] / noise[m]
        return problem.contribution[i] * np.exp(-1.08 / snr) if 1 / np.log2(1 + snr) <= 6.0 else -np.inf

    best = max(sum(weight(i, m) for i, m in pairs) for pairs in assignments(4, 3))
    ours = sum(weight(i, found.block_of_device[i]) for i in found.selected)
    assert ours == pytest.approx(best)


def test_chens_own_limits_only_tighten_the_problems():
    problem = paper_cell(2, max_delay_s=4.0)
    found = allocate(problem, "chen2020", max_delay_s=100.0, max_energy_j=2.0)
    entry = account(problem, found)
    assert entry.upload_delay_s.max() <= 4.0
    assert entry.upload_energy_j.max() <= 2.0
    with pytest.raises(ProblemError, match="waterfall_threshold must be >= 0, got -1"):
        allocate(problem, "chen2020", waterfall_threshold=-1.0)


def test_fedl_is_sp1_and_the_lambert_formula_of_each_device():
    problem = paper_cell(3, max_power_w=1e3, delay_weight=2.0)
    found = allocate(problem, "fedl")
    np.testing.assert_array_equal(found.cpu_frequency_hz, solve_cpu_frequencies(problem).cpu_frequency_hz)
    noise = problem.interference_w + 1.0
    for i in found.selected:
        gain_to_noise = problem.channel_gain[i] / noise[found.block_of_device[i]]
        # FEDL's tau: S ln2 / (B (1 + W((kappa h / N0 - 1) / e))), kappa = eta_2 / eta_1.
        delay = np.log(2) / (1 + lambertw((2.0 * gain_to_noise - 1) / np.e).real)
        assert account(problem, found).upload_delay_s[i] == pytest.approx(delay)


def test_fedl_blocks_minimise_the_sum_of_its_costs():
    problem = paper_cell(4, num_devices=3, num_blocks=3)
    found = allocate(problem, "fedl")
    entry = account(problem, found)
    ours = float((entry.upload_energy_j + entry.upload_delay_s).sum())

    def cost(pairs):
        total = 0.0
        for i, m in pairs:
            p = np.linspace(1e-4, 1, 20_001) * problem.max_power_w[i]
            noise = problem.interference_w[m] + 1.0
            total += ((p + 1) / np.log2(1 + problem.channel_gain[i] * p / noise)).min()
        return total

    best = min(cost(pairs) for pairs in assignments(3, 3) if len(pairs) == 3)
    assert ours == pytest.approx(best, rel=1e-6)


def test_chen_on_a_large_cell_equals_the_unpruned_matching(monkeypatch):
    limits = {"max_delay_s": 5.0, "max_energy_j": np.random.default_rng(0).uniform(0.5, 3, 800)}
    for changes in ({}, limits):
        problem = paper_cell(1, num_devices=800, num_blocks=6, **changes)
        pruned = allocate(problem, "chen2020")
        with monkeypatch.context() as patch:
            patch.setattr(chen_module, "undominated", lambda criteria, depth: np.arange(criteria[0].size))
            whole = allocate(problem, "chen2020")
        np.testing.assert_array_equal(pruned.block_of_device, whole.block_of_device)
