"""Who owns which samples: every sample belongs to at most one device, split into support and query.

A partition kind answers one question: how many samples of each class does each device get? The answer is a
(devices, classes) matrix of counts. Dealing the samples out and splitting them is the same for all kinds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedwave.data.options import keyword_options, refuse_other_options
from fedwave.data.partitions.dirichlet import dirichlet_counts
from fedwave.data.partitions.few_classes import few_class_counts
from fedwave.data.partitions.iid import iid_counts
from fedwave.errors import ConfigError, DataError, did_you_mean, require_count
from fedwave.ram import require_memory
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


# Each takes (supply, num_devices, *, rng, ...options) and returns the counts (devices, classes).
PARTITIONS: dict[str, Callable[..., IntArray]] = {
    "paper": few_class_counts,
    "dirichlet": dirichlet_counts,
    "iid": iid_counts,
}


def partition(
    labels: IntArray,
    *,
    kind: str,
    num_devices: int,
    num_classes: int,
    rng: np.random.Generator,
    shots: int = 1,
    min_query: int = 1,
    **options: Any,
) -> tuple[DeviceData, ...]:
    """Return each device's support and query samples; no sample is given out twice.

    A device keeps ``shots`` samples of each of its classes as support (all it has, where it has fewer) and
    the rest as query, at least ``min_query``. ``options`` are the kind's own, see ``partition_options``.
    """
    refuse_other_options(options, kind, kinds=PARTITIONS, options_of=partition_options, what="partition")
    require_count("num_devices", num_devices, at_least=1)
    require_count("shots", shots, at_least=1)
    require_count("min_query", min_query, at_least=1)
    if 2 * num_devices > len(labels):
        raise DataError(
            f"{num_devices} devices need at least {2 * num_devices} samples, one to adapt to and one to be "
            f"judged by, but the dataset has {len(labels)}. Use fewer devices, or a larger dataset."
        )
    require_memory(
        24 * num_devices * num_classes,  # counts, and what is drawn to make them
        what=f"{num_devices:,} devices with {num_classes:,} classes",
        fix="Use fewer devices.",
    )
    supply = np.bincount(labels, minlength=num_classes).astype(np.int64)
    draw_counts = PARTITIONS[kind]
    asked_for = inspect.signature(draw_counts).parameters
    common = {"shots": shots, "min_query": min_query}
    given = {name: value for name, value in common.items() if name in asked_for} | options
    counts = draw_counts(supply, num_devices, rng=rng, **given)
    _require_supply(counts, supply)
    require_query(counts, shots=shots, min_query=min_query)
    return _deal(labels, counts, shots=shots, rng=rng)


def partition_options(kind: str) -> tuple[str, ...]:
    """Return the options of one kind of partition: what its function asks for beside the common arguments."""
    if kind not in PARTITIONS:
        raise ConfigError(f'Unknown partition "{kind}". {did_you_mean(kind, PARTITIONS)}')
    return keyword_options(PARTITIONS[kind], num_positional=2, common=("rng", "shots", "min_query"))


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
