"""Hessians of a stack of losses, never formed: their products with vectors, and spectral norms from those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fedwave.learning.meta_gradient import hessian_product
from fedwave.learning.objective import Loss, loss_and_gradient
from fedwave.learning.parameters import Parameters, stack_copies, with_gradients

Product = Callable[[Tensor], Tensor]  # a stack of vectors (stack, numbers) in, a stack of vectors out


class StackedHessian:
    """The Hessians of a stack of losses at one model, and their gradients there.

    ``batches`` are chunks of the stack, each computed at once. The graphs are made once and kept, so that a
    product costs one backward pass.
    """

    def __init__(self, loss: Loss, parameters: Parameters, batches: Sequence[Any]) -> None:
        self._graphs: list[tuple[Parameters, Parameters]] = []
        for batch in batches:
            theta = with_gradients(stack_copies(parameters, batch.num_devices))
            _, gradient = loss_and_gradient(loss, theta, batch, create_graph=True)
            self._graphs.append((theta, gradient))
        self.gradient = torch.cat([as_rows(gradient).detach() for _, gradient in self._graphs])

    def product(self, vectors: Tensor) -> Tensor:
        """Return each one's Hessian times its vector; both are (stack, numbers)."""
        images, first = [], 0
        for theta, gradient in self._graphs:
            count = len(next(iter(theta.values())))
            own = from_rows(vectors[first : first + count], theta)
            images.append(as_rows(hessian_product(gradient, theta, own, keeps_graph=True)))
            first += count
        return torch.cat(images).detach()


def spectral_norms(
    product: Product, start: Tensor, *, num_iterations: int, first_image: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the spectral norms, from below, of stacked symmetric matrices; vectors that show them; images.

    Lanczos from ``start``, with full reorthogonalisation: the norms, (stack,), are the largest ||A v|| of
    unit vectors v in the space of so many products. They grow with its size, to the true ones at the latest
    when it is the matrices'; one product gives the length of the first image. ``first_image`` is that of a
    ``start`` of length one, where it is known.
    """
    vector = _of_length_one(start)
    basis: list[Tensor] = []
    images: list[Tensor] = []
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for _ in range(num_iterations):
        basis.append(vector)
        image = product(vector) if images or first_image is None else first_image
        images.append(image)
        diagonal.append(_dot(vector, image))
        for _ in range(2):  # once leaves rounding errors of the first vectors in the later ones
            for other in basis:
                image = image - _dot(other, image)[:, None] * other
        scale = torch.stack([*map(torch.abs, diagonal), *beside]).amax(0)
        length = torch.linalg.vector_norm(image, dim=1)
        # What is left of a space that holds its own images is rounding alone: nothing is to be found in it.
        length = torch.where(length > 1e-5 * scale, length, torch.zeros_like(length))
        beside.append(length)
        vector = torch.where(length[:, None] > 0, image, torch.zeros_like(image))
        vector = _of_length_one(vector)
    # A on the basis is tridiagonal, with one row more than columns: the last image leaves the space.
    small = torch.zeros(len(start), num_iterations + 1, num_iterations, dtype=torch.float64)
    for at, (own, beyond) in enumerate(zip(diagonal, beside, strict=True)):
        small[:, at, at], small[:, at + 1, at] = own.double(), beyond.double()
        if at + 1 < num_iterations:
            small[:, at, at + 1] = beyond.double()
    _, values, directions = torch.linalg.svd(small)
    weights = directions[:, 0].to(start)
    shown, image = (torch.einsum("sk,ksn->sn", weights, torch.stack(own)) for own in (basis, images))
    return values[:, 0], shown, image


def as_rows(parameters: Parameters) -> Tensor:
    """Return a stack of models, or of gradients, as a matrix: a row for each."""
    return torch.cat([value.flatten(1) for value in parameters.values()], dim=1)


def from_rows(rows: Tensor, like: Parameters) -> Parameters:
    """Return such a matrix as a stack of models with the names and shapes of ``like``."""
    sizes = [value[0].numel() for value in like.values()]
    parts = torch.split(rows, sizes, dim=1)
    return {name: part.reshape(value.shape) for (name, value), part in zip(like.items(), parts, strict=True)}


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(1)


def _of_length_one(vectors: Tensor) -> Tensor:
    """Return the rows divided by their lengths; rows of zero stay zero."""
    lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / torch.where(lengths > 0, lengths, torch.ones_like(lengths))
