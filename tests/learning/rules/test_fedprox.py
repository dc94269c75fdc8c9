"""FedProx against its closed form on a quadratic; without a pull it is FedAvg to the bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from fedwave.errors import ConfigError
from fedwave.learning import TASKS, build_model, local_update
from fedwave.learning.rules import FedProx, PlainDescent
from tests.learning.rules.test_rules import CURVATURE, GLOBAL, SLOPE, START, quadratic
from tests.learning.stacks import class_samples, padded


@pytest.mark.parametrize("mu", [0.0, 0.3, 5.0])
def test_many_steps_end_at_the_minimum_that_the_pull_allows(mu: float) -> None:
    """h is least where (A + mu I) w = b + mu w^k."""
    rule = FedProx(meta_lr=0.1, mu=mu)
    start = {"w": torch.tensor(GLOBAL)}
    parameters = {"w": torch.tensor(START)}
    for _ in range(500):
        outcome = rule.step(quadratic, parameters, None, "query", start=start)
        parameters = outcome.parameters
    expected = np.linalg.solve(CURVATURE["query"] + mu * np.eye(2), SLOPE["query"] + mu * GLOBAL[0])
    assert_allclose(parameters["w"].numpy(), np.tile(expected, (3, 1)), rtol=1e-9)
    assert_allclose(outcome.gradient_norm.numpy(), 0.0, atol=1e-9)
    assert torch.equal(start["w"], torch.tensor(GLOBAL))


def test_without_a_pull_local_updates_are_those_of_fedavg_to_the_bit() -> None:
    model = build_model("cnn", (1, 6, 6), 3, channels=(8, 8))
    parameters = model.initial_parameters(np.random.default_rng(0))
    queries = [padded(class_samples((6, 7), (1, 6, 6), 3, seed=seed)) for seed in range(3)]
    task = TASKS["classification"]()
    plain = local_update(model, task, PlainDescent(0.3), parameters, None, queries)
    prox = local_update(model, task, FedProx(0.3, mu=0.0), parameters, None, queries)
    for name, value in plain.parameters.items():
        assert torch.equal(prox.parameters[name], value)
    assert torch.equal(prox.gradient_norms, plain.gradient_norms)
    assert torch.equal(prox.loss, plain.loss)


def test_the_first_step_of_a_round_feels_no_pull() -> None:
    model = build_model("softmax", (4,), 3)
    parameters = model.initial_parameters(np.random.default_rng(0))
    query = padded(class_samples((5, 2), (4,), 3, seed=0))
    once, twice = (
        [
            local_update(model, TASKS["classification"](), rule, parameters, None, [query] * steps)
            for rule in (PlainDescent(0.5), FedProx(0.5, mu=2.0))
        ]
        for steps in (1, 2)
    )
    assert torch.equal(once[0].parameters["linear1.weight"], once[1].parameters["linear1.weight"])
    far, near = (
        float((one.parameters["linear1.weight"] - parameters["linear1.weight"]).norm()) for one in twice
    )
    assert near < 0.9 * far


@pytest.mark.parametrize("mu", [-0.1, float("nan"), float("inf")])
def test_a_pull_that_makes_no_sense_is_refused(mu: float) -> None:
    with pytest.raises(ConfigError, match="mu must be >= 0, got"):
        FedProx(0.1, mu=mu)
