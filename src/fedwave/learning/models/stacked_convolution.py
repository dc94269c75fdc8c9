"""A 3x3 SAME convolution and a 3x3 stride-2 SAME max-pool for stacks of devices, differentiable twice.

``torch.func.vmap`` turns per-device convolutions into grouped ones, which run far below the speed of a matrix
product. Here a convolution is a patch copy and one batched matrix product over the devices. Images are
channels-last throughout: patches are then runs of contiguous memory, and torch's channels-last max-pool is
vectorised (the contiguous one is several times slower on a CPU). The functions come in adjoint pairs, so that
autograd can differentiate the backward pass again for the Hessian-vector product.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

_KERNEL = 3
_TAPS = _KERNEL * _KERNEL


class _Patches(Function):
    """(images, H, W, C) -> (images, H, W, 9 C): the 3x3 neighbourhood of each pixel, zero outside."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        count, height, width, channels = images.shape
        padded = images.new_zeros(count, height + 2, width + 2, channels)
        padded[:, 1:-1, 1:-1] = images
        by_image, by_row, by_column, _ = padded.stride()
        windows = padded.as_strided(
            (count, height, width, _KERNEL, _KERNEL, channels),
            (by_image, by_row, by_column, by_row, by_column, 1),
        )
        return windows.reshape(count, height, width, _TAPS * channels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return apply(_Overlap, gradients[0])


class _Overlap(Function):
    """The adjoint of ``_Patches``: adds each patch back to where it came from."""

    @staticmethod
    def forward(ctx: Any, patches: Tensor) -> Tensor:
        count, height, width, depth = patches.shape
        taps = patches.reshape(count, height, width, _TAPS, depth // _TAPS)
        padded = patches.new_zeros(count, height + 2, width + 2, depth // _TAPS)
        for tap in range(_TAPS):
            row, column = divmod(tap, _KERNEL)
            padded[:, row : row + height, column : column + width] += taps[:, :, :, tap]
        return padded[:, 1:-1, 1:-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return apply(_Patches, gradients[0])


class _MaxPool(Function):
    """(images, H, W, C) -> (images, ceil(H/2), ceil(W/2), C): 3x3 maxima, stride 2, SAME padding."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        planes = images.permute(0, 3, 1, 2)
        # SAME puts one row before an odd extent and one after, and only one after an even extent. torch's
        # symmetric padding with ceil_mode gives just that, as both extents pad by the same rule.
        padding = [planes.shape[2] % 2, planes.shape[3] % 2]
        pooled, position = F.max_pool2d_with_indices(
            planes, [_KERNEL, _KERNEL], [2, 2], padding=padding, ceil_mode=True
        )
        ctx.save_for_backward(position)
        ctx.extent = tuple(planes.shape)
        return pooled.permute(0, 2, 3, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (position,) = ctx.saved_tensors
        return apply(_Unpool, gradients[0], position, ctx.extent)


class _Unpool(Function):
    """The adjoint of ``_MaxPool`` at fixed maxima: puts each value where its maximum was."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, position: Tensor, extent: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(position)
        ctx.extent = extent
        planes = values.permute(0, 3, 1, 2)
        target = torch.empty(
            extent, dtype=values.dtype, device=values.device, memory_format=torch.channels_last
        )
        spread: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
            planes,
            target,  # only its shape and layout are read
            [_KERNEL, _KERNEL],
            [2, 2],
            [extent[2] % 2, extent[3] % 2],
            [1, 1],
            True,
            position,
        )
        return spread.permute(0, 2, 3, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (position,) = ctx.saved_tensors
        count, channels, height, width = ctx.extent
        flat = gradients[0].reshape(count, height * width, channels)
        where = position.permute(0, 2, 3, 1)
        picked = torch.gather(flat, 1, where.reshape(count, -1, channels))
        return picked.view(where.shape), None, None


def apply(function: type[Function], *inputs: Any) -> Tensor:
    """Return ``function.apply(*inputs)``, typed."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return output


def convolve_and_pool(images: Tensor, weight: Tensor, bias: Tensor, negative_slope: float) -> Tensor:
    """Return LeakyReLU(conv(images) + bias) max-pooled, for each device with its own weights.

    ``images`` is (devices, samples, H, W, C), ``weight`` (devices, 3, 3, C, C'), ``bias`` (devices, C').
    Adding a bias and a strictly increasing activation commute with a maximum, so the pool goes first and the
    rest runs on a quarter of the data.
    """
    devices, samples, height, width, channels = images.shape
    outputs = weight.shape[-1]
    patches = apply(_Patches, images.reshape(devices * samples, height, width, channels))
    responses = torch.bmm(
        patches.reshape(devices, samples * height * width, _TAPS * channels),
        weight.reshape(devices, _TAPS * channels, outputs),
    )
    pooled = apply(_MaxPool, responses.view(devices * samples, height, width, outputs))
    shape = (devices, samples, pooled.shape[1], pooled.shape[2], outputs)
    activated = F.leaky_relu(pooled.reshape(devices, -1, outputs) + bias[:, None], negative_slope)
    return activated.view(shape)
