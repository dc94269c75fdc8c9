"""A local update against one by hand: a plain module, one device at a time, no stack and no padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from fedwave.errors import ConfigError
from fedwave.learning import LOCAL_RULES, TASKS, build_model, local_update
from fedwave.learning.parameters import num_parameters
from fedwave.learning.rules import RULE, LocalStep, PlainDescent
from tests.learning.stacks import SMALL, Samples, class_samples, padded

SHAPE = (1, 6, 5)
ALPHA, BETA = 0.2, 0.1
State = dict[str, Tensor]


def by_hand(
    module: torch.nn.Module, rule: str, support: Samples, queries: list[Samples]
) -> tuple[State, list[float], float]:
    """Return a device's state dict, gradient norms and first loss; autograd goes through the inner step."""

    def loss(state: State, samples: Samples) -> Tensor:
        outputs = functional_call(module, state, (samples.inputs.double(),))
        return F.cross_entropy(outputs, samples.targets)

    state = {name: value.detach().double() for name, value in module.named_parameters()}
    norms, losses = [], []
    for query in queries:
        leaves = {name: value.clone().requires_grad_() for name, value in state.items()}
        moved = leaves
        if rule not in ("plain", "fedprox"):
            inner = torch.autograd.grad(loss(leaves, support), list(leaves.values()), create_graph=True)
            if rule == "first-order":
                inner = tuple(value.detach() for value in inner)
            moved = {name: leaves[name] - ALPHA * g for name, g in zip(leaves, inner, strict=True)}
        value = loss(moved, query)
        if rule == "exact-query":  # Eq. (3) as it stands, with D'' = D'
            slope = torch.autograd.grad(value, list(moved.values()))
            curved = torch.autograd.grad(loss(leaves, query), list(leaves.values()), create_graph=True)
            along = sum((c * g).sum() for c, g in zip(curved, slope, strict=True))
            product = torch.autograd.grad(along, list(leaves.values()))
            gradient = tuple(g - ALPHA * p for g, p in zip(slope, product, strict=True))
        else:
            gradient = torch.autograd.grad(value, list(leaves.values()))
        if rule == "fedprox":  # mu = 0.01 times the way from the global model
            pairs = zip(gradient, leaves, module.parameters(), strict=True)
            gradient = tuple(g + 0.01 * (state[name] - first.detach()) for g, name, first in pairs)
        state = {name: state[name] - BETA * g for name, g in zip(state, gradient, strict=True)}
        norms.append(float(np.sqrt(sum(float(g.square().sum()) for g in gradient))))
        losses.append(float(value.detach()))
    return state, norms, losses[0]


