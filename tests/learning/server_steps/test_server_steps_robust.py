"""Steps that withstand liars: against numpy and scipy, and within the bounds that they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from fedwave.errors import ConfigError
from fedwave.learning import SERVER_STEPS, Parameters, average
from fedwave.learning.server_steps import ServerClipNorm, ServerMedian, ServerStep, ServerTrimmedMean
from fedwave.learning.server_steps import coordinates as module
from fedwave.testing import check_server_step

HUGE = 1e6  # of a liar's change, where honest ones are about 1
SHAPES = {"b": (3,), "a": (2, 2), "scalar": (), "none": (0,)}


def models_of(rng: np.random.Generator, count: int, scale: float = 1.0) -> list[Parameters]:
    draw = rng.standard_normal
    return [
        {name: torch.tensor(scale * draw(shape), dtype=torch.float32) for name, shape in SHAPES.items()}
        for _ in range(count)
    ]


def after_step(
    step: ServerStep, theta: Parameters, models: list[Parameters], weights: Any = None
) -> Parameters:
    return step.step(theta, iter(models), weights, step.initial_state(theta))[0]


def stacked(models: list[Parameters], name: str) -> np.ndarray:
    return np.stack([model[name].numpy() for model in models]).astype(np.float64)


def distance(one: Parameters, other: Parameters) -> float:
    squares = [np.sum((stacked([one], name) - stacked([other], name)) ** 2) for name in one]
    return float(np.sqrt(np.sum(squares)))


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("at_once", [1, 10, 2**20])  # places that are sorted together
def test_the_median_is_numpys(count: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SORTED_AT_ONCE", at_once)
    theta, *models = models_of(np.random.default_rng(count), count + 1)
    for name, value in after_step(ServerMedian(), theta, models).items():
        expected = np.median(stacked(models, name), axis=0).astype(np.float32)
        np.testing.assert_array_equal(value.numpy(), expected)


@pytest.mark.parametrize(("count", "num_trimmed"), [(3, 1), (4, 1), (9, 1), (5, 2), (9, 3)])
def test_the_trimmed_mean_is_scipys(count: int, num_trimmed: int) -> None:
    theta, *models = models_of(np.random.default_rng(count), count + 1)
    after = after_step(ServerTrimmedMean(num_trimmed), theta, models)
    for name, value in after.items():
        share = (num_trimmed + 0.5) / count  # scipy rounds down
        expected = trim_mean(stacked(models, name), share, axis=0)
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-6, atol=1e-7)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=7), st.sampled_from([0.1, 1.0, 7.3]))
def test_a_whole_weight_counts_as_that_many_copies(copies: list[int], scale: float) -> None:
    theta, *models = models_of(np.random.default_rng(sum(copies)), len(copies) + 1)
    repeated = [model for model, times in zip(models, copies, strict=True) for _ in range(times)]
    weighted = after_step(ServerMedian(), theta, models, scale * np.array(copies, dtype=float))
    for name, value in after_step(ServerMedian(), theta, repeated).items():
        assert torch.equal(weighted[name], value)


@pytest.mark.parametrize("count", range(1, 13))
def test_equal_weights_make_equal_halves_however_their_sums_are_rounded(count: int) -> None:
    theta, *models = models_of(np.random.default_rng(count), count + 1)
    weighted = after_step(ServerMedian(), theta, models, np.full(count, 0.1))  # 0.1 + 0.1 + 0.1 > 0.3
    plain = after_step(ServerMedian(), theta, models)
    assert all(torch.equal(weighted[name], plain[name]) for name in theta)


def test_the_trimmed_mean_leaves_out_by_count_and_weighs_the_rest() -> None:
    theta = {"w": torch.zeros(2)}
    models = [{"w": torch.tensor(values)} for values in ([9.0, 1.0], [1.0, 9.0], [2.0, 3.0], [4.0, 2.0])]
    after = after_step(ServerTrimmedMean(1), theta, models, np.array([100.0, 100.0, 1.0, 3.0]))
    assert after["w"].tolist() == [3.5, 2.25]  # (2 + 3 * 4) / 4 and (3 + 3 * 2) / 4


@pytest.mark.parametrize("count", [1, 2, 4])
def test_of_too_few_models_nothing_is_left_and_the_global_one_stays(count: int) -> None:
    theta, *models = models_of(np.random.default_rng(0), count + 1)
    after = after_step(ServerTrimmedMean(2), theta, models)
    assert all(torch.equal(after[name], value) for name, value in theta.items())


def test_changes_are_clipped_by_hand() -> None:
    theta = {"a": torch.tensor([1.0]), "b": torch.tensor([0.0])}
    near = {"a": torch.tensor([1.0]), "b": torch.tensor([2.0])}  # 2 away
    far = {"a": torch.tensor([7.0]), "b": torch.tensor([8.0])}  # 10 away, to (6, 8)
    away = {"a": torch.tensor([1.0]), "b": torch.tensor([-4.0])}  # 4 away
    after = after_step(ServerClipNorm(max_norm=5.0), theta, [near, far, away])
    # (0, 2), (3, 4), (0, -4)
    assert (after["a"].tolist(), after["b"].tolist()) == ([2.0], pytest.approx([2 / 3]))
    after = after_step(ServerClipNorm(), theta, [near, far, away])  # the median is 4
    assert after["a"].tolist() == pytest.approx([1.0 + 2.4 / 3])
    assert after["b"].tolist() == pytest.approx([(2 + 3.2 - 4) / 3])


@given(st.integers(1, 9), st.booleans())
def test_where_nothing_is_clipped_the_step_is_the_mean_to_the_bit(count: int, is_weighted: bool) -> None:
    rng = np.random.default_rng(count)
    theta, *models = models_of(rng, count + 1)
    weights = rng.uniform(0.1, 9.0, count) if is_weighted else None
    after = after_step(ServerClipNorm(max_norm=1e3), theta, models, weights)
    assert all(torch.equal(after[name], value) for name, value in average(models, weights).items())


@st.composite
def rounds_with_liars(draw: st.DrawFn) -> tuple[Parameters, list[Parameters], list[Parameters], Any]:
    """Return theta, honest models, fewer liars than those, and weights of all or None.

    Liars send a huge change, all to one side or each to its own; the smallest have the honest size.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    num_honest = draw(st.integers(2, 8))
    num_liars = draw(st.integers(1, num_honest - 1))
    (theta,) = models_of(rng, 1)
    honest, lies = models_of(rng, num_honest), models_of(rng, num_liars, draw(st.sampled_from([1.0, HUGE])))
    if draw(st.booleans()):
        lies = lies[:1] * num_liars
    weights = rng.uniform(0.1, 9.0, num_honest + num_liars) if draw(st.booleans()) else None
    return theta, honest, lies, weights


