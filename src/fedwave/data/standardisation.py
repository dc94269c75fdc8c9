"""Brings each input value to mean zero and about unit spread over the dataset."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fedwave.data.dataset import Dataset, row_chunks
from fedwave.units import FloatArray

# Added to each pixel's standard deviation, so that a pixel that never changes divides by something.
STD_OFFSET = 0.001
# Below ten times the offset, the offset and not the data decides on the scale.
SMALL_STD = 0.01
# Enough samples to see whether an input is the same in most of them.
NUM_SAMPLES_LOOKED_AT = 1000

_known: WeakKeyDictionary[Dataset, tuple[NDArray[np.float32], NDArray[np.float32]]] = WeakKeyDictionary()


def pixel_statistics(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean and standard deviation of each input value over the whole dataset.

    Two passes in float64, block by block: memory does not grow with the number of samples. They are made
    once for each dataset.
    """
    if dataset not in _known:
        _known[dataset] = _pixel_statistics(dataset)
    mean, std = _known[dataset]
    return mean.copy(), std.copy()


def _pixel_statistics(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    inputs = dataset.inputs
    mean: FloatArray = np.zeros(inputs.shape[1:])
    for start, stop in row_chunks(inputs):
        mean += inputs[start:stop].sum(axis=0, dtype=np.float64)
    mean /= len(inputs)
    variance: FloatArray = np.zeros_like(mean)
    chunks = list(row_chunks(inputs))
    most = max((stop - start for start, stop in chunks), default=0)
    room = np.empty((most, *mean.shape))  # fresh memory for each block would take half of the time
    for start, stop in chunks:
        deviation = np.subtract(inputs[start:stop], mean, out=room[: stop - start])
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


def standardise_warnings(dataset: Dataset, std: NDArray[np.float32] | None = None) -> tuple[str, ...]:
    """Return a warning when inputs are token ids, or so small that the 0.001 in ``standardise`` swamps them.

    ``std`` is that of ``pixel_statistics``, computed when not given. An input that never changes does not
    count; nor, beside inputs of a usual scale, does one that is the same in most samples, such as a pixel at
    the border of a picture: there the 0.001 is meant to act.
    """
    if dataset.has_token_ids:
        return (
            f"{dataset.name}: inputs are token ids ({dataset.inputs.dtype}) and are not standardised. Set "
            'data.standardise = "none" to say the same, or give features as float32.',
        )
    spread = (pixel_statistics(dataset)[1] if std is None else std).ravel()
    is_small = (spread > 0) & (spread < SMALL_STD)
    if is_small.any() and np.any(spread >= SMALL_STD):
        step = -(-dataset.num_samples // NUM_SAMPLES_LOOKED_AT)
        looked_at = dataset.inputs[::step].reshape(-1, len(spread))[:, is_small]
        is_mostly_one_value = np.mean(looked_at == np.median(looked_at, axis=0), axis=0) > 0.5
        is_small[is_small] = ~is_mostly_one_value
    if not is_small.any():
        return ()
    smallest, num_varying = float(spread[is_small].min()), np.count_nonzero(spread)
    share_left = smallest / (smallest + STD_OFFSET)
    return (
        f"{dataset.name}: {np.count_nonzero(is_small)} of {num_varying} inputs have a standard deviation "
        f"below {SMALL_STD}, the smallest {smallest:.2g}: (x - mean) / (std + {STD_OFFSET}) spreads it "
        f'by {share_left:.2g}, not 1. Rescale the inputs, or set data.standardise = "none".',
    )
