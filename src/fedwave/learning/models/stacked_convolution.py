"""A layer of the CNN for stacks of devices, differentiable twice: convolution, max-pool, bias and LeakyReLU.

Adding a bias and a strictly increasing activation commute with a maximum, so the pool goes first and the
rest runs on a quarter of the data. At fixed maxima and fixed signs a layer is linear in its images, in its
weights and in its bias. So its first derivative is made of adjoint products, and the derivative of those,
which a Hessian-vector product needs, of the same products: two autograd functions are enough, and they keep
no more than images, weights, outputs and the places of the maxima.
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
    is_shared,
    weight_product,
)
from fedwave.learning.precision import product_type

_KERNEL = [3, 3]
_STRIDE = [2, 2]
_ONE = [1, 1]
Parts = list[tuple[int, slice]]
# Responses computed at once: 1 MB of float32, half of a usual core's cache.
_BLOCK_VALUES = 1 << 18
# From so many samples of each device on, devices are computed one after the other, which keeps a device in
# the cache; with fewer, all at once, which makes fewer and larger calls.
_MIN_SAMPLES = 5


def convolve_and_pool(images: Tensor, weight: Tensor, bias: Tensor, negative_slope: float) -> Tensor:
    """Return LeakyReLU(conv(images) + bias) max-pooled, for each device with its own weights.

    ``images`` is (devices, samples, H, W, C), ``weight`` (devices, C', 3, 3, C), ``bias`` (devices, C');
    the result is (devices, samples, ceil(H/2), ceil(W/2), C').
    """
    kind = product_type(weight)
    with torch.autocast(images.device.type, enabled=False):  # the layer itself rounds the operands
        outputs: Tensor = _Layer.apply(  # type: ignore[no-untyped-call]
            images.to(weight.dtype), weight, bias, negative_slope, kind
        )
    return outputs


class _Layer(Function):
    """The layer itself; the operands of its products are of the type ``kind``."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, slope: float, kind: torch.dtype
    ) -> Tensor:
        rounded, rounded_weight = images.to(kind), _rounded(weight, kind)
        height, width = -(-images.shape[2] // 2), -(-images.shape[3] // 2)
        shape = (*images.shape[:2], height, width, weight.shape[1])
        maxima = rounded.new_empty(shape)
        places = torch.empty(shape, dtype=torch.int64, device=images.device)
        into = _planes(maxima), _planes(places)
        products = None
        if len(parts := _parts(images, weight.shape[1])) == 1:
            max_pool(_planes(forward_product(rounded, rounded_weight)), into=into)
        else:
            products = OneByOne(rounded, rounded_weight)
            for device, samples in parts:
                max_pool(products.responses(device, samples), into=(into[0][samples], into[1][samples]))
        outputs = maxima.to(weight.dtype).add_(bias[:, None, None, None])
        F.leaky_relu(outputs, slope, inplace=True)
        ctx.save_for_backward(images, weight, outputs, places)
        ctx.fixed = (slope, kind, products)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        images, weight, outputs, places = ctx.saved_tensors
        with torch.autocast(images.device.type, enabled=False):
            adjoints = _Adjoint.apply(  # type: ignore[no-untyped-call]
                images, weight, gradients[0], outputs, places, ctx.needs_input_grad[0], *ctx.fixed
            )
        return *adjoints, None, None


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
        wants_images: bool,
        slope: float,
        kind: torch.dtype,
        products: OneByOne | None,
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        through = torch.ops.aten.leaky_relu_backward(gradient, outputs, slope, True)
        rounded = through.to(kind)
        to_images: Tensor | None = None
        if products is None:
            spread = unpool(rounded, places, images.shape[2:4])
            if wants_images:
                to_images = input_product(spread, _rounded(weight, kind))
            to_weight = weight_product(images.to(kind), spread)
        else:
            parts = _parts(images, weight.shape[1])
            to_images, to_weight = _adjoint_one_by_one(
                products, parts, rounded, places, images.shape, wants_images
            )
        ctx.save_for_backward(images, weight, rounded, outputs, places)
        ctx.fixed = (slope, kind)
        to_images = None if to_images is None else to_images.to(images.dtype)
        return to_images, to_weight.to(weight.dtype), through.sum((1, 2, 3))

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, along_images: Tensor | None, along_weight: Tensor | None, along_bias: Tensor | None
    ) -> Any:
        images, weight, rounded, outputs, places = ctx.saved_tensors
        slope, kind = ctx.fixed
        to_images = to_weight = None
        along = torch.zeros_like(outputs)
        with torch.autocast(images.device.type, enabled=False):
            spread = unpool(rounded, places, images.shape[2:4])
            if along_weight is not None:
                direction = along_weight.to(kind)
                if ctx.needs_input_grad[0]:
                    to_images = input_product(spread, direction).to(images.dtype)
                along += values_at(forward_product(images.to(kind), direction), places)
            if along_images is not None:
                direction = along_images.to(kind)
                to_weight = weight_product(direction, spread).to(weight.dtype)
                along += values_at(forward_product(direction, _rounded(weight, kind)), places)
            if along_bias is not None:
                along += along_bias[:, None, None, None]
            to_gradient = torch.ops.aten.leaky_relu_backward(along, outputs, slope, True)
        return to_images, to_weight, to_gradient, *[None] * 6


def _rounded(weight: Tensor, kind: torch.dtype) -> Tensor:
    """Return the weights in another type; what devices share they still share."""
    return weight[:1].to(kind).expand_as(weight) if is_shared(weight) else weight.to(kind)


def _adjoint_one_by_one(
    products: OneByOne, parts: Parts, through: Tensor, places: Tensor, shape: torch.Size, wants_images: bool
) -> tuple[Tensor | None, Tensor]:
    """Return the gradient in images and weights, a device after the other."""
    values, where = _planes(through), _planes(places)
    to_images: list[Tensor] = []
    to_weight: list[Tensor] = []
    for device, samples in parts:
        spread = _unpool(values[samples], where[samples], shape[2:4])
        own_images, own_weight = products.adjoints(spread, device, samples, wants_images)
        if own_images is not None:
            to_images.append(own_images)
        if device < len(to_weight):
            to_weight[device] += own_weight
        else:
            to_weight.append(own_weight)
    stacked = torch.cat(to_images).permute(0, 2, 3, 1).view(shape) if wants_images else None
    return stacked, torch.stack(to_weight)


def max_pool(responses: Tensor, *, into: tuple[Tensor, Tensor]) -> None:
    """Put 3x3 maxima with stride 2 and SAME padding, and where in its plane each is, into two tensors."""
    torch.ops.aten.max_pool2d_with_indices.out(
        responses, _KERNEL, _STRIDE, _padding(responses.shape[2:]), _ONE, True, out=into[0], indices=into[1]
    )


def unpool(values: Tensor, places: Tensor, extent: torch.Size) -> Tensor:
    """Return the adjoint of ``max_pool`` at fixed maxima: each value where its maximum was."""
    spread = _unpool(_planes(values), _planes(places), extent)
    return spread.permute(0, 2, 3, 1).view(*values.shape[:2], *extent, -1)


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
