"""Any ``nn.Module`` of the user's, from a ``package.module:factory`` name."""

from __future__ import annotations

import copy
import importlib
import inspect
import threading
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedwave.errors import ModelError
from fedwave.learning.parameters import Parameters


class UserModel:
    """A user's module, mapped over the devices with ``torch.func.vmap``, or in a loop where vmap cannot.

    The module is used in evaluation mode, so dropout is inactive and a run repeats bit for bit. Its forward
    takes (samples, *input_shape) and returns (samples, num_classes), each sample on its own.
    """

    def __init__(
        self,
        factory: Callable[..., nn.Module],
        input_shape: tuple[int, ...],
        num_classes: int,
        *,
        name: str | None = None,
    ) -> None:
        self._factory = factory
        self._input_shape = input_shape
        self._num_classes = num_classes
        self._name = name or getattr(factory, "__qualname__", repr(factory))
        self._template = self._build(seed=0)
        self._check_samples_are_independent()
        self._buffers = {name: value.detach() for name, value in self._template.named_buffers()}
        # functional_call swaps tensors inside the module, so every thread needs a copy of its own.
        self._per_thread = threading.local()
        self.is_vectorised = True
        self._probe()

    def _build(self, *, seed: int) -> nn.Module:
        offered = {"input_shape": self._input_shape, "num_classes": self._num_classes}
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
                "The factory is called with input_shape and num_classes (those it accepts) and must return "
                "an nn.Module."
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
                scores = self.logits(stacked, inputs)
            except Exception:  # whatever vmap cannot map may still run in a loop
                self.is_vectorised = False
                try:
                    scores = self.logits(stacked, inputs)
                except Exception as error:
                    raise ModelError(
                        f"model.kind {self._name} cannot run on inputs of shape {self._input_shape}: "
                        f"{type(error).__name__}: {_one_line(error)}. Make its forward take "
                        "(samples, *input_shape)."
                    ) from error
        expected = (2, 2, self._num_classes)
        if tuple(scores.shape) != expected:
            raise ModelError(
                f"model.kind {self._name} must return (samples, {self._num_classes}) scores, got "
                f"{tuple(scores.shape[1:])} for 2 samples. Return one score for each class of the dataset."
            )

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the parameters of a freshly built module, seeded from ``rng``."""
        module = self._build(seed=int(rng.integers(2**31)))
        return {name: value.detach().clone() for name, value in module.named_parameters()}

    def logits(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return class scores (devices, samples, classes)."""
        if not hasattr(self._per_thread, "module"):
            self._per_thread.module = copy.deepcopy(self._template).to(inputs.device)
        module = self._per_thread.module
        buffers = dict(module.named_buffers())  # on the device, as the module is

        def one_device(own: Parameters, samples: Tensor) -> Tensor:
            scores: Tensor = functional_call(module, (own, buffers), (samples,))
            return scores

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
        """Return one model as the module's own state dict."""
        return {**parameters, **self._buffers}

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a fresh module of the user's class."""
        module = self._build(seed=0)
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
