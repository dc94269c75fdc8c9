"""The three products of a 3x3 SAME convolution for stacks of devices: forward, to the images, to the weights.

Images are channels-last, (devices, samples, H, W, C); weights are (devices, C', 3, 3, C). Devices have
weights of their own, and ``torch.func.vmap`` would make grouped convolutions of that, which run far below
the speed of a matrix product. There are two ways to compute a product, equal but for rounding:

- *direct*: torch's convolution (oneDNN), one device after the other, or one call for all where they share
  their weights. It copies no patches and runs at the speed of a matrix product, given channels and samples
  enough.
- *patches*: a copy of each pixel's neighbourhood and one batched matrix product over the devices. It is for
  few channels or few samples, for double precision and for GPUs.

Which one is taken depends on shapes, type and place alone, never on timing, so that runs repeat to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

_KERNEL = 3
_TAPS = _KERNEL * _KERNEL
_ONE = [1, 1]
_MIN_CHANNELS = 8  # oneDNN has no fast kernel for fewer
_MIN_PIXELS = 256  # of a device; below, patches of many devices at once are faster


def forward_product(images: Tensor, weight: Tensor) -> Tensor:
    """Return the responses (devices, samples, H, W, C') of every device's images to its weights."""
    if _is_direct(images, weight):
        if is_shared(weight):
            return _convolve(images.flatten(0, 1), weight[0]).view(*images.shape[:-1], -1)
        if _is_large(images):
            return torch.stack([_convolve(*pair) for pair in zip(images, weight, strict=True)])
    return torch.bmm(patches_of(images), _as_matrix(weight).mT).view(*images.shape[:-1], -1)


def input_product(responses: Tensor, weight: Tensor) -> Tensor:
    """Return the adjoint of ``forward_product`` in the images, (devices, samples, H, W, C)."""
    if _is_direct(responses, weight):
        if is_shared(weight):
            return _spread(responses.flatten(0, 1), weight[0]).view(*responses.shape[:-1], -1)
        if _is_large(responses):
            return torch.stack([_spread(*pair) for pair in zip(responses, weight, strict=True)])
    return overlap_of(torch.bmm(responses.flatten(1, 3), _as_matrix(weight)), responses.shape[:-1])


def weight_product(images: Tensor, responses: Tensor) -> Tensor:
    """Return the adjoint of ``forward_product`` in the weights, (devices, C', 3, 3, C)."""
    # oneDNN's gradient in the weights has a cost of its own for each weight, which few pixels do not earn.
    if _is_direct(images, responses) and _pixels(images) >= _TAPS * images.shape[-1]:
        return torch.stack([_correlate(*pair) for pair in zip(images, responses, strict=True)])
    product = torch.bmm(responses.flatten(1, 3).mT, patches_of(images))
    return product.view(*product.shape[:2], _KERNEL, _KERNEL, -1)


class OneByOne:
    """The products of one device after the other, on some of its samples at a time.

    Images and responses are seen as torch wants them, (samples, C, H, W) over channels-last memory, and
    samples are counted through all devices, so that few calls are made beside those that compute.
    """

    def __init__(self, images: Tensor, weight: Tensor) -> None:
        self._is_direct = _is_direct(images, weight)
        self._extent = images.shape[2:4]
        if self._is_direct:
            self._images = _planes(images.flatten(0, 1))
            self._weights = [_planes(own) for own in weight.unbind()]
        else:
            patches = patches_of(images).mT  # as (devices, 9 C, samples, H W):
            self._images = patches.view(*patches.shape[:2], images.shape[1], -1)
            self._weights = list(_as_matrix(weight).unbind())

    def responses(self, device: int, samples: slice) -> Tensor:
        """Return the responses of some samples of one device."""
        if self._is_direct:
            return torch.conv2d(self._images[samples], self._weights[device], padding=1)
        responses = self._patches(device, samples).mT @ self._weights[device].mT
        return _planes(responses.view(-1, *self._extent, responses.shape[-1]))

    def adjoints(
        self, responses: Tensor, device: int, samples: slice, wants_images: bool
    ) -> tuple[Tensor | None, Tensor]:
        """Return ``responses`` taken back to the images, and to the weights (C', 3, 3, C)."""
        weight = self._weights[device]
        if self._is_direct:
            to_images, to_weight, _ = _backward(
                responses, self._images[samples], weight, [wants_images, True, False]
            )
            return to_images, to_weight.permute(0, 2, 3, 1)
        matrix = responses.permute(0, 2, 3, 1).reshape(-1, responses.shape[1])
        to_weight = (matrix.mT @ self._patches(device, samples).mT).view(len(weight), _KERNEL, _KERNEL, -1)
        if not wants_images:
            return None, to_weight
        extent = torch.Size((1, len(responses), *self._extent))
        return _planes(overlap_of((matrix @ weight)[None], extent)[0]), to_weight

    def _patches(self, device: int, samples: slice) -> Tensor:
        """Return the patches of some samples as a matrix (9 C, pixels)."""
        first = device * self._images.shape[2]
        return self._images[device, :, samples.start - first : samples.stop - first].flatten(1)


def is_shared(weight: Tensor) -> bool:
    """Return whether all devices have the same weights in the same memory, as ``stack_copies`` makes them."""
    return weight.shape[0] == 1 or weight.stride(0) == 0


def _is_large(values: Tensor) -> bool:
    """Return whether one device has pixels enough for a call of its own."""
    return _pixels(values) >= _MIN_PIXELS


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
    taps = patches.view(devices, samples, height, width, _TAPS, -1)
    padded = patches.new_zeros(devices, samples, height + 2, width + 2, taps.shape[-1])
    for tap in range(_TAPS):
        row, column = divmod(tap, _KERNEL)
        padded[:, :, row : row + height, column : column + width] += taps[..., tap, :]
    return padded[:, :, 1:-1, 1:-1].contiguous()


def _is_direct(values: Tensor, other: Tensor) -> bool:
    """Return whether oneDNN has these: both operands have channels last."""
    return (
        values.device.type == "cpu"
        and values.dtype in (torch.float32, torch.bfloat16)
        and min(values.shape[-1], other.shape[-1]) >= _MIN_CHANNELS
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )


def _pixels(values: Tensor) -> int:
    return values.shape[1] * values.shape[2] * values.shape[3]


def _as_matrix(weight: Tensor) -> Tensor:
    return weight.reshape(*weight.shape[:2], -1)


def _convolve(images: Tensor, weight: Tensor) -> Tensor:
    """Return the responses of one device."""
    return torch.conv2d(_planes(images), _planes(weight), padding=1).permute(0, 2, 3, 1)


def _spread(responses: Tensor, weight: Tensor) -> Tensor:
    """Return ``input_product`` of one device."""
    like = responses.new_empty(*responses.shape[:3], weight.shape[-1])  # only its shape is read
    back = _backward(_planes(responses), _planes(like), _planes(weight), [True, False, False])
    return back[0].permute(0, 2, 3, 1)


def _correlate(images: Tensor, responses: Tensor) -> Tensor:
    """Return ``weight_product`` of one device."""
    like = images.new_empty(responses.shape[-1], _KERNEL, _KERNEL, images.shape[-1])  # only its shape is read
    back = _backward(_planes(responses), _planes(images), _planes(like), [False, True, False])
    return back[1].permute(0, 2, 3, 1)


def _backward(
    responses: Tensor, images: Tensor, weight: Tensor, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    back: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        responses, images, weight, None, _ONE, _ONE, _ONE, False, [0, 0], 1, wanted
    )
    return back


def _planes(values: Tensor) -> Tensor:
    """Return channels-last memory as torch wants to see it: (samples, C, H, W), without a copy."""
    return values.permute(0, 3, 1, 2)
