"""What a device sends: its change to the global model, in full or with fewer bits."""

from __future__ import annotations

import torch
from torch import Tensor

from fedwave.learning.parameters import Parameters, num_parameters

SCALE_BITS = 32  # an 8-bit tensor travels with one float32 scale


def message_bits(parameters: Parameters, bits_per_parameter: int) -> int:
    """Return S, the size of an upload: parameters times bits, and the scales of 8-bit tensors."""
    scales = SCALE_BITS * len(parameters) if bits_per_parameter == 8 else 0
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
    """Return the values rounded to float16."""
    return change.to(torch.float16).to(change.dtype)


def _eight_bits(change: Tensor) -> Tensor:
    """Return the values rounded to 255 evenly spaced levels between plus and minus the largest magnitude."""
    scale = change.abs().max() / 127.0
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))  # all 0, or too small for a float32 scale
    return (change / scale).round() * scale
