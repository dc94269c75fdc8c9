"""Samples dealt to devices: drawn without replacement by counts, split into support and query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedwave.errors import ConfigError, DataError
from fedwave.units import IntArray


@dataclass(frozen=True, eq=False)
class DeviceData:
    """One device's samples, as indices into the dataset, and the classes they come from."""

    support: IntArray
    query: IntArray
    classes: tuple[int, ...]

    @property
    def num_samples(self) -> int:
        """Number of samples on the device, D_i in Eq. (21)."""
        return len(self.support) + len(self.query)


def deal(
    labels: IntArray, counts: IntArray, *, shots: int, min_query: int = 1, rng: np.random.Generator
) -> tuple[DeviceData, ...]:
    """Return the devices' samples by the counts (devices, classes), drawn without replacement."""
    _require_supply(counts, np.bincount(labels, minlength=counts.shape[1]).astype(np.int64))
    require_query(counts, shots=shots, min_query=min_query)
    return _deal(labels, counts, shots=shots, rng=rng)


def split_heldout(
    num_devices: int, *, heldout_fraction: float = 0.5, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the sorted indices of the devices that train and of those held out for testing."""
    if not 0 <= heldout_fraction < 1:
        raise ConfigError(
            f"heldout_fraction must be in [0, 1), got {heldout_fraction}. Use 0.5 to hold out half."
        )
    num_heldout = min(round(heldout_fraction * num_devices), num_devices - 1)
    order = rng.permutation(num_devices).astype(np.int64)
    return np.sort(order[num_heldout:]), np.sort(order[:num_heldout])


def _require_supply(counts: IntArray, supply: IntArray) -> None:
    """Refuse counts that ask for more samples of a class than there are."""
    demand = counts.sum(axis=0)
    if np.all(demand <= supply):
        return
    worst = int(np.argmax(demand - supply))
    num_asking = int(np.count_nonzero(counts[:, worst]))
    num_short = int(np.count_nonzero(demand > supply))
    raise DataError(
        f"Class {worst} has {supply[worst]} samples but {num_asking} of the {len(counts)} devices ask for "
        f"{demand[worst]} ({num_short} of {len(supply)} classes are short). "
        "Use fewer devices, fewer samples per class, or a larger dataset."
    )


def require_query(
    counts: IntArray, *, shots: int, min_query: int = 1, device_names: Sequence[str] | None = None
) -> None:
    """Refuse a device whose support leaves too few query samples."""
    num_query = np.maximum(counts - shots, 0).sum(axis=1)
    lacking = np.flatnonzero(num_query < min_query)
    if len(lacking) == 0:
        return
    device = int(lacking[0])
    name = device_names[device] if device_names else device
    raise DataError(
        f"Device {name} has {counts[device].sum()} samples of {np.count_nonzero(counts[device])} classes: "
        f"after {shots} support per class {num_query[device]} are left for its query set, needs {min_query} "
        f"({len(lacking)} of {len(counts)} devices lack query samples). "
        "Give each device more samples, or use fewer shots or fewer devices."
    )


def _deal(
    labels: IntArray, counts: IntArray, *, shots: int, rng: np.random.Generator
) -> tuple[DeviceData, ...]:
    """Return the devices' samples, drawn without replacement, uniformly within each class."""
    shuffled = rng.permutation(len(labels))
    pool = shuffled[np.argsort(labels[shuffled], kind="stable")].astype(
        np.int64
    )  # class 0 first, then 1, ...
    class_start = np.searchsorted(labels[pool], np.arange(counts.shape[1]))
    first = class_start + np.cumsum(counts, axis=0) - counts  # where each (device, class) pile begins in pool
    devices = []
    for begin_of_class, count_of_class in zip(first, counts, strict=True):
        classes = np.flatnonzero(count_of_class)
        piles = [pool[begin_of_class[c] : begin_of_class[c] + count_of_class[c]] for c in classes]
        devices.append(
            DeviceData(
                support=np.concatenate([pile[:shots] for pile in piles]),
                query=np.concatenate([pile[shots:] for pile in piles]),
                classes=tuple(classes.tolist()),
            )
        )
    return tuple(devices)
