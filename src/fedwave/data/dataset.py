"""What a dataset is once it is in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedwave.data.device_ids import index_devices, require_devices
from fedwave.errors import DataError
from fedwave.ram import require_memory
from fedwave.units import IntArray

Split = Literal["all", "train", "test"]

# Statistics and checks walk the samples in blocks of this many values, so that memory stays flat.
VALUES_PER_CHUNK = 4_000_000
# More classes than this, and more than samples, are a mistake unless they are asked for.
MAX_GUESSED_CLASSES = 10_000
LARGEST = 2**53  # a float holds whole numbers up to here
# What the one class is called when there are only targets to learn.
ONE_CLASS = "all"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled samples: images as uint8 (samples, C, H, W), token ids as other whole numbers, else float32.

    Where ``targets`` (samples, outputs) are given, they are what is learnt (regression), and labels only say
    which samples are of one kind. ``device_of_sample`` says who owns each sample, -1 for nobody.
    """

    name: str
    inputs: NDArray[Any]
    labels: NDArray[np.int64]
    num_classes: int
    class_names: tuple[str, ...]
    source: str
    targets: NDArray[np.float32] | None = None
    device_of_sample: IntArray | None = None
    device_names: tuple[str, ...] = ()  # by default the devices are called 0, 1, 2, ...

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
        self._check_targets()
        self._check_devices()

    def _check_targets(self) -> None:
        targets = self.targets
        if targets is None:
            return
        if targets.dtype != np.float32 or targets.ndim != 2 or targets.shape[1] == 0:
            raise DataError(
                f"{self.name}: targets must be float32 of shape (samples, outputs), got {targets.dtype} of "
                f"shape {targets.shape}. Use dataset_from_arrays, which converts them."
            )
        if len(targets) != self.num_samples:
            raise DataError(
                f"{self.name}: expected targets for each of the {self.num_samples} samples, got "
                f"{len(targets)}. Check that both come from the same split."
            )
        _require_finite(targets, what="targets", name=self.name)

    def _check_devices(self) -> None:
        if self.device_of_sample is None:
            if self.device_names:
                raise DataError(
                    f"{self.name}: got {len(self.device_names)} device names but no device_of_sample. "
                    "Say which device owns each sample."
                )
            return
        names = require_devices(
            self.device_of_sample, self.device_names, num_samples=self.num_samples, name=self.name
        )
        object.__setattr__(self, "device_names", names)

    @property
    def num_samples(self) -> int:
        """Number of labelled samples."""
        return len(self.labels)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample, e.g. (1, 28, 28)."""
        return tuple(self.inputs.shape[1:])

    @property
    def has_token_ids(self) -> bool:
        """Whether the inputs are whole numbers that stand for words and the like, not bytes of images."""
        return is_token_type(self.inputs.dtype)

    @property
    def is_regression(self) -> bool:
        """Whether real numbers are learnt, not classes."""
        return self.targets is not None

    @property
    def num_outputs(self) -> int:
        """Numbers that a model returns for a sample: a score for each class, or the targets."""
        return self.num_classes if self.targets is None else self.targets.shape[1]

    def fingerprint(self) -> str:
        """Return 16 hex digits that change when any input, label, target or owner changes."""
        arrays = (self.inputs, self.labels, self.targets, self.device_of_sample)
        return fingerprint_of(*(array for array in arrays if array is not None), texts=self.device_names)


def dataset_from_arrays(
    inputs: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    targets: ArrayLike | None = None,
    device_of_sample: Iterable[Any] | None = None,
    name: str = "arrays",
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "arrays in memory",
) -> Dataset:
    """Return the user's own samples as a dataset, after checking them.

    ``inputs`` has one sample per row. uint8 arrays of shape (samples, channels, height, width), or (samples,
    height, width) for grey, are images and stay bytes. Other types of whole numbers are token ids, for models
    with ``nn.Embedding``, and stay as they are; everything else becomes float32. ``num_classes`` defaults to
    the largest label plus one. ``targets``, (samples, outputs) or (samples,), are real numbers to
    be learnt; without labels all samples are then of one class. ``device_of_sample`` holds each sample's
    owner, a whole number or text such as a user id; -1, "" or None is nobody.
    """
    samples = as_array(inputs, what="inputs", name=name)
    if samples.ndim < 2 or samples.dtype.kind not in "uifb" or 0 in samples.shape[1:]:
        raise DataError(
            f"{name}: inputs must be numbers of shape (samples, ...), got {samples.dtype} of shape "
            f"{samples.shape}. Stack the samples along the first axis."
        )
    if labels is None:
        if targets is None:
            raise DataError(f"{name}: expected labels or targets, got neither. Give what is to be learnt.")
        if num_classes is not None or class_names is not None:
            raise DataError(
                f"{name}: num_classes and class_names describe labels, got targets alone. Remove them."
            )
        classes = np.zeros(len(samples), dtype=np.int64)
        class_names = [ONE_CLASS]
    else:
        classes = _as_labels(labels, name=name)
    if samples.dtype == np.uint8 and samples.ndim in (3, 4):
        samples = _as_images(samples, name=name)
    elif is_token_type(samples.dtype):
        _require_int64(samples, name=name)
    else:
        samples = _as_finite_float32(samples, what="inputs", name=name)
    if num_classes is None and class_names is None:
        _require_likely_labels(classes, name=name)
    if num_classes is None:
        num_classes = len(class_names) if class_names is not None else int(classes.max(initial=0)) + 1
    require_memory(
        64 * num_classes, what=f"{name}: the names of {num_classes:,} classes", fix="Use fewer classes."
    )
    names = tuple(class_names) if class_names is not None else tuple(map(str, range(num_classes)))
    values = None if targets is None else _as_targets(targets, name=name)
    owners, owner_names = (
        (None, ()) if device_of_sample is None else index_devices(device_of_sample, name=name)
    )
    return Dataset(name, samples, classes, num_classes, names, source, values, owners, owner_names)


def is_token_type(dtype: np.dtype[Any]) -> bool:
    """Return whether values of this type are token ids: whole numbers, but for the bytes of images."""
    return dtype.kind in "ui" and dtype != np.uint8


def row_chunks(array: NDArray[Any]) -> list[tuple[int, int]]:
    """Return (start, stop) pairs that cover axis 0 in blocks of about ``VALUES_PER_CHUNK`` values."""
    rows = max(1, VALUES_PER_CHUNK // max(1, math.prod(array.shape[1:])))
    return [(start, min(start + rows, len(array))) for start in range(0, len(array), rows)]


def fingerprint_of(*arrays: NDArray[Any], texts: Sequence[str] = ()) -> str:
    """Return 16 hex digits that change when a value, type or shape changes, or one of the texts."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        for start, stop in row_chunks(array):
            digest.update(np.ascontiguousarray(array[start:stop]).data)
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    return digest.hexdigest()[:16]