def require_between(after: Parameters, honest: list[Parameters]) -> None:
    for name, value in after.items():
        values = np.stack([model[name].numpy() for model in honest])
        assert (values.min(0) <= value.numpy()).all(), name
        assert (value.numpy() <= values.max(0)).all(), name


@given(rounds_with_liars())
def test_with_fewer_than_half_liars_every_number_of_the_median_lies_between_honest_ones(case: Any) -> None:
    theta, honest, lies, weights = case
    if weights is not None and weights[: len(honest)].sum() <= weights.sum() / 2:
        weights[: len(honest)] *= weights.sum() / weights[: len(honest)].sum()  # liars have less than half
    require_between(after_step(ServerMedian(), theta, honest + lies, weights), honest)
    turned = None if weights is None else np.roll(weights, len(lies))
    require_between(after_step(ServerMedian(), theta, lies + honest, turned), honest)


@given(rounds_with_liars())
def test_with_at_most_b_liars_every_number_of_the_trimmed_mean_lies_between_honest_ones(case: Any) -> None:
    theta, honest, lies, weights = case
    step = ServerTrimmedMean(len(lies))
    require_between(after_step(step, theta, honest + lies, weights), honest)
    # Where the air has lost so many honest uploads that liars might be in the majority, nothing moves.
    few = after_step(step, theta, honest[: len(lies)] + lies, None)
    assert distance(few, theta) == 0.0


