"""What a device sends: its change to the global model, in full or with fewer bits."""

from __future__ import annotations

import torch
from torch import Tensor

from fedwave.learning.parameters import Parameters, num_parameters

SCALE_BITS = 32  # a tensor of fewer bits travels with one float32 scale


def message_bits(parameters: Parameters, bits_per_parameter: int) -> int:
    """Return S, the size of an upload: parameters times bits, and a scale for each tensor of fewer bits."""
    scales = SCALE_BITS * len(parameters) if bits_per_parameter < 32 else 0
    return bits_per_parameter * num_parameters(parameters) + scales


def received_model(sent_from: Parameters, local: Parameters, bits_per_parameter: int) -> Parameters:
    """Return the local model as the server has it after the upload.

    With 32 bits it is the local model itself, Eq. (6). With fewer, the device sends the rounded *change* to
    the global model, which the server adds back: the same number of bits spent on the model itself would
    round away a small step, see docs/deviations.md#quantised-uploads.
    """
    if bits_per_parameter == 32:
        return local
    rounded = _half if bits_per_parameter == 16 else _eight_bits
    return {name: sent_from[name] + rounded(value - sent_from[name]) for name, value in local.items()}


def _half(change: Tensor) -> Tensor:
    """Return the values rounded to float16 after their largest magnitude is brought to 1.

    Without that scale, changes below 6e-8 would vanish and those above 65504 overflow.
    """
    scale = _scale(change)
    return (change / scale).to(torch.float16).to(change.dtype) * scale


def _eight_bits(change: Tensor) -> Tensor:
    """Return the values rounded to 255 evenly spaced levels between plus and minus the largest magnitude."""
    scale = _scale(change, levels=127.0)
    return (change / scale).round() * scale


def _scale(change: Tensor, *, levels: float = 1.0) -> Tensor:
    """Return the size of one level; 1 where all is 0, or too small for a float32 scale."""
    scale = change.abs().max() / levels
    return torch.where(scale > 0, scale, torch.ones_like(scale))
