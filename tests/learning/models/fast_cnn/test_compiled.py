"""The compiled kernels against torch's own pool, to the bit."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch import Tensor

from fedwave.learning.models import Cnn
from fedwave.learning.models.fast_cnn import patches as patches_module
from fedwave.learning.models.fast_cnn import pooling as pooling_module
from fedwave.learning.models.fast_cnn.compiled import KERNELS, kernels_for
from fedwave.learning.models.fast_cnn.patches import overlap_of, patches_of
from fedwave.learning.models.fast_cnn.pooling import CompiledPooling, TorchPooling
from fedwave.native_library import library

SLOPE = 0.2
EXTENTS = [
    (6, 28, 28, 32),
    (4, 7, 7, 128),
    (3, 9, 8, 5),
    (2, 5, 4, 17),
    (1, 1, 1, 3),
    (2, 2, 1, 16),
    (4, 3, 6, 33),
]

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: torch alone is used")


def pooled(way: TorchPooling | CompiledPooling, extent: tuple[int, int, int, int]) -> list[Tensor]:
    """Outputs, both gradients and picked values; values are coarse, so that windows have equal maxima."""
    images, height, width, channels = extent
    draw = torch.Generator().manual_seed(5)
    devices = 2 if images % 2 == 0 else 1
    shape = (images, -(-height // 2), -(-width // 2), channels)
    responses = torch.randn(extent, generator=draw).mul(2).round() / 2
    bias, gradient = torch.randn(devices, channels, generator=draw), torch.randn(shape, generator=draw)
    outputs, places = torch.empty(shape), torch.empty(shape, dtype=way.places)
    way.pool(responses, bias, SLOPE, outputs, places)
    through, spread = torch.empty(shape), torch.empty(extent)
    way.unpool(gradient, outputs, places, through, slope=SLOPE, spread=spread)
    picked = torch.ones(shape)
    way.pick(torch.randn(extent, generator=draw), places, picked)
    return [outputs, through, spread, picked]


@needs_compiler
@pytest.mark.parametrize("extent", EXTENTS, ids=str)
def test_the_pool_and_its_derivatives_are_those_of_torch_to_the_bit(
    extent: tuple[int, int, int, int],
) -> None:
    kernels = library(KERNELS)
    assert kernels is not None
    for got, expected in zip(
        pooled(CompiledPooling(kernels), extent), pooled(TorchPooling(), extent), strict=True
    ):
        assert torch.equal(got, expected)


@needs_compiler
@pytest.mark.parametrize(("height", "width", "channels"), [(7, 7, 64), (5, 4, 9), (1, 3, 8), (1, 1, 8)])
def test_patches_and_their_overlap_are_those_of_torch_to_the_bit(
    height: int, width: int, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = torch.randn(2, 3, height, width, channels)
    patches = patches_of(images)
    values = torch.randn_like(patches)
    added = overlap_of(values, images.shape[:-1])
    monkeypatch.setattr(patches_module, "kernels_for", lambda _: None)
    assert torch.equal(patches, patches_of(images))
    assert torch.equal(added, overlap_of(values, images.shape[:-1]))


@needs_compiler
def test_a_network_and_its_second_derivative_have_the_same_bits_with_and_without_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Cnn((1, 13, 10), 4, (8, 16))
    draw = torch.Generator().manual_seed(1)
    shapes = {"conv1.weight": (8, 3, 3, 1), "conv1.bias": (8,), "conv2.weight": (16, 3, 3, 8),
              "conv2.bias": (16,), "linear.weight": (4 * 3 * 16, 4), "linear.bias": (4,)}  # fmt: skip
    leaves = {n: torch.randn(3, *s, generator=draw).requires_grad_() for n, s in shapes.items()}

    def derivatives(samples: int) -> list[Tensor]:
        inputs = torch.randn(3, samples, 1, 13, 10, generator=torch.Generator().manual_seed(2))
        outputs = model.outputs(leaves, inputs)
        first = torch.autograd.grad(outputs.sin().sum(), list(leaves.values()), create_graph=True)
        return [
            outputs,
            *first,
            *torch.autograd.grad(sum(g.square().sum() for g in first), list(leaves.values())),
        ]

    compiled = [derivatives(samples) for samples in (2, 7)]
    for module in (patches_module, pooling_module):
        monkeypatch.setattr(module, "kernels_for", lambda _: None)
    alone = [derivatives(samples) for samples in (2, 7)]
    for got, expected in zip(compiled, alone, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(got, expected, strict=True))


def test_only_float32_on_the_cpu_has_kernels() -> None:
    assert kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert kernels_for(torch.zeros(1, dtype=torch.bfloat16)) is None
    assert kernels_for(torch.zeros(1, device="meta")) is None
