"""A layer of the CNN for stacks of devices, differentiable twice: convolution, max-pool, bias and LeakyReLU.

Adding a bias and a strictly increasing activation commute with a maximum, so the pool goes first and the
rest runs on a quarter of the data. At fixed maxima and fixed signs a layer is linear in its images, in
its weights and in its bias. So its first derivative is a triple of adjoint products, and the derivative of those, which
a Hessian-vector product needs, is made of the same products: two autograd functions are enough, and they
keep no more than images, weights, outputs and the places of the maxima.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from fedwave.learning.models.convolution_products import (
    OneByOne,
    forward_product,
    input_product,
    weight_product,
)

_KERNEL = [3, 3]
_STRIDE = [2, 2]
_ONE = [1, 1]
Parts = list[tuple[int, slice]]
# Responses computed at once: 1 MB of float32, half of a usual core's cache.
_BLOCK_VALUES = 1 << 18
# From so many samples of each device on, devices are computed one after the other, which keeps a device in the
# cache; with fewer, all at once, which makes fewer and larger calls.
_MIN_SAMPLES = 5


def convolve_and_pool(images: Tensor, weight: Tensor, bias: Tensor, negative_slope: float) -> Tensor:
    """Return LeakyReLU(conv(images) + bias) max-pooled, for each device with its own weights.

    ``images`` is (devices, samples, H, W, C), ``weight`` (devices, C', 3, 3, C), ``bias`` (devices, C');
    the result is (devices, samples, ceil(H/2), ceil(W/2), C').
    """
    outputs: Tensor = _Layer.apply(images, weight, bias, negative_slope)  # type: ignore[no-untyped-call]
    return outputs


class _Layer(Function):
    """The layer itself."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
        height, width = -(-images.shape[2] // 2), -(-images.shape[3] // 2)
        shape = (*images.shape[:2], height, width, weight.shape[1])
        outputs = weight.new_empty(shape)
        places = torch.empty(shape, dtype=torch.int64, device=images.device)
        if len(parts := _parts(images, weight.shape[1])) == 1:
            max_pool(_planes(forward_product(images, weight)), into=(_planes(outputs), _planes(places)))
        else:
            products = OneByOne(images, weight)
            into = _planes(outputs), _planes(places)
            for device, samples in parts:
                max_pool(products.responses(device, samples), into=(into[0][samples], into[1][samples]))
        F.leaky_relu(outputs.add_(bias[:, None, None, None]), slope, inplace=True)
        ctx.save_for_backward(images, weight, outputs, places)
        ctx.slope = slope
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        images, weight, outputs, places = ctx.saved_tensors
        wants = ctx.needs_input_grad[:3]
        return *_Adjoint.apply(images, weight, gradients[0], outputs, places, ctx.slope, wants), None  # type: ignore[no-untyped-call]


class _Adjoint(Function):
    """The gradient in images, weights and bias; its own backward is the second derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        weight: Tensor,
        gradient: Tensor,
        outputs: Tensor,
        places: Tensor,
        slope: float,
        wants: tuple[bool, bool, bool],
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        through = torch.ops.aten.leaky_relu_backward(gradient, outputs, slope, True)
        if len(parts := _parts(images, weight.shape[1])) == 1:
            spread = unpool(through, places, images.shape[2:4])
            to_images = input_product(spread, weight) if wants[0] else None
            to_weight = weight_product(images, spread)
        else:
            to_images, to_weight = _adjoint_one_by_one(images, weight, through, places, parts, wants[0])
        ctx.save_for_backward(images, weight, through, outputs, places)
        ctx.slope = slope
        return to_images, to_weight, through.sum((1, 2, 3))

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, along_images: Tensor | None, along_weight: Tensor | None, along_bias: Tensor | None
    ) -> Any:
        images, weight, through, outputs, places = ctx.saved_tensors
        spread = unpool(through, places, images.shape[2:4])
        to_images = to_weight = None
        along = torch.zeros_like(through)
        if along_weight is not None:
            if ctx.needs_input_grad[0]:
                to_images = input_product(spread, along_weight)
            along += values_at(forward_product(images, along_weight), places)
        if along_images is not None:
            to_weight = weight_product(along_images, spread)
            along += values_at(forward_product(along_images, weight), places)
        if along_bias is not None:
            along += along_bias[:, None, None, None]
        to_gradient = torch.ops.aten.leaky_relu_backward(along, outputs, ctx.slope, True)
        return to_images, to_weight, to_gradient, None, None, None, None


def _adjoint_one_by_one(
    images: Tensor, weight: Tensor, through: Tensor, places: Tensor, parts: Parts, wants_images: bool
) -> tuple[Tensor | None, Tensor]:
    """Return the gradient in images and weights, a device after the other."""
    products = OneByOne(images, weight)
    extent = images.shape[2:4]
    values, where = _planes(through), _planes(places)
    to_images: list[Tensor] = []
    to_weight: list[Tensor] = []
    for device, samples in parts:
        spread = _unpool(values[samples], where[samples], extent)
        own_images, own_weight = products.adjoints(spread, device, samples, wants_images)
        if own_images is not None:
            to_images.append(own_images)
        if device < len(to_weight):
            to_weight[device] += own_weight
        else:
            to_weight.append(own_weight)
    stacked = torch.cat(to_images).permute(0, 2, 3, 1).view(images.shape) if wants_images else None
    return stacked, torch.stack(to_weight)


def max_pool(responses: Tensor, *, into: tuple[Tensor, Tensor]) -> None:
    """Put 3x3 maxima with stride 2 and SAME padding, and where in its plane each is, into two tensors."""
    torch.ops.aten.max_pool2d_with_indices.out(
        responses, _KERNEL, _STRIDE, _padding(responses.shape[2:]), _ONE, True, out=into[0], indices=into[1]
    )


def unpool(values: Tensor, places: Tensor, extent: torch.Size) -> Tensor:
    """Return the adjoint of ``max_pool`` at fixed maxima: each value where its maximum was."""
    spread = _unpool(_planes(values), _planes(places), extent)
    return spread.permute(0, 2, 3, 1).unflatten(0, values.shape[:2])


def _unpool(values: Tensor, places: Tensor, extent: torch.Size) -> Tensor:
    like = values.new_empty(values.shape[0], *extent, values.shape[1]).permute(0, 3, 1, 2)  # for its shape
    spread: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
        values, like, _KERNEL, _STRIDE, _padding(extent), _ONE, True, places
    )
    return spread


def values_at(responses: Tensor, places: Tensor) -> Tensor:
    """Return the responses at the places of the maxima: ``max_pool`` as a linear function."""
    return torch.gather(responses.flatten(2, 3), 2, places.flatten(2, 3)).view(places.shape)


def _parts(images: Tensor, num_responses: int) -> Parts:
    """Return each device with the samples that are computed at once, counted through all devices."""
    devices, samples, height, width, _ = images.shape
    if images.device.type != "cpu" or samples < _MIN_SAMPLES:
        return [(0, slice(0, devices * samples))]
    num_blocks = -(-samples * height * width * num_responses // _BLOCK_VALUES)
    size = -(-samples // num_blocks)
    return [
        (device, slice(start, min(start + size, (device + 1) * samples)))
        for device in range(devices)
        for start in range(device * samples, (device + 1) * samples, size)
    ]


def _padding(extent: torch.Size) -> list[int]:
    """Return torch's padding that gives SAME: a row before an odd extent, none before an even one.

    ``ceil_mode`` adds the row after it.
    """
    return [extent[0] % 2, extent[1] % 2]


def _planes(values: Tensor) -> Tensor:
    """Return (devices, samples, H, W, C) as torch wants to see it, (images, C, H, W), without a copy."""
    return values.flatten(0, 1).permute(0, 3, 1, 2)