@given(rounds_with_liars(), st.sampled_from([0.01, 1.0, 30.0]))
def test_a_clipped_round_moves_the_model_by_max_norm_at_most(case: Any, max_norm: float) -> None:
    theta, honest, lies, weights = case
    after = after_step(ServerClipNorm(max_norm=max_norm), theta, honest + lies, weights)
    assert distance(after, theta) <= max_norm + 1e-6  # float32 rounds numbers of about 1


@given(rounds_with_liars())
def test_clipped_at_the_median_a_round_moves_it_no_further_than_the_longest_honest_change(case: Any) -> None:
    theta, honest, lies, weights = case
    after = after_step(ServerClipNorm(), theta, honest + lies, weights)
    assert distance(after, theta) <= max(distance(model, theta) for model in honest) + 1e-6


def test_one_liar_moves_the_mean_as_far_as_it_likes() -> None:
    theta, *honest = models_of(np.random.default_rng(1), 5)
    (lie,) = models_of(np.random.default_rng(2), 1, HUGE)
    moved = {
        name: distance(after_step(make(), theta, [*honest, lie]), theta)
        for name, make in SERVER_STEPS.items()
    }
    longest = max(distance(model, theta) for model in honest)
    assert min(moved["mean"], moved["momentum"]) > HUGE / 10
    assert max(moved[name] for name in ("clip-norm", "trimmed-mean", "median")) <= longest


def test_the_order_of_arrival_does_not_move_median_and_trimmed_mean() -> None:
    theta, *models = models_of(np.random.default_rng(3), 8)
    for step in (ServerMedian(), ServerTrimmedMean(2)):
        one, other = (after_step(step, theta, order) for order in (models, models[::-1]))
        assert all(torch.equal(one[name], other[name]) for name in theta)


def test_the_numbers_of_threads_do_not_move_a_clipped_model() -> None:
    rng = torch.Generator().manual_seed(0)
    theta, *models = ({"w": torch.randn(300_001, generator=rng)} for _ in range(4))
    threads, after = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            after.append([after_step(make(), theta, models)["w"] for make in SERVER_STEPS.values()])
    finally:
        torch.set_num_threads(threads)
    for other in after[1:]:
        assert all(torch.equal(one, two) for one, two in zip(after[0], other, strict=True))


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (
            ServerClipNorm,
            {"max_norm": 0.0},
            'max_norm must be positive and finite, or "median", got 0.0. Look',
        ),
        (ServerClipNorm, {"max_norm": float("inf")}, "max_norm must be positive and finite"),
        (ServerClipNorm, {"max_norm": float("nan")}, "max_norm must be positive and finite"),
        (ServerClipNorm, {"max_norm": "mean"}, "max_norm must be positive .*, got 'mean'"),
        (ServerTrimmedMean, {"num_trimmed": 0}, "num_trimmed must be a whole number >= 1, got 0"),
        (ServerTrimmedMean, {"num_trimmed": 0.1}, "num_trimmed must be a whole number >= 1, got 0.1"),
        (
            ServerTrimmedMean,
            {"num_trimmed": 2, "max_models": 4},
            "num_trimmed = 2 needs 5 uploads in a round, got at most 4. Trim fewer models, or let more",
        ),
    ],
)
def test_options_without_a_meaning_are_refused(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make(**options)
    assert "\n" not in str(caught.value)


def test_options_with_a_meaning_keep_the_contract() -> None:
    check_server_step("clip-norm", max_norm=0.5)
    check_server_step("clip-norm", max_norm="median")
    check_server_step("trimmed-mean", num_trimmed=2)
    assert ServerTrimmedMean(2, max_models=5).num_trimmed == 2


def test_only_the_mean_and_momentum_are_content_with_the_mean() -> None:
    content = [name for name, make in SERVER_STEPS.items() if not make().needs_each_model]
    assert content == ["mean", "momentum"]
