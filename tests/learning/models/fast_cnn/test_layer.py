"""A layer of the CNN against torch's own layers, one device at a time, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fedwave.learning.models.fast_cnn import convolution_products as products
from fedwave.learning.models.fast_cnn.layer import convolve_and_pool
from fedwave.learning.precision import products_in

SLOPE = 0.2
# devices, samples, height, width, channels, outputs
FEW_CHANNELS = (3, 6, 9, 8, 1, 9)  # a first layer: patches, one device after the other
FEW_SAMPLES = (4, 2, 7, 7, 16, 8)  # a support set: all devices at once
MANY_SAMPLES = (2, 9, 14, 13, 16, 24)  # a query set: direct, one device after the other
BLOCKS = (2, 37, 14, 14, 8, 72)  # more than one block of samples for a device
LONELY = (1, 5, 5, 4, 8, 8)
SHAPES = {"few channels": FEW_CHANNELS, "few samples": FEW_SAMPLES, "many": MANY_SAMPLES, "blocks": BLOCKS,
          "lonely": LONELY}  # fmt: skip


def operands(shape: tuple[int, ...], *, is_shared: bool) -> list[Tensor]:
    """Images, weights, bias, and the directions in which the gradient is differentiated again."""
    devices, samples, height, width, channels, outputs = shape
    draw = torch.Generator().manual_seed(3)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=draw)

    rows = 1 if is_shared else devices
    return [
        normal(devices, samples, height, width, channels),
        (0.2 * normal(rows, outputs, 3, 3, channels)).expand(devices, -1, -1, -1, -1),
        normal(rows, outputs).expand(devices, -1),
        normal(devices, samples, height, width, channels),
        normal(devices, outputs, 3, 3, channels),
        normal(devices, outputs),
    ]


def plain_layer(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The layer as a researcher writes it."""
    rows = []
    for own_images, own_weight, own_bias in zip(images, weight, bias, strict=True):
        planes = own_images.permute(0, 3, 1, 2)
        values = F.leaky_relu(F.conv2d(planes, own_weight.permute(0, 3, 1, 2), own_bias, padding=1), SLOPE)
        top, left = values.shape[2] % 2, values.shape[3] % 2
        pooled = F.max_pool2d(F.pad(values, (left, 1, top, 1), value=float("-inf")), 3, stride=2)
        rows.append(pooled.permute(0, 2, 3, 1))
    return torch.stack(rows)


def our_layer(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return convolve_and_pool(images, weight, bias, SLOPE)


def derivatives(layer: Callable[..., Tensor], given: list[Tensor]) -> list[Tensor]:
    """Outputs, gradient, and the Hessian of a curved function of the outputs times the directions."""
    leaves = [value.detach().requires_grad_() for value in given[:3]]
    outputs = layer(*leaves)
    first = torch.autograd.grad(torch.sin(outputs).sum(), leaves, create_graph=True)
    second = torch.autograd.grad(first, leaves, given[3:])
    return [outputs.detach(), *(one.detach() for one in first), *second]


def assert_close(got: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        assert float((one - other).abs().max()) <= tolerance * float(other.abs().max())


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_layer_and_its_two_derivatives_are_those_of_the_plain_loop(
    shape: tuple[int, ...], is_shared: bool
) -> None:
    given = operands(shape, is_shared=is_shared)
    exact = derivatives(plain_layer, [value.double() for value in given])
    assert_close(derivatives(our_layer, given), exact, 2e-5)
    assert_close(derivatives(our_layer, [value.double() for value in given]), exact, 1e-12)


@pytest.mark.parametrize("shape", [MANY_SAMPLES, BLOCKS])
def test_direct_products_and_patches_agree(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    given = operands(shape, is_shared=False)
    direct = derivatives(our_layer, given)
    monkeypatch.setattr(products, "_is_direct", lambda *_: False)
    patches = derivatives(our_layer, given)
    assert_close(patches, direct, 2e-5)
    assert any(not torch.equal(one, other) for one, other in zip(patches, direct, strict=True))


def test_the_shapes_take_the_paths_that_they_are_named_for() -> None:
    given = {name: operands(shape, is_shared=False)[:2] for name, shape in SHAPES.items()}
    direct = {name: products._is_direct(images, weight.shape[1]) for name, (images, weight) in given.items()}
    assert direct == {name: name != "few channels" for name in SHAPES}
    assert {name for name, (images, _) in given.items() if not products.has_many_samples(images)} == {
        "few samples"
    }
    parts = {name: products.OneByOne(*given[name]).sizes for name in ("few channels", "many", "blocks")}
    assert parts == {
        "few channels": [6] * 3,
        "many": [9] * 2,
        "blocks": [19, 18] * 2,  # 37 x 14 x 14 x 72 responses of a device, 2^18 at most in a block
    }


def test_the_first_layer_has_no_gradient_in_its_images_unless_it_is_asked_for() -> None:
    asked: list[bool] = []
    real = products.OneByOne.adjoints

    def spy(self: products.OneByOne, *given: object) -> object:
        asked.append(bool(given[2]))
        return real(self, *given)  # type: ignore[arg-type]

    images, weight, bias = operands(MANY_SAMPLES, is_shared=False)[:3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products.OneByOne, "adjoints", spy)
        for wants in (False, True):
            outputs = our_layer(images.clone().requires_grad_(wants), weight.clone().requires_grad_(), bias)
            outputs.sum().backward()  # type: ignore[no-untyped-call]
    assert asked == [False, False, True, True]


@pytest.mark.parametrize("shape", [FEW_CHANNELS, FEW_SAMPLES, MANY_SAMPLES])
def test_in_bfloat16_the_operands_are_rounded_and_nothing_else_is(shape: tuple[int, ...]) -> None:
    images, weight, bias = operands(shape, is_shared=False)[:3]
    with products_in("bfloat16", torch.device("cpu")):
        got = our_layer(images, weight, bias)
    assert got.dtype == torch.float32
    expected = plain_layer(images.bfloat16().double(), weight.bfloat16().double(), bias.double())
    # A product's result is rounded once more, to eight bits; the bias of size one is added after that.
    assert float((got - expected).abs().max()) <= 2**-8 * float(
        (expected - bias[:, None, None, None]).abs().max()
    )
    assert not torch.equal(got, our_layer(images, weight, bias))


@pytest.mark.parametrize("shape", [FEW_CHANNELS, FEW_SAMPLES, MANY_SAMPLES])
def test_in_bfloat16_both_derivatives_are_off_by_its_rounding(shape: tuple[int, ...]) -> None:
    given = operands(shape, is_shared=True)
    exact = derivatives(our_layer, given)
    with products_in("bfloat16", torch.device("cpu")):
        got = derivatives(our_layer, given)
    assert all(value.dtype == torch.float32 for value in got)
    for one, other in zip(
        got, exact, strict=True
    ):  # in norm: where two maxima nearly tie, another one is taken
        assert 0.0 < float((one - other).norm()) <= 0.15 * float(other.norm())
