"""Synthetic samples of any number and shape, for scale tests: cheap to draw, and learnable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.data.dataset import VALUES_PER_CHUNK, Dataset
from fedwave.data.sources.load_request import LoadRequest
from fedwave.errors import ConfigError, require_count
from fedwave.ram import require_memory
from fedwave.rng import Stream, generator

# Images: a class pattern in 0..127 plus noise in 0..127 fits a byte without clipping.
PATTERN_LEVELS = 128
# A class pattern is constant over patches of about this many pixels, so that convolutions see it too.
PATCH_PIXELS = 4


def load_synthetic(
    request: LoadRequest,
    *,
    num_samples: int = 10_000,
    num_classes: int = 10,
    shape: Sequence[int] = (1, 28, 28),
) -> Dataset:
    """Return balanced samples, each its class's fixed random pattern plus noise.

    A ``shape`` of three numbers (channels, height, width) gives uint8 images, any other float32 values.
    """
    require_count("num_classes", num_classes, at_least=1)
    require_count("num_samples", num_samples, at_least=num_classes)
    if not len(shape):
        raise ConfigError("shape must have at least one number, got (). Use e.g. (1, 28, 28) or (20,).")
    size = tuple(require_count("shape", length, at_least=1) for length in shape)
    values = num_samples * math.prod(size) + num_classes * math.prod(size)
    require_memory(
        values * (1 if len(size) == 3 else 4) + 8 * num_samples + 64 * num_classes,
        what=f"synthetic data of {num_samples:,} samples of shape {size}",
        fix="Use fewer num_samples, or a smaller shape.",
    )
    rng = generator(request.seed, Stream.SYNTHETIC_DATA)
    labels = np.arange(num_samples, dtype=np.int64) % num_classes
    draw = _draw_images if len(size) == 3 else _draw_vectors
    return Dataset(
        name="synthetic",
        inputs=draw(labels, num_classes, size, rng=rng),
        labels=labels,
        num_classes=num_classes,
        class_names=tuple(f"pattern {index}" for index in range(num_classes)),
        source=f"drawn from seed {request.seed} ({num_samples:,} samples of shape {size})",
    )


def _draw_images(
    labels: NDArray[np.int64], num_classes: int, size: tuple[int, ...], *, rng: np.random.Generator
) -> NDArray[Any]:
    channels, height, width = size
    patches = (-(-height // PATCH_PIXELS), -(-width // PATCH_PIXELS))
    coarse = rng.integers(0, PATTERN_LEVELS, size=(num_classes, channels, *patches), dtype=np.uint8)
    patterns = coarse.repeat(PATCH_PIXELS, axis=2).repeat(PATCH_PIXELS, axis=3)[:, :, :height, :width]
    images = np.empty((len(labels), *size), dtype=np.uint8)
    rows = max(1, VALUES_PER_CHUNK // images[0].size)
    for start in range(0, len(labels), rows):
        block = labels[start : start + rows]
        noise = rng.integers(0, 256, size=(len(block), *size), dtype=np.uint8)  # whole bytes are fastest
        np.add(patterns[block], noise >> 1, out=images[start : start + rows])
    return images


def _draw_vectors(
    labels: NDArray[np.int64], num_classes: int, size: tuple[int, ...], *, rng: np.random.Generator
) -> NDArray[Any]:
    centres = rng.standard_normal((num_classes, *size), dtype=np.float32)
    values = np.empty((len(labels), *size), dtype=np.float32)
    rows = max(1, VALUES_PER_CHUNK // values[0].size)
    for start in range(0, len(labels), rows):
        block = labels[start : start + rows]
        noise = rng.standard_normal((len(block), *size), dtype=np.float32)
        np.add(centres[block], noise, out=values[start : start + rows])
    return values
