"""The mean against numpy in float64, momentum against arithmetic by hand and torch's own optimiser."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from fedwave.errors import ConfigError, ModelError
from fedwave.learning import SERVER_STEPS, Parameters, average
from fedwave.learning.server_steps import ServerClipNorm, ServerMean, ServerMomentum, ServerStep
from fedwave.testing import check_server_step


def one(*values: float) -> Parameters:
    return {"w": torch.tensor(values)}


def random_models(count: int, *, seed: int = 0) -> list[Parameters]:
    rng = np.random.default_rng(seed)
    return [
        {
            "b": torch.tensor(rng.standard_normal(3), dtype=torch.float32),
            "a": torch.tensor(rng.standard_normal((2, 2)), dtype=torch.float32),
        }
        for _ in range(count)
    ]


def test_the_mean_is_summed_in_float64_and_rounded_once() -> None:
    columns = np.array(
        [[1e8, 1.0], [1.0, 1.0], [-1e8, 2.0**-24], [1.0, -1.0], [1.0, 1 / 3]], dtype=np.float32
    )
    got = average({"w": torch.from_numpy(row)} for row in columns)["w"].numpy()
    expected = (columns.astype(np.float64).sum(0) / 5).astype(np.float32)
    assert got.tolist() == expected.tolist()
    narrow = np.zeros(2, dtype=np.float32)
    for row in columns:
        narrow = narrow + row
    assert (narrow / np.float32(5)).tolist() != expected.tolist()  # a sum in float32 would be seen


def test_the_mean_of_random_models_is_numpys() -> None:
    models = random_models(7)
    got = average(models)
    assert list(got) == ["b", "a"]
    for name, value in got.items():
        wide = np.stack([model[name].numpy() for model in models]).astype(np.float64)
        np.testing.assert_array_equal(value.numpy(), (wide.sum(0) / 7).astype(np.float32))


def test_models_are_summed_in_the_order_given() -> None:
    huge = 2.0**60  # float64 keeps 53 bits: a one next to it is lost
    assert average([one(huge), one(1.0), one(-huge), one(1.0)])["w"].tolist() == [0.25]
    assert average([one(1.0), one(1.0), one(huge), one(-huge)])["w"].tolist() == [0.0]
    assert average([one(huge), one(-huge), one(1.0), one(1.0)])["w"].tolist() == [0.5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mean_has_the_type_of_the_models(dtype: torch.dtype) -> None:
    assert average([{"w": torch.ones(2, dtype=dtype)}] * 3)["w"].dtype == dtype


def test_the_mean_of_no_models_is_refused() -> None:
    with pytest.raises(ModelError, match="needs at least one model, got none. Keep the global model"):
        average([])


def test_the_paper_steps_to_the_mean_and_keeps_no_state() -> None:
    models = random_models(4)
    start = random_models(1, seed=9)[0]
    step = ServerMean()
    state = step.initial_state(start)
    after, state = step.step(start, iter(models), None, state)
    assert state == {}
    assert all(torch.equal(after[name], value) for name, value in average(models).items())


def test_three_rounds_with_momentum_by_hand() -> None:
    step = ServerMomentum(momentum=0.5, server_lr=0.5)
    theta = one(1.0)
    state = step.initial_state(theta)
    assert state["w"].tolist() == [0.0]
    # v = 0 / 2 + (1 - 1/2) = 1/2; theta = 1 - 1/4
    theta, state = step.step(theta, iter([one(0.0), one(1.0)]), None, state)
    assert (theta["w"].tolist(), state["w"].tolist()) == ([0.75], [0.5])
    # v = 1/4 + (3/4 - 1/4) = 3/4; theta = 3/4 - 3/8
    theta, state = step.step(theta, iter([one(0.25)]), None, state)
    assert (theta["w"].tolist(), state["w"].tolist()) == ([0.375], [0.75])
    # v = 3/8 + (3/8 - 11/8) = -5/8; theta = 3/8 + 5/16
    theta, state = step.step(theta, iter([one(1.0), one(1.75)]), None, state)
    assert (theta["w"].tolist(), state["w"].tolist()) == ([0.6875], [-0.625])


def test_momentum_descends_as_torchs_sgd_does_with_the_distance_to_the_mean_as_gradient() -> None:
    step = ServerMomentum(momentum=0.9, server_lr=0.7)
    theta = random_models(1, seed=5)[0]
    leaves = {name: value.clone().requires_grad_() for name, value in theta.items()}
    optimiser = torch.optim.SGD(leaves.values(), lr=0.7, momentum=0.9)
    state = step.initial_state(theta)
    for round_index in range(6):
        models = random_models(3, seed=10 + round_index)
        for name, leaf in leaves.items():
            leaf.grad = leaf.detach() - torch.stack([model[name] for model in models]).mean(0)
        optimiser.step()
        theta, state = step.step(theta, models, None, state)
        for name, leaf in leaves.items():
            torch.testing.assert_close(theta[name], leaf.detach(), rtol=1e-5, atol=1e-6)


def test_without_momentum_at_a_rate_of_one_the_step_is_the_mean() -> None:
    step = ServerMomentum(momentum=0.0, server_lr=1.0)
    theta = random_models(1, seed=5)[0]
    state = step.initial_state(theta)
    for round_index in range(3):
        models = random_models(3, seed=round_index)
        theta, state = step.step(theta, models, None, state)
        for name, value in average(models).items():
            torch.testing.assert_close(theta[name], value, rtol=0, atol=1e-6)


def test_momentum_starts_at_nine_tenths_and_a_rate_of_one() -> None:
    assert SERVER_STEPS["momentum"]() == ServerMomentum(momentum=0.9, server_lr=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1, got 1.0"),
        ({"momentum": -0.1}, "momentum must be at least 0 and below 1, got -0.1"),
        ({"momentum": float("nan")}, "momentum must be at least 0 and below 1, got nan"),
        ({"server_lr": 0.0}, "server_lr must be positive and finite, got 0.0"),
        ({"server_lr": float("inf")}, "server_lr must be positive and finite, got inf"),
    ],
)
def test_a_momentum_that_cannot_converge_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ServerMomentum(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", SERVER_STEPS)
def test_every_server_step_keeps_the_contract_and_more(name: str) -> None:
    check_server_step(name)
    step = SERVER_STEPS[name]()
    theta = random_models(1, seed=5)[0]
    # Devices that all send the global model back leave it where it is.
    same, _ = step.step(theta, [theta, theta], None, step.initial_state(theta))
    assert all(torch.equal(same[key], theta[key]) for key in theta)
    with pytest.raises(ModelError, match="at least one model"):
        step.step(theta, iter([]), None, step.initial_state(theta))
    assert pickle.loads(pickle.dumps(step)) == step  # noqa: S301 - our own bytes


@pytest.mark.parametrize("step", [ServerMean(), ServerMomentum(), ServerClipNorm(max_norm=1.0)])
def test_received_models_are_let_go_one_after_the_other(step: ServerStep) -> None:
    alive: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
    most = 0

    def arriving() -> Iterator[Parameters]:
        nonlocal most
        for _ in range(10):
            model = {"w": torch.ones(3)}
            alive.add(model["w"])
            most = max(most, len(alive))
            yield model
            del model

    theta = {"w": torch.zeros(3)}
    step.step(theta, arriving(), None, step.initial_state(theta))
    assert most <= 2  # the one being added and the next


def test_weights_make_the_weighted_mean_on_any_scale() -> None:
    models = [{"w": torch.tensor([1.0, 10.0])}, {"w": torch.tensor([5.0, 30.0])}]
    for weights in ([1.0, 3.0], [25.0, 75.0]):
        assert average(models, np.array(weights))["w"].tolist() == [4.0, 25.0]
    assert average(iter(models), np.array([2.0, 2.0]))["w"].tolist() == average(models)["w"].tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean", 31 / 8),  # (1 + 2 + 2 * 4 + 4 * 5) / 8
        ("momentum", 31 / 8),
        ("clip-norm", 21 / 8),  # 4 and 5 become the median length, 3
        ("trimmed-mean", 10 / 3),  # (2 + 2 * 4) / 3
        ("median", 4.5),  # half of the weight is at most 4, half at least 5
    ],
)
def test_every_server_step_heeds_the_weights(name: str, expected: float) -> None:
    step, theta = SERVER_STEPS[name](), one(0.0)
    models = [one(5.0), one(1.0), one(4.0), one(2.0)]
    after, _ = step.step(theta, iter(models), np.array([4.0, 1.0, 2.0, 1.0]), step.initial_state(theta))
    assert after["w"].tolist() == pytest.approx([expected], rel=1e-7)


@pytest.mark.parametrize("name", SERVER_STEPS)
def test_a_weight_too_many_is_refused_by_every_server_step(name: str) -> None:
    step, theta = SERVER_STEPS[name](), one(0.0)
    with pytest.raises(ModelError, match="A server step of 3 models needs as many weights, got 4"):
        step.step(theta, [one(1.0)] * 3, np.ones(4), step.initial_state(theta))
