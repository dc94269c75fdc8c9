"""Models: the paper's CNN, a perceptron, softmax regression, and any ``nn.Module`` of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from fedwave.errors import ModelError
from fedwave.learning.models.base import WEIGHT_STD, Model
from fedwave.learning.models.cnn import Cnn
from fedwave.learning.models.mlp import Mlp
from fedwave.learning.models.user import UserModel
from fedwave.parts import PartKind, is_import_name
from fedwave.settings import PositiveFloat, PositiveInt

__all__ = ["MODEL", "MODELS", "Cnn", "Mlp", "Model", "UserModel", "build_model", "model_options"]


def _cnn(
    input_shape: tuple[int, ...],
    num_outputs: int,
    *,
    channels: Annotated[Sequence[PositiveInt], Field(min_length=1)] = (32, 64, 128),
    weight_std: PositiveFloat = WEIGHT_STD,
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
    hidden: Sequence[PositiveInt] = (64,),
    weight_std: PositiveFloat = WEIGHT_STD,
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
# What fills in a factory of the user's own too; ``num_classes`` is another word for ``num_outputs``.
MODEL = PartKind("model", MODELS, ("input_shape", "num_outputs", "num_classes"), error=ModelError)


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

    A factory returns an ``nn.Module``, or a ``Model`` that runs many devices itself. ``batching`` is for the
    former, see ``UserModel``; the others have one way to run many devices.
    ``samples`` (samples, *input_shape), as the model will see them, show whether it suits the data.
    """
    MODEL.require_options(kind, options)
    own = _own_model(kind, input_shape, num_outputs, options) if is_import_name(kind) else None
    if is_import_name(kind) and own is None:
        return UserModel(kind, input_shape, num_outputs, batching=batching, samples=samples, options=options)
    if batching != "auto":
        raise ModelError(
            f'execution.batching is for a module of your own, got "{batching}" with model.kind {kind}. '
            'Leave it at "auto".'
        )
    model = MODELS[kind](input_shape, num_outputs, **options) if own is None else own
    if samples is not None and not samples.is_floating_point() and not getattr(model, "takes_tokens", True):
        raise ModelError(
            f"model.kind {kind} takes real numbers, got whole numbers, which are token ids. Give features as "
            "float32, or use a module of your own with nn.Embedding."
        )
    return model


def _own_model(
    kind: str, input_shape: tuple[int, ...], num_outputs: int, options: dict[str, Any]
) -> Model | None:
    """Return the user's own model that runs many devices itself; None if the factory makes something else."""
    offered = {"input_shape": input_shape, "num_outputs": num_outputs, "num_classes": num_outputs}
    try:
        with torch.random.fork_rng(devices=[]):
            made = MODEL.call(MODEL.find(kind), options, **offered)
    except (Exception, SystemExit):  # UserModel says what is wrong
        return None
    is_model = hasattr(made, "initial_parameters") and not isinstance(made, nn.Module)
    model: Model | None = made if is_model else None
    return model


def model_options(kind: str) -> tuple[str, ...]:
    """Return the names of the options that a model has."""
    return MODEL.options(kind)
