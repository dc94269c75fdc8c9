"""Compiled kernels for what a layer of the CNN does beside products; torch alone does the same, slower."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from fedwave.learning.compiled.library import kernels

__all__ = ["kernels_for"]


def kernels_for(values: Tensor) -> ctypes.CDLL | None:
    """Return the kernels if there are any for such values: float32 in the CPU's memory."""
    is_here = values.device.type == "cpu" and values.dtype == torch.float32
    return kernels() if is_here else None
