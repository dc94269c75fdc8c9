"""The compiled kernels for what a layer does beside products, where they can be built and are of use."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import Tensor

from fedwave.learning.models.fast_cnn import kernel_check
from fedwave.native_library import Source, library

KERNELS = Source(
    name="kernels",
    file=Path(__file__).with_name("kernels.c"),
    check=kernel_check,
    what="the CNN's kernels",
    without="torch alone is slower, to the same bits",
)


def kernels_for(values: Tensor) -> ctypes.CDLL | None:
    """Return the kernels if there are any for such values: float32 in the CPU's memory."""
    is_here = values.device.type == "cpu" and values.dtype == torch.float32
    return library(KERNELS) if is_here else None
