"""Max-pool 3x3 with stride 2 and SAME padding, bias and LeakyReLU, and their derivatives; channels last.

A maximum keeps its place, so that the pool's derivatives are linear functions: ``unpool`` puts values where
the maxima were, ``pick`` takes them from there. Kernels do that in one pass over memory; torch does the same
in several. Their places differ (a tap of the window, a pixel of the plane), their results do not.
"""

from __future__ import annotations

import ctypes

import torch
import torch.nn.functional as F
from torch import Tensor

from fedwave.learning.models.fast_cnn.compiled import kernels_for

_KERNEL = [3, 3]
_STRIDE = [2, 2]
_ONE = [1, 1]


class TorchPooling:
    """The pool as torch has it, for any type and device."""

    places = torch.int64

    def pool(self, responses: Tensor, bias: Tensor, slope: float, outputs: Tensor, places: Tensor) -> None:
        """Put LeakyReLU(maximum + bias) of (images, H, W, C) into ``outputs``, and the maxima's places.

        ``bias`` has a row for each device; all devices have as many images.
        """
        maxima = outputs if outputs.dtype == responses.dtype else responses.new_empty(outputs.shape)
        torch.ops.aten.max_pool2d_with_indices.out(
            _planes(responses),
            _KERNEL,
            _STRIDE,
            _padding(responses),
            _ONE,
            True,
            out=_planes(maxima),
            indices=_planes(places),
        )
        if maxima is not outputs:
            outputs.copy_(maxima)
        outputs.view(len(bias), -1, outputs.shape[-1]).add_(bias[:, None])
        F.leaky_relu(outputs, slope, inplace=True)

    def unpool(
        self,
        gradient: Tensor,
        outputs: Tensor,
        places: Tensor,
        through: Tensor,
        *,
        slope: float,
        spread: Tensor,
    ) -> None:
        """Put the gradient before LeakyReLU into ``through``, and to where maxima were into ``spread``."""
        torch.ops.aten.leaky_relu_backward.grad_input(gradient, outputs, slope, True, grad_input=through)
        torch.ops.aten.max_pool2d_with_indices_backward.grad_input(
            _planes(through.to(spread.dtype)),
            _planes(spread),  # for its shape
            _KERNEL,
            _STRIDE,
            _padding(spread),
            _ONE,
            True,
            _planes(places),
            grad_input=_planes(spread),
        )

    def pick(self, responses: Tensor, places: Tensor, picked: Tensor) -> None:
        """Add the responses at the places of the maxima to ``picked``."""
        taken = torch.gather(responses.flatten(1, 2), 1, places.flatten(1, 2))
        picked += taken.view(places.shape)


class CompiledPooling:
    """The same by kernels, in float32 on a CPU. All tensors are contiguous."""

    places = torch.uint8

    def __init__(self, kernels: ctypes.CDLL) -> None:
        self._kernels = kernels

    def pool(self, responses: Tensor, bias: Tensor, slope: float, outputs: Tensor, places: Tensor) -> None:
        """Put LeakyReLU(maximum + bias) into ``outputs``, and the maxima's places."""
        responses = responses.contiguous()
        self._kernels.fedwave_pool(
            responses.data_ptr(),
            bias.data_ptr(),
            slope,
            *responses.shape,
            len(responses) // len(bias),
            bias.stride(0),
            outputs.data_ptr(),
            places.data_ptr(),
        )

    def unpool(
        self,
        gradient: Tensor,
        outputs: Tensor,
        places: Tensor,
        through: Tensor,
        *,
        slope: float,
        spread: Tensor,
    ) -> None:
        """Put the gradient before LeakyReLU into ``through``, and to where maxima were into ``spread``."""
        self._kernels.fedwave_unpool(
            gradient.data_ptr(),
            outputs.data_ptr(),
            places.data_ptr(),
            through.data_ptr(),
            slope,
            *spread.shape,
            spread.data_ptr(),
        )

    def pick(self, responses: Tensor, places: Tensor, picked: Tensor) -> None:
        """Add the responses at the places of the maxima to ``picked``."""
        responses = responses.contiguous()
        self._kernels.fedwave_pick(
            responses.data_ptr(), places.data_ptr(), *responses.shape, picked.data_ptr()
        )


def pooling_for(responses: Tensor) -> TorchPooling | CompiledPooling:
    """Return the pool for responses like these."""
    kernels = kernels_for(responses)
    return TorchPooling() if kernels is None else CompiledPooling(kernels)


def _padding(responses: Tensor) -> list[int]:
    """Return torch's padding that gives SAME: a row before an odd extent, none before an even one.

    ``ceil_mode`` adds the row after it.
    """
    return [responses.shape[1] % 2, responses.shape[2] % 2]


def _planes(values: Tensor) -> Tensor:
    """Return channels-last memory as torch wants to see it: (images, C, H, W), without a copy."""
    return values.permute(0, 3, 1, 2)
