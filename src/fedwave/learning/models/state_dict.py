"""Whether a state dict, say from a model file, fits a model."""

from __future__ import annotations

from fedwave.errors import ModelError
from fedwave.learning.parameters import Parameters

_ADVICE = "Give the model the kind and sizes of the one that was saved."


def require_layout(state: Parameters, like: Parameters) -> None:
    """Raise unless ``state`` has the names, shapes and types of ``like``."""
    _refuse_names("lacks", [name for name in like if name not in state])
    _refuse_names("has an unknown", [name for name in state if name not in like])
    for name, expected in like.items():
        if state[name].shape != expected.shape:
            raise ModelError(
                f"{name} of the state dict must have shape {tuple(expected.shape)}, got "
                f"{tuple(state[name].shape)}. {_ADVICE}"
            )
        if state[name].dtype != expected.dtype:
            raise ModelError(
                f"{name} of the state dict must be {expected.dtype}, got {state[name].dtype}. "
                "Convert the tensors before they are loaded."
            )


def _refuse_names(what: str, names: list[str]) -> None:
    if names:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise ModelError(f"The state dict {what} {names[0]}{others}. {_ADVICE}")
