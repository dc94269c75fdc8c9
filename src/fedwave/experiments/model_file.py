"""A trained model from a file, to start from."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file

from fedwave.errors import ModelError
from fedwave.learning import Model, Parameters


def load_parameters(path: Path, model: Model) -> Parameters:
    """Return the parameters in a ``model.safetensors``, which must be those of this model."""
    try:
        state = load_file(path)
    except FileNotFoundError as error:
        raise ModelError(f"model.path {path} does not exist. Give the model.safetensors of a run.") from error
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"model.path {path} cannot be read as safetensors ({reason}). Give a run's model.safetensors."
        ) from error
    return model.from_state_dict(state)
