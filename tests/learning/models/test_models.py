"""The contract of every model; the stacked ones against plain torch modules, to the second derivative."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fedwave.errors import ModelError
from fedwave.learning import MODELS, Model, Parameters, build_model, model_options
from fedwave.learning.parameters import num_parameters
from fedwave.testing import check_model
from tests.learning.models import user_modules
from tests.learning.stacks import SMALL

USERS = [f"{user_modules.__name__}:{name}" for name in ("small_user_net", "DataDependentNet", "TiedNet")]
KINDS = [*MODELS, *USERS]
SHAPES = [(1, 28, 28), (3, 9, 8), (2, 7, 5), (1, 8, 8), (1, 2, 3), (1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_stacked_outputs_gradients_and_hessian_products_equal_the_plain_module(
    kind: str, shape: tuple[int, int, int]
) -> None:
    model = small_model(kind, shape, 4)
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
    outputs = model.outputs(stacked, inputs)
    losses = F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction="none").view(2, 3).mean(1)
    gradient = torch.autograd.grad(losses.sum(), list(stacked.values()), create_graph=True)
    direction = [torch.stack([own[k] for own in directions]) for k in models[0]]
    product = torch.autograd.grad(gradient, list(stacked.values()), direction)

    for device, own in enumerate(models):
        module = model.to_module(own).double().eval()
        plain_outputs = module(inputs[device])
        torch.testing.assert_close(outputs[device], plain_outputs, rtol=1e-10, atol=1e-12)
        names = dict(module.named_parameters())
        plain_loss = F.cross_entropy(plain_outputs, labels[device])
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
    got = torch.autograd.grad(model.outputs(stacked, flat_image)[0, 0, 0], list(stacked.values()))
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


def small_model(kind: str, shape: tuple[int, ...], num_outputs: int) -> Model:
    return build_model(kind, shape, num_outputs, **SMALL.get(kind, {}))


def several(model: Model, count: int) -> list[Parameters]:
    return [model.initial_parameters(np.random.default_rng(seed)) for seed in range(count)]


def stacked_models(models: list[Parameters]) -> Parameters:
    return {name: torch.stack([own[name] for own in models]) for name in models[0]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_outputs", [1, 3])
def test_every_model_keeps_the_contract_and_travels(kind: str, num_outputs: int) -> None:
    shape = (2, 5, 4)
    check_model(kind, input_shape=shape, num_outputs=num_outputs, **SMALL.get(kind, {}))
    model = small_model(kind, shape, num_outputs)
    stacked = stacked_models(several(model, 4))
    inputs = torch.randn(4, 6, *shape, generator=torch.Generator().manual_seed(0))
    travelled = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    assert torch.equal(travelled.outputs(stacked, inputs), model.outputs(stacked, inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_model_is_drawn_from_the_generator_alone(kind: str) -> None:
    model = small_model(kind, (2, 5, 4), 3)
    rng = np.random.default_rng(0)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, second = model.initial_parameters(rng), model.initial_parameters(rng)
    assert torch.equal(torch.get_rng_state(), before)  # torch's own generator is nobody's business here
    torch.manual_seed(2)
    again = small_model(kind, (2, 5, 4), 3).initial_parameters(np.random.default_rng(0))
    assert all(value.dtype == torch.float32 and not value.requires_grad for value in first.values())
    assert list(again) == list(first)
    assert all(torch.equal(again[name], value) for name, value in first.items())
    assert not any(torch.equal(second[name], value) for name, value in first.items() if "weight" in name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 5, 4), (1, 7, 9)])
def test_a_model_comes_back_from_its_state_dict_bit_by_bit(kind: str, shape: tuple[int, ...]) -> None:
    model = small_model(kind, shape, 3)
    parameters = model.initial_parameters(np.random.default_rng(5))
    state = model.to_state_dict(parameters)
    modules_own = model.to_module(parameters).state_dict()
    assert {name: value.shape for name, value in state.items()} == {
        name: value.shape for name, value in modules_own.items()
    }
    assert all(torch.equal(value, modules_own[name]) for name, value in state.items())
    shuffled = {name: modules_own[name] for name in sorted(modules_own, reverse=True)}
    back = model.from_state_dict(shuffled)
    assert set(back) == set(parameters)
    for name, value in parameters.items():
        assert torch.equal(back[name], value)
        assert back[name].is_contiguous()
        assert not back[name].requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_dict_of_another_model_is_refused_in_one_line(kind: str) -> None:
    model = small_model(kind, (2, 5, 4), 3)
    state = model.to_state_dict(model.initial_parameters(np.random.default_rng(0)))
    before = {name: value.clone() for name, value in state.items()}
    last = list(state)[-1]
    first, second = list(state)[:2]
    for wrong, message in (
        (
            {k: v for k, v in state.items() if k != last},
            rf"The state dict lacks {last}\. Give the model the kind",
        ),
        (
            {k: v for k, v in state.items() if k not in (first, second)},
            rf"lacks {first} and 1 more\. Give the model the kind",
        ),
        ({**state, "extra.bias": torch.zeros(1)}, r"has an unknown extra.bias\. Give the model the kind"),
        (
            {**state, last: torch.zeros(99)},
            rf"{last} of the state dict must have shape \(3,\), got \(99,\)\. Give",
        ),
        (
            {**state, last: state[last].double()},
            rf"{last} of the state dict must be torch.float32, got torch.float64\. Convert",
        ),
    ):
        with pytest.raises(ModelError, match=message) as caught:
            model.from_state_dict(wrong)
        assert "\n" not in str(caught.value)
    assert all(torch.equal(state[name], value) for name, value in before.items())


def test_a_cnn_without_convolutions_is_one_linear_layer() -> None:
    model = build_model("cnn", (2, 5, 4), 3, channels=())
    parameters = model.initial_parameters(np.random.default_rng(0))
    assert {name: tuple(value.shape) for name, value in parameters.items()} == {
        "linear.weight": (40, 3),
        "linear.bias": (3,),
    }
    back = model.from_state_dict(model.to_state_dict(parameters))
    assert all(torch.equal(back[name], value) for name, value in parameters.items())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("cnn", ("channels", "weight_std")),
        ("mlp", ("hidden", "weight_std")),
        ("softmax", ()),
        (USERS[0], ()),
    ],
)
def test_a_kind_names_its_own_options(kind: str, options: tuple[str, ...]) -> None:
    assert model_options(kind) == options


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("cnn", {"hidden": [64]}, 'model "cnn" has no option .hidden.. It is an option of mlp'),
        ("mlp", {"hidden": [3], "channels": [8]}, "has no option .channels.. It is an option of cnn"),
        ("softmax", {"size": []}, '"softmax" has no options. Leave it out.'),
        (USERS[0], {"size": [3]}, "has no options. Leave it out."),
        ("cnn", {"num_classes": [3]}, "It is filled in"),
    ],
)
def test_an_option_that_the_kind_does_not_have_is_refused(
    kind: str, options: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        build_model(kind, (2, 5, 4), 3, **options)
    assert "\n" not in str(caught.value)


def test_a_perceptron_has_one_hidden_layer_of_64_unless_told_otherwise() -> None:
    parameters = build_model("mlp", (5,), 3).initial_parameters(np.random.default_rng(0))
    assert [tuple(value.shape) for value in parameters.values()] == [(5, 64), (64,), (64, 3), (3,)]


def test_options_may_be_lists_as_settings_give_them() -> None:
    for kind, options in SMALL.items():
        as_lists = {name: list(value) for name, value in options.items()}
        assert build_model(kind, (2, 5, 4), 3, **as_lists) == build_model(kind, (2, 5, 4), 3, **options)


def test_an_unknown_kind_is_refused_with_the_nearest_name() -> None:
    for ask in (model_options, lambda kind: build_model(kind, (1, 2, 2), 3)):
        with pytest.raises(ModelError, match='no model "cnnn". Did you mean "cnn"'):
            ask("cnnn")


def test_the_cnn_refuses_data_that_are_not_images() -> None:
    with pytest.raises(ModelError, match="Use the mlp for other data"):
        build_model("cnn", (12,), 3)


def test_a_model_that_does_not_refuse_token_ids_is_given_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = torch.zeros(2, 6, dtype=torch.int64)
    monkeypatch.setitem(MODELS, "mine", lambda input_shape, num_outputs: "a model of tokens")
    assert build_model("mine", (6,), 3, samples=tokens) == "a model of tokens"
    with pytest.raises(ModelError, match="softmax takes real numbers, got whole numbers"):
        build_model("softmax", (6,), 3, samples=tokens)
    build_model("softmax", (6,), 3, samples=tokens.float())


def test_a_model_of_ones_own_may_run_many_devices_itself() -> None:
    kind = f"{user_modules.__name__}:stacked_net"
    assert build_model(kind, (2, 5, 4), 3, width=7) == build_model("mlp", (2, 5, 4), 3, hidden=(7,))
    check_model(kind, input_shape=(2, 5, 4), width=4)
    with pytest.raises(ModelError, match="execution.batching is for a module of your own"):
        build_model(kind, (2, 5, 4), 3, batching="loop")