def as_array(values: Any, *, what: str, name: str) -> NDArray[Any]:
    """Return the values as an array, or say that they cannot be one."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{name}: {what} must be one array, got rows of unequal length or values that are no numbers "
            f"({str(error).partition('.')[0]}). Give every sample the same shape."
        ) from error


def _require_likely_labels(labels: IntArray, *, name: str) -> None:
    """Raise if labels are so large that they cannot number the classes."""
    highest = int(labels.max(initial=0))
    if highest > max(MAX_GUESSED_CLASSES, len(labels)):
        raise DataError(
            f"{name}: labels number the classes 0, 1, 2, ..., got {highest} for {len(labels)} samples. "
            "Encode the classes as 0, 1, 2, ...; if there are so many, say num_classes."
        )


def _as_labels(labels: ArrayLike, *, name: str) -> IntArray:
    given = as_array(labels, what="labels", name=name)
    is_whole = given.dtype.kind in "ui" or (
        given.dtype.kind == "f" and bool(np.all(np.isfinite(given))) and bool(np.all(given % 1 == 0))
    )
    if not is_whole:
        raise DataError(
            f"{name}: labels must be whole numbers from 0, got {given.dtype}. "
            "Encode the classes as 0, 1, 2, ..."
        )
    if given.size and not -LARGEST <= given.min() <= given.max() <= LARGEST:
        raise DataError(
            f"{name}: labels must lie in 0..{LARGEST}, got {given.min()}..{given.max()}. "
            "Encode the classes as 0, 1, 2, ..."
        )
    return given.astype(np.int64)


def _as_targets(targets: ArrayLike, *, name: str) -> NDArray[np.float32]:
    given = as_array(targets, what="targets", name=name)
    if given.dtype.kind not in "uifb" or given.ndim not in (1, 2):
        raise DataError(
            f"{name}: targets must be numbers of shape (samples, outputs), got {given.dtype} of shape "
            f"{given.shape}. Stack the samples along the first axis."
        )
    return _as_finite_float32(given[:, None] if given.ndim == 1 else given, what="targets", name=name)


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


def _require_int64(tokens: NDArray[Any], *, name: str) -> None:
    if tokens.dtype == np.uint64 and tokens.size and tokens.max() > np.iinfo(np.int64).max:
        raise DataError(f"{name}: token ids must fit int64, got {tokens.max()}. Number the tokens from 0.")


def _as_finite_float32(values: NDArray[Any], *, what: str, name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what does not fit float32 becomes infinite and is reported below
        converted = values.astype(np.float32)
    _require_finite(converted, what=what, name=name)
    return converted


def _require_finite(values: NDArray[np.float32], *, what: str, name: str) -> None:
    num_bad = sum(
        int(np.count_nonzero(~np.isfinite(values[start:stop]))) for start, stop in row_chunks(values)
    )
    if num_bad:
        raise DataError(
            f"{name}: {what} must be finite in float32, got {num_bad} NaN or infinite values. "
            "Remove or replace them first."
        )
