"""The three products of a 3x3 SAME convolution for stacks of devices: forward, to the images, to the weights.

Images are channels-last, (devices, samples, H, W, C); weights are (devices, C', 3, 3, C). Devices have
weights of their own, and ``torch.func.vmap`` would make grouped convolutions of that, which run far below
the speed of a matrix product. There are two ways to compute a product, equal but for rounding:

- *direct*: torch's convolution (oneDNN), one device after the other. It copies no patches and runs at the
  speed of a matrix product, given channels and samples enough.
- *patches*: a copy of each pixel's neighbourhood and one batched matrix product over the devices. It is for
  few channels or few samples, for double precision and for GPUs.

Which one is taken depends on shapes, type and place alone, never on timing, so that runs repeat to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedwave.learning.models.fast_cnn.patches import overlap_of, patches_of

_KERNEL = 3
_ONE = [1, 1]
_MIN_CHANNELS = 8  # oneDNN has no fast kernel for fewer
# From so many samples of each device on, devices are computed one after the other, which keeps a device in
# the cache; with fewer, all at once, which makes fewer and larger calls.
_MIN_SAMPLES = 5
# Responses computed at once: 1 MB of float32, half of a usual core's cache.
_BLOCK_VALUES = 1 << 18


class Patches:
    """The products of all devices at once; each takes the same copy of the patches."""

    def __init__(self, images: Tensor) -> None:
        self._extent = images.shape[:-1]
        self._patches = patches_of(images)

    def forward(self, weight: Tensor) -> Tensor:
        """Return the responses (devices, samples, H, W, C') of every device's images to its weights."""
        return torch.bmm(self._patches, _as_matrix(weight).mT).view(*self._extent, -1)

    def to_weight(self, responses: Tensor) -> Tensor:
        """Return the adjoint of ``forward`` in the weights, (devices, C', 3, 3, C)."""
        product = torch.bmm(responses.flatten(1, 3).mT, self._patches)
        return product.view(*product.shape[:2], _KERNEL, _KERNEL, -1)


class Direct:
    """The same products, by a convolution for each device."""

    def __init__(self, images: Tensor) -> None:
        self._images = images

    def forward(self, weight: Tensor) -> Tensor:
        """Return the responses of every device's images to its weights."""
        pairs = zip(self._images, weight, strict=True)
        return torch.stack(
            [torch.conv2d(_planes(x), _planes(w), padding=1).permute(0, 2, 3, 1) for x, w in pairs]
        )

    def to_weight(self, responses: Tensor) -> Tensor:
        """Return the adjoint of ``forward`` in the weights."""
        like = responses.new_empty(responses.shape[-1], _KERNEL, _KERNEL, self._images.shape[-1])  # a shape
        pairs = zip(self._images, responses, strict=True)
        backs = [_backward(_planes(r), _planes(x), _planes(like), [False, True, False]) for x, r in pairs]
        return torch.stack([back[1].permute(0, 2, 3, 1) for back in backs])


def products_of(images: Tensor, num_responses: int) -> Patches | Direct:
    """Return the way in which products with these images are computed."""
    if has_many_samples(images) and _is_direct(images, num_responses):
        return Direct(images)
    return Patches(images)


def input_product(responses: Tensor, weight: Tensor) -> Tensor:
    """Return the adjoint of ``forward`` in the images, (devices, samples, H, W, C)."""
    if _is_direct(responses, weight.shape[-1]):
        if is_shared(weight):
            return _spread(responses.flatten(0, 1), weight[0]).view(*responses.shape[:-1], -1)
        if has_many_samples(responses):
            return torch.stack([_spread(*pair) for pair in zip(responses, weight, strict=True)])
    return overlap_of(torch.bmm(responses.flatten(1, 3), _as_matrix(weight)), responses.shape[:-1])


def has_many_samples(images: Tensor) -> bool:
    """Return whether each device has samples enough to be computed alone."""
    return images.device.type == "cpu" and images.shape[1] >= _MIN_SAMPLES


def is_shared(weight: Tensor) -> bool:
    """Return whether all devices have the same weights in the same memory, as ``stack_copies`` makes them."""
    return weight.shape[0] == 1 or weight.stride(0) == 0


class AllAtOnce:
    """A layer's products of all devices together, seen as ``OneByOne`` shows them: as a single part."""

    def __init__(self, images: Tensor, weight: Tensor) -> None:
        devices, samples = images.shape[:2]
        self.sizes = [devices * samples]
        self.devices = [slice(0, devices)]
        self.images = products_of(images, weight.shape[1])
        self._weight = weight

    def responses(self, _: int) -> Tensor:
        """Return all responses, (images, H, W, C')."""
        return self.images.forward(self._weight).flatten(0, 1)

    def adjoints(self, _: int, responses: Tensor, wants_images: bool) -> tuple[Tensor | None, Tensor]:
        """Return ``responses`` taken back to the images (images, H, W, C), and to the weights."""
        stacked = responses.view(self._weight.shape[0], -1, *responses.shape[1:])
        to_images = input_product(stacked, self._weight).flatten(0, 1) if wants_images else None
        return to_images, self.images.to_weight(stacked)

    def of_devices(self, to_weight: list[Tensor]) -> Tensor:
        """Return what all parts gave to the weights, (devices, C', 3, 3, C)."""
        return to_weight[0]


class OneByOne:
    """The products of one device after the other, in parts that hold some samples of one device."""

    def __init__(self, images: Tensor, weight: Tensor) -> None:
        devices, samples, height, width, _ = images.shape
        most = -(-samples // -(-samples * height * width * weight.shape[1] // _BLOCK_VALUES))
        own_sizes = [min(most, samples - start) for start in range(0, samples, most)]
        self.sizes = own_sizes * devices  # samples of each part, in order
        self.devices = [slice(device, device + 1) for device in range(devices) for _ in own_sizes]
        self._stack, self._extent = images, images.shape[2:4]
        self._is_direct = _is_direct(images, weight.shape[1])
        if self._is_direct:
            self._images = torch.split_with_sizes(_planes(images.flatten(0, 1)), self.sizes)
            self._weights = [_planes(own) for own in weight.unbind()]
        else:
            own_pixels = [size * height * width for size in own_sizes]
            self._images = tuple(
                p for own in patches_of(images).unbind() for p in torch.split_with_sizes(own, own_pixels)
            )
            self._weights = list(_as_matrix(weight).unbind())

    @property
    def images(self) -> Patches | Direct:
        """The products of all devices, for the second derivative."""
        return products_of(self._stack, self._weights[0].shape[0])

    def responses(self, part: int) -> Tensor:
        """Return the responses of a part, (samples, H, W, C')."""
        images, weight = self._images[part], self._weights[self.devices[part].start]
        if self._is_direct:
            return torch.conv2d(images, weight, padding=1).permute(0, 2, 3, 1)
        return torch.mm(images, weight.t()).view(-1, *self._extent, weight.shape[0])

    def adjoints(self, part: int, responses: Tensor, wants_images: bool) -> tuple[Tensor | None, Tensor]:
        """Return ``responses`` taken back to the images (samples, H, W, C), and to the weights."""
        images, weight = self._images[part], self._weights[self.devices[part].start]
        if self._is_direct:
            to_images, to_weight, _ = _backward(
                _planes(responses), images, weight, [wants_images, True, False]
            )
            return to_images.permute(0, 2, 3, 1) if wants_images else None, to_weight.permute(0, 2, 3, 1)
        matrix = responses.flatten(0, 2)
        to_weight = torch.mm(matrix.t(), images).view(weight.shape[0], _KERNEL, _KERNEL, -1)
        if not wants_images:
            return None, to_weight
        extent = torch.Size((1, responses.shape[0], *self._extent))
        return overlap_of(torch.mm(matrix, weight)[None], extent)[0], to_weight

    def of_devices(self, to_weight: list[Tensor]) -> Tensor:
        """Return what all parts gave to the weights, (devices, C', 3, 3, C), summed over a device's parts."""
        stacked, num_devices = torch.stack(to_weight), len(self._weights)
        if len(to_weight) == num_devices:
            return stacked
        return stacked.view(num_devices, -1, *stacked.shape[1:]).sum(1)


def _is_direct(values: Tensor, num_others: int) -> bool:
    """Return whether oneDNN has these: channels enough on both sides of the product."""
    return (
        values.device.type == "cpu"
        and values.dtype in (torch.float32, torch.bfloat16)
        and min(values.shape[-1], num_others) >= _MIN_CHANNELS
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )


def _as_matrix(weight: Tensor) -> Tensor:
    return weight.reshape(*weight.shape[:2], -1)


def _spread(responses: Tensor, weight: Tensor) -> Tensor:
    """Return ``input_product`` of one device."""
    like = responses.new_empty(*responses.shape[:3], weight.shape[-1])  # only its shape is read
    back = _backward(_planes(responses), _planes(like), _planes(weight), [True, False, False])
    return back[0].permute(0, 2, 3, 1)


def _backward(
    responses: Tensor, images: Tensor, weight: Tensor, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    back: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward.default(
        responses, images, weight, None, _ONE, _ONE, _ONE, False, [0, 0], 1, wanted
    )
    return back


def _planes(values: Tensor) -> Tensor:
    """Return channels-last memory as torch wants to see it: (samples, C, H, W), without a copy."""
    return values.permute(0, 3, 1, 2)
