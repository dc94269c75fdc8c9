"""Models: the paper's CNN, a perceptron, softmax regression, and any ``nn.Module`` of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from fedwave.errors import ModelError, did_you_mean
from fedwave.learning.models.base import WEIGHT_STD, Model
from fedwave.learning.models.cnn import Cnn
from fedwave.learning.models.mlp import Mlp
from fedwave.learning.models.user import UserModel

__all__ = ["MODELS", "Cnn", "Mlp", "Model", "UserModel", "build_model", "model_options"]


def _cnn(
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    channels: Sequence[int] = (32, 64, 128),
    weight_std: float = WEIGHT_STD,
) -> Model:
    if len(input_shape) != 3:
        raise ModelError(
            f"model.kind cnn needs images of shape (channels, height, width), got inputs of shape "
            f"{input_shape}. Use the mlp for other data."
        )
    shape = (input_shape[0], input_shape[1], input_shape[2])
    return Cnn(shape, num_outputs, tuple(channels), weight_std)


def _mlp(
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    hidden: Sequence[int] = (64,),
    weight_std: float = WEIGHT_STD,
) -> Model:
    return Mlp(input_shape, num_outputs, tuple(hidden), weight_std)


def _softmax(input_shape: tuple[int, ...], num_outputs: int) -> Model:
    return Mlp(input_shape, num_outputs, ())


# Each is called with the input shape, the number of outputs, and options of its own as keywords.
MODELS: dict[str, Callable[..., Model]] = {
    "cnn": _cnn,
    "mlp": _mlp,
    "softmax": _softmax,
}


def build_model(
    kind: str,
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    batching: str = "auto",
    samples: Tensor | None = None,
    **options: Any,
) -> Model:
    """Return the model of that kind: a name in ``MODELS`` or ``package.module:factory``.

    ``batching`` is for the latter, see ``UserModel``; the others have one way to run many devices.
    ``samples`` (samples, *input_shape), as the model will see them, show whether it suits the data.
    """
    known = model_options(kind)
    for name, value in options.items():
        if name not in known:
            instead = (
                f"Its options: {', '.join(known)}." if known else "It has no options; leave this one out."
            )
            raise ModelError(f"model.{name} is not an option of model.kind {kind}, got {value}. {instead}")
    if ":" in kind:
        return UserModel(kind, input_shape, num_outputs, batching=batching, samples=samples)
    if batching != "auto":
        raise ModelError(
            f'execution.batching is for a module of your own, got "{batching}" with model.kind {kind}. '
            'Leave it at "auto".'
        )
    model = MODELS[kind](input_shape, num_outputs, **options)
    if samples is not None and not samples.is_floating_point() and not getattr(model, "takes_tokens", True):
        raise ModelError(
            f"model.kind {kind} takes real numbers, got whole numbers, which are token ids. Give features as "
            "float32, or use a module of your own with nn.Embedding."
        )
    return model


def model_options(kind: str) -> tuple[str, ...]:
    """Return the names of the options that a kind of model has; a user's own factory has none."""
    if ":" in kind:
        return ()
    if kind not in MODELS:
        raise ModelError(
            f'model.kind must be a model or package.module:factory, got "{kind}". '
            + did_you_mean(kind, MODELS)
        )
    return tuple(inspect.signature(MODELS[kind]).parameters)[2:]  # after input_shape and num_outputs
