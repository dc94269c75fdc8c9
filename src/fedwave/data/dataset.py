"""What a dataset is once it is in memory, and how its pixels are standardised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedwave.errors import DataError
from fedwave.units import FloatArray

Split = Literal["all", "train", "test"]

# Statistics and checks walk the samples in blocks of this many values, so that memory stays flat.
VALUES_PER_CHUNK = 4_000_000
# Added to each pixel's standard deviation, so that a pixel that never changes divides by something.
STD_OFFSET = 0.001


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled samples: images as uint8 (samples, channels, height, width), anything else as float32."""

    name: str
    inputs: NDArray[Any]
    labels: NDArray[np.int64]
    num_classes: int
    class_names: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        if self.labels.ndim != 1 or len(self.labels) != len(self.inputs):
            raise DataError(
                f"{self.name}: expected one label per sample, got {len(self.inputs)} samples and labels of "
                f"shape {self.labels.shape}. Check that both come from the same split."
            )
        if len(self.labels) == 0:
            raise DataError(f"{self.name}: no samples in {self.source}. Point to a folder or file with data.")
        lowest, highest = int(self.labels.min()), int(self.labels.max())
        if lowest < 0 or highest >= self.num_classes:
            raise DataError(
                f"{self.name}: labels must lie in 0..{self.num_classes - 1}, got {lowest}..{highest}. "
                "The label file is corrupt or num_classes is too small."
            )
        if len(self.class_names) != self.num_classes:
            raise DataError(
                f"{self.name}: got {len(self.class_names)} class names for {self.num_classes} classes. "
                "Give exactly one name for each class."
            )

    @property
    def num_samples(self) -> int:
        """Number of labelled samples."""
        return len(self.labels)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample, e.g. (1, 28, 28)."""
        return tuple(self.inputs.shape[1:])

    def fingerprint(self) -> str:
        """Return 16 hex digits that change when any input or label changes."""
        digest = hashlib.sha256()
        for array in (self.inputs, self.labels):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            for start, stop in _chunks(array):
                digest.update(np.ascontiguousarray(array[start:stop]).data)
        return digest.hexdigest()[:16]


def dataset_from_arrays(
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    name: str = "arrays",
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "arrays in memory",
) -> Dataset:
    """Return the user's own samples as a dataset, after checking them.

    ``inputs`` has one sample per row. uint8 arrays of shape (samples, channels, height, width), or (samples,
    height, width) for grey, are images and stay bytes; everything else becomes float32. ``num_classes``
    defaults to the largest label plus one.
    """
    samples, targets = np.asarray(inputs), np.asarray(labels)
    if samples.ndim < 2 or samples.dtype.kind not in "uifb" or 0 in samples.shape[1:]:
        raise DataError(
            f"{name}: inputs must be numbers of shape (samples, ...), got {samples.dtype} of shape "
            f"{samples.shape}. Stack the samples along the first axis."
        )
    is_whole = targets.dtype.kind in "ui" or (
        targets.dtype.kind == "f" and bool(np.all(np.isfinite(targets))) and bool(np.all(targets % 1 == 0))
    )
    if not is_whole:
        raise DataError(
            f"{name}: labels must be whole numbers from 0, got {targets.dtype}. "
            "Encode the classes as 0, 1, 2, ..."
        )
    targets = targets.astype(np.int64)
    if samples.dtype == np.uint8 and samples.ndim in (3, 4):
        samples = _as_images(samples, name=name)
    else:
        samples = _as_finite_float32(samples, name=name)
    if num_classes is None:
        num_classes = len(class_names) if class_names is not None else int(targets.max(initial=0)) + 1
    names = tuple(class_names) if class_names is not None else tuple(map(str, range(num_classes)))
    return Dataset(name, samples, targets, num_classes, names, source)


def pixel_statistics(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean and standard deviation of each input value over the whole dataset.

    Two passes in float64, block by block: memory does not grow with the number of samples.
    """
    inputs = dataset.inputs
    mean: FloatArray = np.zeros(inputs.shape[1:])
    for start, stop in _chunks(inputs):
        mean += inputs[start:stop].sum(axis=0, dtype=np.float64)
    mean /= len(inputs)
    variance: FloatArray = np.zeros_like(mean)
    for start, stop in _chunks(inputs):
        deviation = inputs[start:stop] - mean
        variance += np.square(deviation, out=deviation).sum(axis=0)
    variance /= len(inputs)
    return mean.astype(np.float32), np.sqrt(variance).astype(np.float32)


def standardise(
    inputs: NDArray[Any], mean: NDArray[np.float32], std: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return ``(inputs - mean) / (std + 0.001)`` as float32, each pixel on its own."""
    scaled: NDArray[np.float32] = np.subtract(inputs, mean, dtype=np.float32)
    scaled /= std + np.float32(STD_OFFSET)
    return scaled


def _as_images(samples: NDArray[Any], *, name: str) -> NDArray[Any]:
    if samples.ndim == 3:
        return samples[:, None]
    likely_channels = (1, 2, 3, 4)
    if samples.shape[1] not in likely_channels and samples.shape[3] in likely_channels:
        raise DataError(
            f"{name}: images must be (samples, channels, height, width), got {samples.shape}, which looks "
            "like channels last. Use inputs.transpose(0, 3, 1, 2)."
        )
    return samples


def _as_finite_float32(samples: NDArray[Any], *, name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what does not fit float32 becomes infinite and is reported below
        converted = samples.astype(np.float32)
    num_bad = sum(
        int(np.count_nonzero(~np.isfinite(converted[start:stop]))) for start, stop in _chunks(converted)
    )
    if num_bad:
        raise DataError(
            f"{name}: inputs must be finite in float32, got {num_bad} NaN or infinite values. "
            "Remove or replace them first."
        )
    return converted


def _chunks(array: NDArray[Any]) -> list[tuple[int, int]]:
    """Return (start, stop) pairs that cover axis 0 in blocks of about ``VALUES_PER_CHUNK`` values."""
    rows = max(1, VALUES_PER_CHUNK // max(1, array[0].size if len(array) else 1))
    return [(start, min(start + rows, len(array))) for start in range(0, len(array), rows)]
