"""Local rules against meta_gradient, closed forms on a quadratic, and the contract of all of them."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedwave.errors import ConfigError
from fedwave.learning import LOCAL_RULES, Parameters, meta_gradient
from fedwave.learning.meta_gradient import GRADIENT_KINDS
from fedwave.learning.rules import RULE, FedProx, MetaDescent, PlainDescent
from fedwave.testing import check_rule

ALPHA, BETA = 0.1, 0.3
CURVATURE = {"support": np.array([[2.0, 0.5], [0.5, 1.0]]), "query": np.array([[1.0, -0.25], [-0.25, 3.0]])}
SLOPE = {"support": np.array([1.0, -2.0]), "query": np.array([0.5, 4.0])}
START = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])  # three devices
GLOBAL = np.array([[0.5, -1.0]] * 3)  # where all of them began the round


def quadratic(parameters: Parameters, part: Any) -> Tensor:
    """w'Aw/2 - b'w for every device of the stack, with the A and b of the named batch."""
    w = parameters["w"]
    matrix = torch.from_numpy(CURVATURE[part]).to(w.dtype)
    vector = torch.from_numpy(SLOPE[part]).to(w.dtype)
    return 0.5 * torch.einsum("di,ij,dj->d", w, matrix, w) - w @ vector


def rule_named(name: str) -> Any:
    return RULE.call(LOCAL_RULES[name], {}, inner_lr=ALPHA, meta_lr=BETA)


def closed_form(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return each device's gradient and the point where its loss is read."""
    if name in ("plain", "fedprox"):
        pull = 0.01 * (START - GLOBAL) if name == "fedprox" else 0.0
        return START @ CURVATURE["query"] - SLOPE["query"] + pull, START
    point = START - ALPHA * (START @ CURVATURE["support"] - SLOPE["support"])
    outer = point @ CURVATURE["query"] - SLOPE["query"]
    if name == "first-order":
        return outer, point
    hessian = CURVATURE["query" if name == "exact-query" else "support"]  # D'' of Eq. (3)
    return outer - ALPHA * outer @ hessian, point


@pytest.mark.parametrize("name", LOCAL_RULES)
def test_a_step_on_a_quadratic_is_the_closed_form(name: str) -> None:
    rule = rule_named(name)
    got = rule.step(
        quadratic,
        {"w": torch.tensor(START)},
        None if rule.pools_samples else "support",
        "query",
        start={"w": torch.tensor(GLOBAL)},
    )
    gradient, point = closed_form(name)
    # The central difference is off by some eps^(1/3) = 6e-6 of the product.
    tolerance = 1e-5 if name == "hessian-free" else 1e-12
    expected = START - BETA * gradient
    np.testing.assert_allclose(got.parameters["w"].numpy(), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.gradient_norm.numpy(), np.linalg.norm(gradient, axis=1), rtol=tolerance)
    loss = 0.5 * np.einsum("di,ij,dj->d", point, CURVATURE["query"], point) - point @ SLOPE["query"]
    if name == "fedprox":
        loss += 0.005 * ((START - GLOBAL) ** 2).sum(1)
    np.testing.assert_allclose(got.loss.numpy(), loss, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", GRADIENT_KINDS)
def test_a_meta_step_descends_the_meta_gradient_bit_by_bit(method: str) -> None:
    parameters = {"w": torch.tensor(START, dtype=torch.float32)}
    got = rule_named(method).step(quadratic, parameters, "support", "query", start=parameters)
    gradient = meta_gradient(quadratic, parameters, "support", "query", inner_lr=ALPHA, method=method)["w"]
    assert torch.equal(got.parameters["w"], torch.sub(parameters["w"], gradient, alpha=BETA))


@pytest.mark.parametrize("method", GRADIENT_KINDS)
def test_without_an_inner_rate_a_meta_step_is_a_plain_step(method: str) -> None:
    parameters = {"w": torch.tensor(START, dtype=torch.float32)}
    meta = MetaDescent(0.0, BETA, method).step(quadratic, parameters, "support", "query", start=parameters)
    plain = PlainDescent(BETA).step(quadratic, parameters, None, "query", start=parameters)
    assert torch.equal(meta.parameters["w"], plain.parameters["w"])
    assert torch.equal(meta.gradient_norm, plain.gradient_norm)
    assert torch.equal(meta.loss, plain.loss)


def test_the_rules_have_the_names_of_the_meta_gradients_and_more() -> None:
    assert set(LOCAL_RULES) == {*GRADIENT_KINDS, "exact-query", "plain", "fedprox"}
    for method in GRADIENT_KINDS:
        assert rule_named(method) == MetaDescent(inner_lr=ALPHA, meta_lr=BETA, method=method)
    assert rule_named("plain") == PlainDescent(meta_lr=BETA)
    assert RULE.call(FedProx, {"mu": 0.5}, inner_lr=ALPHA, meta_lr=BETA) == FedProx(meta_lr=BETA, mu=0.5)


@pytest.mark.parametrize("name", LOCAL_RULES)
def test_every_rule_keeps_the_contract_is_frozen_and_travels(name: str) -> None:
    check_rule(name)
    rule = rule_named(name)
    assert rule.pools_samples is (name in ("plain", "fedprox"))
    again = pickle.loads(pickle.dumps(rule))  # noqa: S301 - our own bytes
    assert again == rule
    assert again.pools_samples is rule.pools_samples
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.meta_lr = 1.0


def test_parameters_that_want_gradients_give_a_step_without_a_graph() -> None:
    parameters = {"w": torch.tensor(START, dtype=torch.float32, requires_grad=True)}
    for name in LOCAL_RULES:
        rule = rule_named(name)
        support = None if rule.pools_samples else "support"
        got = rule.step(quadratic, parameters, support, "query", start=parameters)
        assert not got.parameters["w"].requires_grad


def test_an_unknown_method_is_refused_when_the_rule_is_made() -> None:
    with pytest.raises(ConfigError, match='got "exat". Did you mean "exact"'):
        MetaDescent(ALPHA, BETA, "exat")
