"""A local update against one by hand: a plain module, one device at a time, no stack and no padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from fedwave.errors import ConfigError
from fedwave.learning import LOCAL_RULES, TASKS, build_model, local_update
from fedwave.learning.parameters import num_parameters
from fedwave.learning.rules import RULE
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
