"""A user's own module: how it is called, that it travels between processes and threads, what is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fedwave.errors import ModelError
from fedwave.learning import Parameters, build_model
from fedwave.learning.models import UserModel
from tests.learning.models import user_modules
from tests.learning.models.user_modules import DataDependentNet, RandomFeatures, TiedNet, small_user_net

SHAPE = (1, 4, 4)
ROOT = Path(__file__).parents[3]
TRAVELLERS = [
    "small_user_net",
    "DataDependentNet",
    "RandomFeatures",
    "NestedBuffers",
    "TiedNet",
    "nameless_net",
]


def by_name(name: str) -> UserModel:
    model = build_model(f"{user_modules.__name__}:{name}", SHAPE, 3)
    assert isinstance(model, UserModel)
    return model


def stack(model: UserModel, num_devices: int = 3) -> tuple[Parameters, Tensor]:
    own = [model.initial_parameters(np.random.default_rng(seed)) for seed in range(num_devices)]
    inputs = torch.randn(num_devices, 5, *SHAPE, generator=torch.Generator().manual_seed(0))
    return {name: torch.stack([one[name] for one in own]) for name in own[0]}, inputs


def test_vmap_falls_back_to_a_loop_only_where_it_must() -> None:
    assert UserModel(small_user_net, SHAPE, 3).is_vectorised
    assert not UserModel(DataDependentNet, SHAPE, 3).is_vectorised


def test_a_factory_is_offered_the_number_of_outputs_under_both_names() -> None:
    build_model(f"{user_modules.__name__}:net_with_options", (1, 2, 2), 3)


def test_the_first_model_is_the_module_built_under_a_seed_below_two_to_the_31() -> None:
    got = UserModel(small_user_net, SHAPE, 3).initial_parameters(np.random.default_rng(4))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.default_rng(4).integers(2**31)))
        expected = small_user_net(SHAPE, 3)
    assert list(got) == [name for name, _ in expected.named_parameters()]
    assert all(torch.equal(got[name], value) for name, value in expected.named_parameters())


@pytest.mark.parametrize("name", TRAVELLERS)
def test_a_user_model_gives_the_same_bits_after_a_trip(name: str) -> None:
    model = by_name(name)
    parameters, inputs = stack(model)
    expected = model.outputs(parameters, inputs)  # in use: this thread has a copy of the module by now
    travelled = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    for arrived in (travelled, copy.deepcopy(model)):
        assert torch.equal(arrived.outputs(parameters, inputs), expected)
        assert arrived.is_vectorised == model.is_vectorised
        one = {key: value[0] for key, value in parameters.items()}
        assert torch.equal(arrived.to_module(one)(inputs[0]), model.to_module(one)(inputs[0]))
        for seed in range(2):
            drawn = model.initial_parameters(np.random.default_rng(seed))
            again = arrived.initial_parameters(np.random.default_rng(seed))
            assert all(torch.equal(again[key], value) for key, value in drawn.items())
        twice = pickle.loads(pickle.dumps(arrived))  # noqa: S301 - our own bytes
        assert torch.equal(twice.outputs(parameters, inputs), expected)


@pytest.mark.parametrize("name", ["RandomFeatures", "small_user_net"])
def test_a_model_with_its_factory_is_the_same_model(name: str) -> None:
    model = by_name(name)
    parameters, inputs = stack(model)
    twin = model.with_factory()
    assert twin.factory is model.factory
    assert torch.equal(twin.outputs(parameters, inputs), model.outputs(parameters, inputs))
    drawn = [one.initial_parameters(np.random.default_rng(3)) for one in (model, twin)]
    assert all(torch.equal(drawn[0][key], drawn[1][key]) for key in drawn[0])
    assert not isinstance(twin.__getstate__()["arguments"][0], str)


def test_a_factory_given_as_a_function_travels_by_its_name() -> None:
    model = UserModel(small_user_net, SHAPE, 3)
    parameters, inputs = stack(model)
    arrived = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    assert torch.equal(arrived.outputs(parameters, inputs), model.outputs(parameters, inputs))


def test_another_process_computes_the_same_bits(tmp_path: Path) -> None:
    model = by_name("RandomFeatures")
    parameters, inputs = stack(model)
    expected = model.outputs(parameters, inputs)
    code = (
        "import pickle, sys; model, parameters, inputs = pickle.load(sys.stdin.buffer); "
        "pickle.dump(model.outputs(parameters, inputs).tolist(), sys.stdout.buffer)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((model, parameters, inputs)),
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"},
    )
    assert pickle.loads(done.stdout) == expected.tolist()  # noqa: S301 - written by the line above


@pytest.mark.parametrize("name", TRAVELLERS)
def test_threads_that_share_a_model_do_not_disturb_each_other(name: str) -> None:
    model = pickle.loads(pickle.dumps(by_name(name)))  # noqa: S301 - our own bytes
    parameters, inputs = stack(model, num_devices=8)

    def alone(device: int) -> Tensor:
        own = {key: value[device : device + 1] for key, value in parameters.items()}
        results = [model.outputs(own, inputs[device : device + 1]) for _ in range(5)]
        assert all(torch.equal(result, results[0]) for result in results)
        pickle.dumps(model)  # may leave for elsewhere while it is in use
        return results[0]

    expected = [alone(device) for device in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for device, got in enumerate(pool.map(alone, range(8))):
            assert torch.equal(got, expected[device])


def test_a_module_that_is_not_there_is_named_on_arrival() -> None:
    sent = pickle.dumps(by_name("small_user_net")).replace(b":small_user_net", b":small_user_nex")
    with pytest.raises(ModelError, match='has no "small_user_nex". Check the spelling'):
        pickle.loads(sent)  # noqa: S301 - our own bytes


def test_the_state_dict_is_the_modules_own_with_its_buffers() -> None:
    model = by_name("RandomFeatures")
    parameters = model.initial_parameters(np.random.default_rng(1))
    state = model.to_state_dict(parameters)
    assert set(state) == {"projection", "linear.weight", "linear.bias"}  # the scale is not persistent
    module = model.to_module(parameters)
    assert isinstance(module, RandomFeatures)
    assert all(torch.equal(module.state_dict()[name], value) for name, value in state.items())


def test_a_tied_weight_is_one_parameter_and_stands_in_the_state_dict_by_both_names() -> None:
    model = by_name("TiedNet")
    parameters = model.initial_parameters(np.random.default_rng(1))
    assert "encode.weight" in parameters
    assert "again.weight" not in parameters
    state = model.to_state_dict(parameters)
    assert torch.equal(state["again.weight"], state["encode.weight"])
    assert (
        state["again.weight"].data_ptr() != state["encode.weight"].data_ptr()
    )  # a file refuses shared memory
    module = model.to_module(parameters)
    assert isinstance(module, TiedNet)
    assert module.again.weight is module.encode.weight
    assert all(torch.equal(module.state_dict()[name], value) for name, value in state.items())


@pytest.mark.parametrize(("name", "entry"), [("RandomFeatures", "projection"), ("TiedNet", "again.weight")])
def test_a_state_dict_whose_fixed_tensors_differ_is_refused(name: str, entry: str) -> None:
    model = by_name(name)
    state = model.to_state_dict(model.initial_parameters(np.random.default_rng(1)))
    with pytest.raises(
        ModelError, match=f"{entry} of the state dict must be the buffer, frozen or tied weight"
    ) as caught:
        model.from_state_dict({**state, entry: state[entry] + 1.0})
    assert "\n" not in str(caught.value)


def test_a_module_made_from_a_model_does_not_share_its_memory() -> None:
    model = by_name("small_user_net")
    parameters = model.initial_parameters(np.random.default_rng(0))
    before = {name: value.clone() for name, value in parameters.items()}
    with torch.no_grad():
        for value in model.to_module(parameters).parameters():
            value += 1.0
    assert all(torch.equal(parameters[name], value) for name, value in before.items())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("no_such_package.at_all:net", 'cannot import "no_such_package.at_all"'),
        (f"{user_modules.__name__}:absent", 'has no "absent"'),
        (f"{user_modules.__name__}:not_a_module", "must return an nn.Module, got int"),
        (f"{user_modules.__name__}:failing_factory", "failed to build: RuntimeError: no weights at hand"),
        (f"{user_modules.__name__}:batch_norm_net", "Use nn.GroupNorm or nn.LayerNorm instead"),
        (f"{user_modules.__name__}:wrong_outputs", r"must return \(samples, 3\) outputs, got \((2|3), 99\)"),
        (
            f"{user_modules.__name__}:wrong_inputs",
            "failed in its forward: RuntimeError: mat1 and mat2",
        ),
    ],
)
def test_a_bad_module_is_refused_in_one_line(kind: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        build_model(kind, (1, 2, 2), 3)
    assert "\n" not in str(caught.value)
