"""Models: the paper's CNN, a perceptron, softmax regression, and any ``nn.Module`` of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedwave.errors import ModelError, did_you_mean
from fedwave.learning.models.base import Model
from fedwave.learning.models.cnn import Cnn
from fedwave.learning.models.mlp import Mlp
from fedwave.learning.models.user import UserModel, import_factory

__all__ = ["MODELS", "Cnn", "Mlp", "Model", "UserModel", "build_model"]


def _cnn(
    input_shape: tuple[int, ...], num_classes: int, channels: Sequence[int], hidden: Sequence[int]
) -> Model:
    if len(input_shape) != 3:
        raise ModelError(
            f"model.kind cnn needs images of shape (channels, height, width), got inputs of shape "
            f"{input_shape}. Use the mlp for other data."
        )
    return Cnn((input_shape[0], input_shape[1], input_shape[2]), num_classes, tuple(channels))


def _mlp(
    input_shape: tuple[int, ...], num_classes: int, channels: Sequence[int], hidden: Sequence[int]
) -> Model:
    return Mlp(input_shape, num_classes, tuple(hidden))


def _softmax(
    input_shape: tuple[int, ...], num_classes: int, channels: Sequence[int], hidden: Sequence[int]
) -> Model:
    return Mlp(input_shape, num_classes, ())


MODELS: dict[str, Callable[[tuple[int, ...], int, Sequence[int], Sequence[int]], Model]] = {
    "cnn": _cnn,
    "mlp": _mlp,
    "softmax": _softmax,
}


def build_model(
    kind: str,
    input_shape: tuple[int, ...],
    num_classes: int,
    *,
    channels: Sequence[int] = (32, 64, 128),
    hidden: Sequence[int] = (64,),
) -> Model:
    """Return the model of that kind: a name in ``MODELS`` or ``package.module:factory``."""
    if ":" in kind:
        return UserModel(import_factory(kind), input_shape, num_classes, name=kind)
    if kind not in MODELS:
        raise ModelError(
            f'model.kind must be a model or package.module:factory, got "{kind}". '
            + did_you_mean(kind, MODELS)
        )
    return MODELS[kind](input_shape, num_classes, channels, hidden)
