"""Methods over draws, against a loop of one's own and scipy's paired t-test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fedwave import compare_methods, load_cell, problem_of_cell
from fedwave.errors import ProblemError
from fedwave.server.draws import compare_over_draws, draw_contribution, problems_over_draws
from fedwave.wireless.settings.load import load_cell_config

GIVEN = {"model_bits": 1e6, "energy_weight": 0.1, "delay_weight": 1.5}


def test_every_draw_is_the_round_of_a_cell_of_its_own_seed() -> None:
    found = compare_over_draws(
        "umi-3.5ghz", ["greedy", "random"], draws=4, num_devices=8, seed=3, round_index=2, **GIVEN
    )
    assert found.methods == ("optimal", "greedy", "random")
    for draw in range(4):
        seed = 3 + draw
        contribution = np.random.default_rng(seed).uniform(0.0, 2.0, 8)
        problem = problem_of_cell(
            load_cell("umi-3.5ghz", num_devices=8, seed=seed), contribution, round_index=2, **GIVEN
        )
        for place, timed in enumerate(compare_methods(problem, found.methods, seed=seed).values()):
            one = timed.allocation
            assert found.objective[draw, place] == one.objective
            assert found.contribution[draw, place] == one.contribution
            assert found.energy_j[draw, place] == one.energy_j
            assert found.delay_s[draw, place] == one.compute_delay_s + one.upload_delay_s
            assert found.num_selected[draw, place] == one.num_selected
    assert (found.seconds > 0).all()


def test_differences_are_those_of_the_paired_t_test() -> None:
    found = compare_over_draws("paper", ["greedy"], draws=12, num_devices=6)
    for figure in ("objective", "energy_j", "delay_s"):
        optimal, greedy = getattr(found, figure).T
        oracle = stats.ttest_rel(greedy, optimal).confidence_interval(0.95)
        got = found.difference("greedy", figure)  # type: ignore[arg-type]
        assert_allclose([got.mean - got.half_width, got.mean + got.half_width], [oracle.low, oracle.high])
        assert got.count == 12
        mean = found.mean("greedy", figure)  # type: ignore[arg-type]
        oracle = stats.t.interval(0.95, 11, greedy.mean(), stats.sem(greedy))
        assert_allclose([mean.mean - mean.half_width, mean.mean + mean.half_width], oracle)
    assert found.difference("optimal").half_width == 0.0
    assert found.difference("greedy").mean < 0.0  # nobody beats the optimum
    row = found.rows()[1]
    assert row["method"] == "greedy"
    assert row["objective_difference"]["mean"] == found.difference("greedy").mean
    assert row["objective"]["half_width_95"] == found.mean("greedy").half_width


def test_draws_without_a_figure_are_left_out_of_both() -> None:
    found = compare_over_draws("paper", ["greedy"], draws=3, num_devices=4)
    broken = found.objective.copy()
    broken[1, 1] = -np.inf
    some = replace(found, objective=broken).difference("greedy")
    assert some.count == 2
    assert_allclose(some.mean, (found.objective[[0, 2], 1] - found.objective[[0, 2], 0]).mean())
    broken[2, 0] = np.nan  # of the baseline
    assert replace(found, objective=broken).difference("greedy").count == 1
    alone = replace(found, objective=broken[:1]).rows()[0]["objective"]
    assert alone == {"mean": broken[0, 0], "half_width_95": None, "draws": 1}


def test_weights_that_are_not_given_are_the_first_draws_for_all() -> None:
    cell = load_cell_config("fedl2021")
    problems = list(problems_over_draws(cell, draws=3, num_devices=5, model_bits=1e6))
    first = problem_of_cell(load_cell("fedl2021", num_devices=5), np.ones(5), model_bits=1e6)
    second = problem_of_cell(load_cell("fedl2021", num_devices=5, seed=1), np.ones(5), model_bits=1e6)
    assert {(one.energy_weight, one.delay_weight) for one in problems} == {
        (first.energy_weight, first.delay_weight)
    }
    assert second.delay_weight != first.delay_weight  # each draw by itself would have its own


def test_a_recording_gives_its_rounds_and_may_come_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gains = np.random.default_rng(0).uniform(0.1, 1.0, (3, 4, 2))
    np.save("gains.npy", gains)
    config = load_cell_config("paper", {"num_blocks": 2, "channel": {"kind": "file", "path": "gains.npy"}})
    problems = list(problems_over_draws(config, draws=2, round_index=1))
    assert_allclose([one.channel_gain for one in problems], gains[1:])
    with pytest.raises(ProblemError, match="holds 3 rounds, but round 3 is asked"):
        list(problems_over_draws(config, draws=3, round_index=1))


def test_contributions_are_drawn_with_each_draw_or_given_for_all() -> None:
    own = np.array([1.0, 2.0, 3.0])
    problems = list(problems_over_draws("paper", draws=2, num_devices=3, contribution=own))
    assert_allclose([one.contribution for one in problems], [own, own])
    drawn = list(problems_over_draws("paper", draws=2, num_devices=3, contribution="exponential"))
    assert_allclose(drawn[1].contribution, np.random.default_rng(1).exponential(5.0, 3))
    equal = next(
        problems_over_draws("umi-3.5ghz", draws=1, contribution="equal", mean_contribution=3.0, **GIVEN)
    )
    assert equal.contribution.tolist() == [3.0] * 100
    with pytest.raises(
        ProblemError, match='contribution is not known, got .unifrom.. Did you mean "uniform"'
    ):
        draw_contribution("unifrom", mean=1.0, num_devices=2, seed=0)  # type: ignore[arg-type]


def test_wrong_words_are_refused() -> None:
    for draws in (0, 1.5, True):
        with pytest.raises(ProblemError, match="draws must be a whole number >= 1"):
            compare_over_draws("paper", draws=draws)  # type: ignore[arg-type]
    found = compare_over_draws("paper", ["greedy"], draws=1, num_devices=3)
    with pytest.raises(ProblemError, match="there is no method 'greeedy' here. Did you mean"):
        found.mean("greeedy")


def test_all_methods_are_compared_by_default_and_any_may_be_the_baseline() -> None:
    found = compare_over_draws("paper", draws=1, num_devices=4, baseline="threshold")
    assert found.methods[:2] == ("threshold", "optimal")
    assert len(found.methods) == 11
    assert found.difference("optimal").mean >= 0.0
