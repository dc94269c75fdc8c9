"""Any ``nn.Module`` of the user's, from a ``package.module:factory`` name."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedwave.errors import ModelError
from fedwave.learning.models.base import require_layout
from fedwave.learning.models.suitability import (
    example_inputs,
    one_line,
    refuse_unsuitable,
    require_unchanged,
    try_meta_step,
)
from fedwave.learning.parameters import Parameters
from fedwave.parts import imported

_TOKENS = " Its inputs are whole numbers: token ids for nn.Embedding. Give features as float32."


class UserModel:
    """A user's module, mapped over the devices with ``torch.func.vmap`` or run for one after the other.

    ``batching`` is ``vmap``, ``loop``, or ``auto``: vmap where it can map the module, until somebody who has
    measured both calls ``use_loop``.

    ``source`` is ``package.module:factory``, or the factory itself; it is called with ``options`` too. The
    module is used in evaluation mode, so dropout is inactive and a run repeats bit for bit. Its forward takes
    (samples, *input_shape) and returns (samples, num_outputs), each sample on its own. Whether it does is
    tried on ``samples`` of the dataset; normal numbers stand in where there are none.
    """

    def __init__(
        self,
        source: str | Callable[..., nn.Module],
        input_shape: tuple[int, ...],
        num_outputs: int,
        *,
        batching: str = "auto",
        samples: Tensor | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_up(source, input_shape, num_outputs, options or {})
        refuse_unsuitable(self._template, self._name)
        self.is_vectorised = batching != "loop"
        self._try_out(example_inputs(input_shape) if samples is None else samples)
        if batching == "vmap" and not self.is_vectorised:
            raise ModelError(
                f'execution.batching cannot be "vmap" with model.kind {self._name}: torch.func.vmap cannot '
                'map it. Use "auto" or "loop".'
            )

    @property
    def name(self) -> str:
        """What the user calls it: ``package.module:factory``, or the factory's own name."""
        return self._name

    def use_loop(self, is_loop: bool = True) -> None:
        """Run devices one after the other from now on, or mapped again."""
        self.is_vectorised = not is_loop

    def _set_up(
        self,
        source: str | Callable[..., nn.Module],
        input_shape: tuple[int, ...],
        num_outputs: int,
        options: Mapping[str, Any],
    ) -> None:
        self._source = source
        self._options = options
        self._input_shape = input_shape
        self._num_outputs = num_outputs
        self._factory: Callable[..., nn.Module]
        if isinstance(source, str):
            self._name, self._factory = source, imported(source, key="model.kind", error=ModelError)
        else:
            self._name, self._factory = getattr(source, "__qualname__", repr(source)), source
        self._template = self._build(seed=0)
        torch.backends.mha.set_fastpath_enabled(False)  # it has no gradient
        # functional_call swaps tensors inside the module, so every thread needs a copy of its own.
        self._per_thread = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to another process: how to build the module, and what only this one knows."""
        return {
            "arguments": (self._source, self._input_shape, self._num_outputs, self._options),
            "is_vectorised": self.is_vectorised,
            "buffers": dict(self._template.named_buffers(remove_duplicate=False)),
            "frozen": {n: v.detach() for n, v in self._template.named_parameters() if not v.requires_grad},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the module anew, with the buffers that were sent: a factory may draw them at random."""
        self._set_up(*state["arguments"])
        self.is_vectorised = state["is_vectorised"]
        for name, value in state["buffers"].items():
            parent, _, own_name = name.rpartition(".")
            setattr(self._template.get_submodule(parent), own_name, value)
        own = dict(self._template.named_parameters())
        for name, value in state["frozen"].items():
            own[name].data = value

    @property
    def factory(self) -> Callable[..., nn.Module]:
        """What builds the module."""
        return self._factory

    def with_factory(self) -> UserModel:
        """Return the same model with its factory in place of a name, for machines that have not the file."""
        state = self.__getstate__()
        twin = UserModel.__new__(UserModel)
        twin.__setstate__({**state, "arguments": (self._factory, *state["arguments"][1:])})
        return twin

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
                module = self._factory(**arguments, **self._options)
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"model.kind {self._name} failed to build: {type(error).__name__}: {one_line(error)}. "
                "The factory is called with those of input_shape, num_outputs and num_classes that it "
                "accepts and must return an nn.Module."
            ) from error
        if not isinstance(module, nn.Module):
            raise ModelError(
                f"model.kind {self._name} must return an nn.Module, got {type(module).__name__}. "
                "Return the module itself from the factory."
            )
        return module.eval()

    def _try_out(self, samples: Tensor) -> None:
        """Let two devices take a meta-step: choose between vmap and a loop, refuse what cannot train."""
        parameters = self.initial_parameters(np.random.default_rng(0))
        stacked = {name: torch.stack([value, value]) for name, value in parameters.items()}
        try:
            try_meta_step(self, stacked, samples, self._num_outputs, self._name)
        except ModelError:
            if not self.is_vectorised:
                raise
            self.is_vectorised = False  # whatever vmap cannot map may still run in a loop
            try_meta_step(self, stacked, samples, self._num_outputs, self._name)
        used = dict(self._per_thread.module.named_buffers())
        require_unchanged(dict(self._template.named_buffers()), used, self._name)

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the parameters of a fresh module, seeded from ``rng``, but for those that are frozen."""
        module = self._build(seed=int(rng.integers(2**31)))
        return {
            name: value.detach().clone() for name, value in module.named_parameters() if value.requires_grad
        }

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs)."""
        if not hasattr(self._per_thread, "module"):
            self._per_thread.module = copy.deepcopy(self._template).to(inputs.device)
        module = self._per_thread.module
        # Buffers and frozen parameters are on the device, as the module is, and in the parameters' precision.
        like = next(iter(parameters.values())).dtype
        fixed = {
            name: value.detach().to(like) if value.is_floating_point() else value.detach()
            for name, value in (*module.named_buffers(), *module.named_parameters())
            if name not in parameters
        }

        def one_device(own: Parameters, samples: Tensor) -> Tensor:
            result: Tensor = functional_call(module, {**fixed, **own}, (samples,))
            return result

        try:
            # Attention by plain products: the fused kernels cannot be differentiated twice.
            with sdpa_kernel(SDPBackend.MATH):
                if self.is_vectorised:
                    mapped: Tensor = vmap(one_device)(parameters, inputs)
                    return mapped
                rows = [{name: value[i] for name, value in parameters.items()} for i in range(len(inputs))]
                return torch.stack([one_device(*pair) for pair in zip(rows, inputs, strict=True)])
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"model.kind {self._name} failed in its forward: {type(error).__name__}: {one_line(error)}. "
                "It is called with (samples, *input_shape) and must return (samples, num_outputs)."
                + ("" if inputs.is_floating_point() else _TOKENS)
            ) from error

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model as the module's own state dict: buffers too, and a tied weight by each name."""
        name_of = {id(v): name for name, v in self._template.named_parameters() if name in parameters}
        return {
            # A copy: a tied weight has two names, and a file cannot hold one memory under both.
            name: parameters[name_of[id(value)]].clone() if id(value) in name_of else value.detach()
            for name, value in self._template.state_dict(keep_vars=True).items()
        }

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict."""
        own = {n: v.detach() for n, v in self._template.named_parameters() if v.requires_grad}
        require_layout(state, self.to_state_dict(own))
        parameters = {name: state[name] for name in own}
        for name, value in self.to_state_dict(parameters).items():
            if name not in own and not torch.equal(state[name].to(value.device), value):
                raise ModelError(
                    f"{name} of the state dict must be the buffer, frozen or tied weight that {self._name} "
                    "builds, got other values. Have the factory build these values."
                )
        return parameters

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a module of the user's class."""
        module = copy.deepcopy(self._template)
        module.load_state_dict(self.to_state_dict(parameters))
        return module
