"""The stacked models against the plain torch modules, to the second derivative."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedwave.errors import ModelError
from fedwave.learning import build_model
from fedwave.learning.models import UserModel
from fedwave.learning.parameters import num_parameters


def small_user_net(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(int(np.prod(input_shape)), 7),
        nn.Tanh(),
        nn.Dropout(0.5),
        nn.Linear(7, num_classes),
    )


class DataDependentNet(nn.Module):
    """vmap cannot map this: its control flow looks at the data."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(int(np.prod(input_shape)), num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = self.linear(inputs.flatten(1))
        return scores * 2 if float(inputs.sum()) > 0 else scores


def batch_norm_net(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(int(np.prod(input_shape))), nn.Linear(4, num_classes))


def not_a_module(num_classes: int) -> int:
    return num_classes


def failing_factory() -> nn.Module:
    raise RuntimeError("no weights\nat hand")


def wrong_outputs(input_shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), 99))


SHAPES = [(1, 28, 28), (3, 9, 8), (2, 7, 5), (1, 8, 8), (1, 2, 3), (1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "kind", ["cnn", "mlp", "softmax", f"{__name__}:small_user_net", f"{__name__}:DataDependentNet"]
)
def test_stacked_logits_gradients_and_hessian_products_equal_the_plain_module(
    kind: str, shape: tuple[int, int, int]
) -> None:
    model = build_model(kind, shape, 4, channels=(3, 4, 5), hidden=(6,))
    generator = torch.Generator().manual_seed(0)
    models = [
        {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(seed)).items()}
        for seed in (1, 2)
    ]
    inputs = torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (2, 3), generator=generator)
    directions = [
        {k: torch.randn(v.shape, generator=generator, dtype=torch.float64) for k, v in own.items()}
        for own in models
    ]

    stacked = {k: torch.stack([own[k] for own in models]).requires_grad_() for k in models[0]}
    scores = model.logits(stacked, inputs)
    losses = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view(2, 3).mean(1)
    gradient = torch.autograd.grad(losses.sum(), list(stacked.values()), create_graph=True)
    direction = [torch.stack([own[k] for own in directions]) for k in models[0]]
    product = torch.autograd.grad(gradient, list(stacked.values()), direction)

    for device, own in enumerate(models):
        module = model.to_module(own).double().eval()
        plain_scores = module(inputs[device])
        torch.testing.assert_close(scores[device], plain_scores, rtol=1e-10, atol=1e-12)
        names = dict(module.named_parameters())
        plain_loss = F.cross_entropy(plain_scores, labels[device])
        plain_gradient = torch.autograd.grad(plain_loss, list(names.values()), create_graph=True)
        turned = model.to_state_dict(directions[device])
        plain_product = torch.autograd.grad(plain_gradient, list(names.values()), [turned[k] for k in names])
        in_layout = model.to_state_dict({k: g[device] for k, g in zip(stacked, gradient, strict=True)})
        product_in_layout = model.to_state_dict({k: p[device] for k, p in zip(stacked, product, strict=True)})
        for name, expected, expected_product in zip(names, plain_gradient, plain_product, strict=True):
            torch.testing.assert_close(in_layout[name], expected, rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(product_in_layout[name], expected_product, rtol=1e-9, atol=1e-12)


def test_ties_in_a_pool_go_to_the_first_maximum_as_in_torch() -> None:
    model = build_model("cnn", (1, 6, 6), 2, channels=(2,))
    start = model.initial_parameters(np.random.default_rng(0))
    flat_image = torch.zeros(1, 1, 1, 6, 6)  # every interior response is equal
    stacked = {k: v[None].clone().requires_grad_() for k, v in start.items()}
    got = torch.autograd.grad(model.logits(stacked, flat_image)[0, 0, 0], list(stacked.values()))
    module = model.to_module(start)
    expected = torch.autograd.grad(module(flat_image[0])[0, 0], list(module.parameters()))
    for name, value in model.to_state_dict({k: g[0] for k, g in zip(stacked, got, strict=True)}).items():
        reference = dict(zip(dict(module.named_parameters()), expected, strict=True))[name]
        torch.testing.assert_close(value, reference)


def test_the_papers_network_has_113162_parameters_on_fashion_mnist() -> None:
    model = build_model("cnn", (1, 28, 28), 10)
    assert num_parameters(model.initial_parameters(np.random.default_rng(0))) == 113_162


def test_initial_weights_are_a_normal_truncated_at_two_deviations_and_biases_are_a_tenth() -> None:
    parameters = build_model("cnn", (1, 28, 28), 10).initial_parameters(np.random.default_rng(0))
    weights = torch.cat([v.flatten() for k, v in parameters.items() if k.endswith("weight")])
    assert float(weights.abs().max()) <= 0.2
    # A standard normal truncated at +-2 has standard deviation 0.8796.
    assert float(weights.std()) == pytest.approx(0.08796, rel=0.01)
    assert float(weights.mean()) == pytest.approx(0.0, abs=5e-4)
    assert all(bool((v == 0.1).all()) for k, v in parameters.items() if k.endswith("bias"))


def test_vmap_falls_back_to_a_loop_only_where_it_must() -> None:
    assert UserModel(small_user_net, (1, 4, 4), 3).is_vectorised
    assert not UserModel(DataDependentNet, (1, 4, 4), 3).is_vectorised


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("cnnn", 'got "cnnn". Did you mean "cnn"'),
        ("no_such_package.at_all:net", 'cannot import "no_such_package.at_all"'),
        (f"{__name__}:absent", 'has no "absent"'),
        (f"{__name__}:not_a_module", "must return an nn.Module, got int"),
        (f"{__name__}:failing_factory", "failed to build: RuntimeError: no weights at hand"),
        (f"{__name__}:batch_norm_net", "Use nn.GroupNorm or nn.LayerNorm instead"),
        (f"{__name__}:wrong_outputs", r"must return \(samples, 3\) scores, got \(2, 99\)"),
    ],
)
def test_a_bad_model_is_refused_in_one_line(kind: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        build_model(kind, (1, 2, 2), 3)
    assert "\n" not in str(caught.value)


def test_the_cnn_refuses_data_that_are_not_images() -> None:
    with pytest.raises(ModelError, match="Use the mlp for other data"):
        build_model("cnn", (12,), 3)
