"""Any ``nn.Module`` of the user's, from a ``package.module:factory`` name."""

from __future__ import annotations

import copy
import importlib
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedwave.errors import ModelError
from fedwave.learning.models.state_dict import require_layout
from fedwave.learning.parameters import Parameters


class UserModel:
    """A user's module, mapped over the devices with ``torch.func.vmap``, or in a loop where vmap cannot.

    ``source`` is ``package.module:factory``, or the factory itself. The module is used in evaluation mode, so
    dropout is inactive and a run repeats bit for bit. Its forward takes (samples, *input_shape) and returns
    (samples, num_outputs), each sample on its own.
    """

    def __init__(
        self, source: str | Callable[..., nn.Module], input_shape: tuple[int, ...], num_outputs: int
    ) -> None:
        self._set_up(source, input_shape, num_outputs)
        self._check_samples_are_independent()
        self.is_vectorised = True
        self._probe()

    def _set_up(
        self, source: str | Callable[..., nn.Module], input_shape: tuple[int, ...], num_outputs: int
    ) -> None:
        self._source = source
        self._input_shape = input_shape
        self._num_outputs = num_outputs
        if isinstance(source, str):
            self._name, self._factory = source, import_factory(source)
        else:
            self._name, self._factory = getattr(source, "__qualname__", repr(source)), source
        self._template = self._build(seed=0)
        # functional_call swaps tensors inside the module, so every thread needs a copy of its own.
        self._per_thread = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to another process: how to build the module, and what only this one knows."""
        return {
            "arguments": (self._source, self._input_shape, self._num_outputs),
            "is_vectorised": self.is_vectorised,
            "buffers": dict(self._template.named_buffers(remove_duplicate=False)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the module anew, with the buffers that were sent: a factory may draw them at random."""
        self._set_up(*state["arguments"])
        self.is_vectorised = state["is_vectorised"]
        for name, value in state["buffers"].items():
            parent, _, own_name = name.rpartition(".")
            setattr(self._template.get_submodule(parent), own_name, value)

    def _build(self, *, seed: int) -> nn.Module:
        offered = {
            "input_shape": self._input_shape,
            "num_outputs": self._num_outputs,
            "num_classes": self._num_outputs,
        }
        try:
            accepted = inspect.signature(self._factory).parameters.values()
            takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in accepted)
            arguments = {k: v for k, v in offered.items() if takes_any or k in {p.name for p in accepted}}
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                module = self._factory(**arguments)
        except Exception as error:
            raise ModelError(
                f"model.kind {self._name} failed to build: {type(error).__name__}: {_one_line(error)}. "
                "The factory is called with those of input_shape, num_outputs and num_classes that it "
                "accepts and must return an nn.Module."
            ) from error
        if not isinstance(module, nn.Module):
            raise ModelError(
                f"model.kind {self._name} must return an nn.Module, got {type(module).__name__}. "
                "Return the module itself from the factory."
            )
        return module.eval()

    def _check_samples_are_independent(self) -> None:
        for name, module in self._template.named_modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                raise ModelError(
                    f"model.kind {self._name} has a batch-normalisation layer ({name}), which mixes samples "
                    "and keeps state outside the parameters. Use nn.GroupNorm or nn.LayerNorm instead."
                )

    def _probe(self) -> None:
        """Run two devices with two samples: choose between vmap and a loop, check the output shape."""
        parameters = self.initial_parameters(np.random.default_rng(0))
        stacked = {name: torch.stack([value, value]) for name, value in parameters.items()}
        inputs = torch.zeros(2, 2, *self._input_shape)
        with torch.no_grad():
            try:
                outputs = self.outputs(stacked, inputs)
            except Exception:  # whatever vmap cannot map may still run in a loop
                self.is_vectorised = False
                try:
                    outputs = self.outputs(stacked, inputs)
                except Exception as error:
                    raise ModelError(
                        f"model.kind {self._name} cannot run on inputs of shape {self._input_shape}: "
                        f"{type(error).__name__}: {_one_line(error)}. Make its forward take "
                        "(samples, *input_shape)."
                    ) from error
        expected = (2, 2, self._num_outputs)
        if tuple(outputs.shape) != expected:
            raise ModelError(
                f"model.kind {self._name} must return (samples, {self._num_outputs}) outputs, got "
                f"{tuple(outputs.shape[1:])} for 2 samples. Return one for each class or value to predict."
            )

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the parameters of a freshly built module, seeded from ``rng``."""
        module = self._build(seed=int(rng.integers(2**31)))
        return {name: value.detach().clone() for name, value in module.named_parameters()}

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs)."""
        if not hasattr(self._per_thread, "module"):
            self._per_thread.module = copy.deepcopy(self._template).to(inputs.device)
        module = self._per_thread.module
        buffers = dict(module.named_buffers())  # on the device, as the module is

        def one_device(own: Parameters, samples: Tensor) -> Tensor:
            result: Tensor = functional_call(module, (own, buffers), (samples,))
            return result

        if self.is_vectorised:
            mapped: Tensor = vmap(one_device)(parameters, inputs)
            return mapped
        return torch.stack(
            [
                one_device({name: value[index] for name, value in parameters.items()}, inputs[index])
                for index in range(inputs.shape[0])
            ]
        )

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model as the module's own state dict: buffers too, and a tied weight by each name."""
        name_of = {id(value): name for name, value in self._template.named_parameters()}
        return {
            # A copy: a tied weight has two names, and a file cannot hold one memory under both.
            name: parameters[name_of[id(value)]].clone() if id(value) in name_of else value
            for name, value in self._template.state_dict(keep_vars=True).items()
        }

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict."""
        own = {name: value.detach() for name, value in self._template.named_parameters()}
        require_layout(state, self.to_state_dict(own))
        parameters = {name: state[name] for name in own}
        for name, value in self.to_state_dict(parameters).items():
            if name not in own and not torch.equal(state[name].to(value.device), value):
                raise ModelError(
                    f"{name} of the state dict must be the buffer or tied weight that {self._name} builds, "
                    "got other values. Runs train parameters alone: have the factory build these values."
                )
        return parameters

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a module of the user's class."""
        module = copy.deepcopy(self._template)
        module.load_state_dict(self.to_state_dict(parameters))
        return module


def import_factory(name: str) -> Callable[..., nn.Module]:
    """Return the function or class that ``package.module:factory`` names."""
    module_name, _, attribute = name.partition(":")
    advice = "Check the spelling, and that the module can be imported from where fedwave runs (PYTHONPATH)."
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's module may raise anything while it is imported
        raise ModelError(
            f'model.kind "{name}": cannot import "{module_name}" '
            f"({type(error).__name__}: {_one_line(error)}). {advice}"
        ) from error
    try:
        factory: Callable[..., nn.Module] = getattr(module, attribute)
    except AttributeError as error:
        raise ModelError(f'model.kind "{name}": "{module_name}" has no "{attribute}". {advice}') from error
    return factory


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
