"""The 3x3 neighbourhoods of pixels as rows of a matrix, and back: a convolution becomes a matrix product."""

from __future__ import annotations

import torch
from torch import Tensor

from fedwave.learning.models.fast_cnn.compiled import kernels_for

_KERNEL = 3
_TAPS = _KERNEL * _KERNEL
_MIN_CHANNELS = 8  # with fewer, long runs of memory are along the rows


def patches_of(images: Tensor) -> Tensor:
    """Return (devices, samples H W, 9 C): the 3x3 neighbourhood of each pixel, zero outside."""
    devices, samples, height, width, channels = images.shape
    if channels < _MIN_CHANNELS:  # one plane for each tap and channel: long runs of memory to copy
        planes = images.new_zeros(channels, devices, samples, height + 2, width + 2)
        planes[..., 1:-1, 1:-1] = images.permute(4, 0, 1, 2, 3)
        by_channel, by_device, by_sample, by_row, _ = planes.stride()
        windows = planes.as_strided(
            (devices, _KERNEL, _KERNEL, channels, samples, height, width),
            (by_device, by_row, 1, by_channel, by_sample, by_row, 1),
        )
        return windows.reshape(devices, _TAPS * channels, samples * height * width).mT
    if (kernels := kernels_for(images)) is not None:
        images = images.contiguous()
        patches = images.new_empty(devices, samples * height * width, _TAPS * channels)
        kernels.fedwave_patches(
            images.data_ptr(), devices * samples, height, width, channels, patches.data_ptr()
        )
        return patches
    padded = images.new_zeros(devices, samples, height + 2, width + 2, channels)
    padded[:, :, 1:-1, 1:-1] = images
    by_device, by_sample, by_row, by_column, _ = padded.stride()
    windows = padded.as_strided(
        (devices, samples, height, width, _KERNEL, _KERNEL * channels),
        (by_device, by_sample, by_row, by_column, by_row, 1),
    )
    return windows.reshape(devices, samples * height * width, _TAPS * channels)


def overlap_of(patches: Tensor, extent: torch.Size) -> Tensor:
    """Return the adjoint of ``patches_of``: each patch added back to where it came from."""
    devices, samples, height, width = extent
    if (kernels := kernels_for(patches)) is not None:
        patches = patches.contiguous()
        values = patches.new_empty(*extent, patches.shape[-1] // _TAPS)
        kernels.fedwave_overlap(
            patches.data_ptr(), devices * samples, height, width, values.shape[-1], values.data_ptr()
        )
        return values
    taps = patches.view(devices, samples, height, width, _TAPS, -1)
    padded = patches.new_zeros(devices, samples, height + 2, width + 2, taps.shape[-1])
    for tap in range(_TAPS):
        row, column = divmod(tap, _KERNEL)
        padded[:, :, row : row + height, column : column + width] += taps[..., tap, :]
    return padded[:, :, 1:-1, 1:-1].contiguous()
