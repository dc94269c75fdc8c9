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
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from fedwave.learning.models.fast_cnn.convolution_products import (
    AllAtOnce,
    OneByOne,
    has_many_samples,
    input_product,
    is_shared,
    products_of,
)
from fedwave.learning.models.fast_cnn.pooling import pooling_for
from fedwave.learning.precision import product_type


def convolve_and_pool(images: Tensor, weight: Tensor, bias: Tensor, negative_slope: float) -> Tensor:
    """Return LeakyReLU(conv(images) + bias) max-pooled, for each device with its own weights.

    ``images`` is (devices, samples, H, W, C), ``weight`` (devices, C', 3, 3, C), ``bias`` (devices, C');
    the result is (devices, samples, ceil(H/2), ceil(W/2), C').
    """
    # The layer itself rounds the operands of its products, so that there is nothing left for autocast to do.
    outputs: Tensor = _Layer.apply(  # type: ignore[no-untyped-call]
        images.to(weight.dtype), weight, bias, negative_slope, product_type(weight)
    )
    return outputs


class _Layer(Function):
    """The layer itself; the operands of its products are of the type ``kind``."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, slope: float, kind: torch.dtype
    ) -> Tensor:
        rounded = images.to(kind)
        pooling = pooling_for(rounded)
        height, width = -(-images.shape[2] // 2), -(-images.shape[3] // 2)
        outputs = weight.new_empty(*images.shape[:2], height, width, weight.shape[1])
        places = torch.empty(outputs.shape, dtype=pooling.places, device=images.device)
        way = OneByOne if has_many_samples(images) else AllAtOnce
        products = way(rounded, _rounded(weight, kind))
        parts = zip(products.devices, *_split(products, outputs, places), strict=True)
        for part, (devices, *into) in enumerate(parts):
            pooling.pool(products.responses(part), bias[devices], slope, *into)
        ctx.save_for_backward(images, weight, outputs, places)
        ctx.fixed = (slope, kind, products)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        images, weight, outputs, places = ctx.saved_tensors
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
        products: OneByOne | AllAtOnce,
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        gradient = gradient.contiguous()
        through = torch.empty_like(outputs)
        shape = (max(products.sizes), *images.shape[2:4], weight.shape[1])
        buffer = torch.empty(shape, dtype=kind, device=images.device)
        pooling = pooling_for(buffer)
        to_images: list[Tensor] = []
        to_weight: list[Tensor] = []
        for part, own in enumerate(zip(*_split(products, gradient, outputs, places, through), strict=True)):
            spread = buffer[: products.sizes[part]]
            pooling.unpool(*own, slope=slope, spread=spread)
            own_images, own_weight = products.adjoints(part, spread, wants_images)
            if own_images is not None:
                to_images.append(own_images)
            to_weight.append(own_weight)
        ctx.save_for_backward(images, weight, gradient, outputs, places)
        ctx.fixed = (slope, kind, products)
        return (
            torch.cat(to_images).view(images.shape).to(images.dtype) if wants_images else None,
            products.of_devices(to_weight).to(weight.dtype),
            through.sum((1, 2, 3)),
        )

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, along_images: Tensor | None, along_weight: Tensor | None, along_bias: Tensor | None
    ) -> Any:
        images, weight, gradient, outputs, places = ctx.saved_tensors
        slope, kind, products = ctx.fixed
        to_images = to_weight = None
        along = torch.zeros_like(outputs)
        spread = torch.empty(*images.shape[:4], weight.shape[1], dtype=kind, device=images.device)
        pooling = pooling_for(spread)
        through = torch.empty_like(outputs)
        flat = [one.flatten(0, 1) for one in (gradient, outputs, places, through)]
        pooling.unpool(*flat, slope=slope, spread=spread.flatten(0, 1))
        if along_weight is not None:
            direction = along_weight.to(kind)
            if ctx.needs_input_grad[0]:
                to_images = input_product(spread, direction).to(images.dtype)
            responses = products.images.forward(direction)
            pooling.pick(responses.flatten(0, 1), flat[2], along.flatten(0, 1))
        if along_images is not None:
            directions = products_of(along_images.to(kind), weight.shape[1])
            to_weight = directions.to_weight(spread).to(weight.dtype)
            responses = directions.forward(_rounded(weight, kind))
            pooling.pick(responses.flatten(0, 1), flat[2], along.flatten(0, 1))
        if along_bias is not None:
            along += along_bias[:, None, None, None]
        to_gradient = torch.ops.aten.leaky_relu_backward(along, outputs, slope, True)
        return to_images, to_weight, to_gradient, *[None] * 6


def _rounded(weight: Tensor, kind: torch.dtype) -> Tensor:
    """Return the weights in another type; what devices share they still share."""
    return weight[:1].to(kind).expand_as(weight) if is_shared(weight) else weight.to(kind)


def _split(products: OneByOne | AllAtOnce, *stacks: Tensor) -> list[tuple[Tensor, ...]]:
    """Return the parts of each (devices, samples, ...), as views."""
    return [torch.split_with_sizes(stack.flatten(0, 1), products.sizes) for stack in stacks]