@pytest.mark.parametrize("kind", ["cnn", "mlp", "softmax"])
@pytest.mark.parametrize("rule_name", LOCAL_RULES)
def test_local_steps_are_those_of_each_device_by_hand(kind: str, rule_name: str) -> None:
    model = build_model(kind, SHAPE, 3, **SMALL[kind])
    parameters = {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    support = class_samples((2, 1, 3), SHAPE, 3, seed=1)
    steps = [class_samples(sizes, SHAPE, 3, seed=2 + i) for i, sizes in enumerate([(4, 7, 1), (2, 2, 5)])]
    rule = RULE.call(LOCAL_RULES[rule_name], {}, inner_lr=ALPHA, meta_lr=BETA)
    got = local_update(
        model,
        TASKS["classification"](),
        rule,
        parameters,
        None if rule.pools_samples else padded(support, torch.float64),
        [padded(query, torch.float64) for query in steps],
    )
    assert got.gradient_norms.shape == (3, 2)
    # The central difference is off by about eps^(1/3) of the product, and by a kink now and then.
    tolerance = 1e-4 if rule_name == "hessian-free" else 1e-9
    for device in range(3):
        state, norms, first_loss = by_hand(
            model.to_module(parameters), rule_name, support[device], [query[device] for query in steps]
        )
        own = model.to_state_dict({name: value[device] for name, value in got.parameters.items()})
        for name, value in state.items():
            torch.testing.assert_close(own[name], value, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(got.gradient_norms[device].numpy(), norms, rtol=tolerance)
        assert float(got.loss[device]) == pytest.approx(first_loss, rel=1e-10)


def test_a_support_batch_is_asked_for_and_refused_as_the_rule_says() -> None:
    model = build_model("softmax", (4,), 3)
    parameters = model.initial_parameters(np.random.default_rng(0))
    batch = padded(class_samples((2, 3), (4,), 3, seed=0))
    task = TASKS["classification"]()
    for name, support, message in (
        ("exact", None, "MetaDescent takes a support batch, got none. Build the batches"),
        ("plain", batch, "PlainDescent takes no support batch, as it pools all samples, got one. Build"),
    ):
        rule = RULE.call(LOCAL_RULES[name], {}, inner_lr=ALPHA, meta_lr=BETA)
        with pytest.raises(ConfigError, match=message) as caught:
            local_update(model, task, rule, parameters, support, [batch])
        assert "\n" not in str(caught.value)
        with pytest.raises(ConfigError, match="at least one local step, got none"):
            local_update(model, task, rule, parameters, support, [])


def test_the_global_model_is_left_alone() -> None:
    model = build_model("mlp", (4,), 3, hidden=(5,))
    parameters = model.initial_parameters(np.random.default_rng(0))
    before = {name: value.clone() for name, value in parameters.items()}
    batch = padded(class_samples((2, 3), (4,), 3, seed=0))
    for name in LOCAL_RULES:
        rule = RULE.call(LOCAL_RULES[name], {}, inner_lr=ALPHA, meta_lr=BETA)
        support = None if rule.pools_samples else batch
        got = local_update(model, TASKS["classification"](), rule, parameters, support, [batch] * 2)
        assert list(got.parameters) == list(parameters)
        assert num_parameters(got.parameters) == 2 * num_parameters(parameters)
        assert not any(value.requires_grad for value in got.parameters.values())
    assert all(torch.equal(parameters[name], value) for name, value in before.items())


class Quadratic:
    """F_i(w) = a_i / 2 |w - m_i|^2, as a model whose output is w and a task that knows a_i and m_i."""

    curvature = torch.tensor([0.5, 2.0, 6.0], dtype=torch.float64)
    minimum = torch.tensor([[1.0, 0.0], [0.0, -3.0], [2.0, 2.0]], dtype=torch.float64)

    def outputs(self, parameters: State, inputs: Tensor) -> Tensor:
        del inputs
        return parameters["w"]

    def loss(self, outputs: Tensor, batch: object) -> Tensor:
        del batch
        return 0.5 * self.curvature * (outputs - self.minimum).square().sum(1)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize("inner_lr", [None, 0.2])
def test_the_secant_of_quadratics_is_their_curvature(num_steps: int, inner_lr: float | None) -> None:
    quadratic, w = Quadratic(), torch.tensor([4.0, 1.0], dtype=torch.float64)
    name = "plain" if inner_lr is None else "exact"
    rule = RULE.call(LOCAL_RULES[name], {}, inner_lr=inner_lr, meta_lr=BETA)
    batch = padded(class_samples((2, 2, 2), SHAPE, 3, seed=1), torch.float64)
    support = None if rule.pools_samples else batch
    got = local_update(
        quadratic, quadratic, rule, {"w": w}, support, [batch] * num_steps, measures_secant=True
    )  # type: ignore[arg-type]
    # After the inner step the loss is again a quadratic, with curvature a (1 - alpha a)^2.
    curvature = (quadratic.curvature * (1 - (inner_lr or 0.0) * quadratic.curvature) ** 2).numpy()
    distance = torch.linalg.vector_norm(w - quadratic.minimum, dim=1).numpy()
    shrunk = (1 - BETA * curvature) ** num_steps
    assert got.secant is not None
    np.testing.assert_allclose(got.secant.smoothness.numpy(), curvature, rtol=1e-9)
    np.testing.assert_allclose(
        got.secant.loss_lipschitz.numpy(), 0.5 * curvature * distance * (1 + shrunk), rtol=1e-9
    )


@pytest.mark.parametrize("rule_name", [name for name in LOCAL_RULES if name != "fedprox"])
def test_the_secant_is_on_the_first_batch_of_each_device_by_hand(rule_name: str) -> None:
    model = build_model("mlp", SHAPE, 3, **SMALL["mlp"])
    parameters = {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    support = class_samples((2, 1, 3), SHAPE, 3, seed=1)
    steps = [class_samples(sizes, SHAPE, 3, seed=2 + i) for i, sizes in enumerate([(4, 7, 1), (2, 2, 5)])]
    rule = RULE.call(LOCAL_RULES[rule_name], {}, inner_lr=ALPHA, meta_lr=BETA)
    given = None if rule.pools_samples else padded(support, torch.float64)
    queries = [padded(query, torch.float64) for query in steps]
    task = TASKS["classification"]()
    got = local_update(model, task, rule, parameters, given, queries, measures_secant=True)
    without = local_update(model, task, rule, parameters, given, queries)
    assert without.secant is None
    assert got.secant is not None
    assert all(torch.equal(got.parameters[name], value) for name, value in without.parameters.items())
    tolerance = 1e-2 if rule_name == "hessian-free" else 1e-7
    for device in range(3):
        own = {name: value[device] for name, value in got.parameters.items()}

        def step_from(here: State, at: int = device) -> tuple[State, State, float]:
            """Return the state dict of a model, its gradient on the first batch, and its loss there."""
            module = model.to_module(here)
            after, _, loss = by_hand(module, rule_name, support[at], [steps[0][at]])
            before = {name: value.detach().double() for name, value in module.named_parameters()}
            return before, {name: (before[name] - after[name]) / BETA for name in before}, loss

        (w, g, f), (w_i, g_i, f_i) = step_from(parameters), step_from(own)
        gone = np.sqrt(sum(float((w_i[name] - w[name]).square().sum()) for name in w))
        change = np.sqrt(sum(float((g_i[name] - g[name]).square().sum()) for name in w))
        assert float(got.secant.smoothness[device]) == pytest.approx(change / gone, rel=tolerance)
        assert float(got.secant.loss_lipschitz[device]) == pytest.approx(abs(f_i - f) / gone, rel=tolerance)


def test_a_model_that_stays_has_a_secant_of_zero() -> None:
    quadratic = Quadratic()
    rule = RULE.call(LOCAL_RULES["plain"], {}, meta_lr=BETA)
    batch = padded(class_samples((2, 2, 2), SHAPE, 3, seed=1), torch.float64)
    at_rest = {"w": quadratic.minimum[1]}
    got = local_update(quadratic, quadratic, rule, at_rest, None, [batch], measures_secant=True)  # type: ignore[arg-type]
    assert got.secant is not None
    assert got.secant.smoothness[1] == 0.0
    assert got.secant.loss_lipschitz[1] == 0.0
    assert got.secant.smoothness[0] > 0.0


def test_a_rule_that_tells_no_gradient_cannot_be_measured() -> None:
    class Silent(PlainDescent):
        def step(self, *given: Any, **named: Any) -> LocalStep:
            return replace(super().step(*given, **named), gradient=None)

    model = build_model("softmax", SHAPE, 3)
    parameters = model.initial_parameters(np.random.default_rng(0))
    batch = padded(class_samples((2, 2), SHAPE, 3, seed=1), torch.float32)
    with pytest.raises(ConfigError) as caught:
        local_update(
            model, TASKS["classification"](), Silent(BETA), parameters, None, [batch], measures_secant=True
        )
    assert str(caught.value) == (
        "measuring smoothness needs each step's gradient, got none from Silent. Return "
        "LocalStep(..., gradient=...)."
    )
