"""Who owns which samples: every sample belongs to at most one device, split into support and query.

A partition kind answers one question: how many samples of each class does each device get? The answer is a
(devices, classes) matrix of counts. Dealing the samples out and splitting them is the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.dealing import DeviceData, deal
from fedwave.data.partitions.dirichlet import dirichlet_counts
from fedwave.data.partitions.few_classes import few_class_counts
from fedwave.data.partitions.iid import iid_counts
from fedwave.data.user_split import UserSplit, split_of_dataset
from fedwave.data.user_split_file import read_split
from fedwave.errors import ConfigError, DataError, require_count, shown
from fedwave.parts import PartKind, signature_of
from fedwave.ram import require_memory
from fedwave.units import IntArray


def given_split(
    dataset: Dataset,
    *,
    path: Path | None = None,
    device_column: str | None = None,
    heldout_column: str | None = None,
    support_column: str | None = None,
) -> UserSplit:
    """Return who owns which sample as a file says, or as the dataset itself does."""
    columns = {"heldout_column": heldout_column, "support_column": support_column}
    if path is not None:
        return read_split(
            path, num_samples=dataset.num_samples, device_column=device_column or "device", **columns
        )
    for name, column in {"device_column": device_column, **columns}.items():
        if column is not None:
            raise ConfigError(f"partition.{name} names a column of partition.path, got no path. Give both.")
    return split_of_dataset(dataset)


# Each is called with those of ``PARTITION.fills_in`` that it names, and with its options. It returns the
# counts (devices, classes), or a split of the samples themselves.
PARTITIONS: dict[str, Callable[..., IntArray | UserSplit]] = {
    "paper": few_class_counts,
    "dirichlet": dirichlet_counts,
    "iid": iid_counts,
    "given": given_split,
}
PARTITION = PartKind(
    "partition", PARTITIONS, ("supply", "labels", "num_classes", "shots", "min_query", "rng", "dataset")
)


def partition(
    labels: IntArray,
    *,
    kind: str,
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
    drawn = divide(
        labels, kind=kind, num_classes=num_classes, rng=rng, shots=shots, min_query=min_query, **options
    )
    if isinstance(drawn, UserSplit):
        raise ConfigError(f"partition {kind} names the samples itself. Use devices_of_split(split, labels).")
    return deal(labels, drawn, shots=shots, min_query=min_query, rng=rng)


def divide(
    labels: IntArray,
    *,
    kind: str,
    num_classes: int,
    rng: np.random.Generator,
    shots: int = 1,
    min_query: int = 1,
    dataset: Dataset | None = None,
    **options: Any,
) -> IntArray | UserSplit:
    """Return how many samples of each class each device gets, or a split that names the samples."""
    PARTITION.require_options(kind, options)
    entry = PARTITION.find(kind)
    require_count("shots", shots, at_least=1)
    require_count("min_query", min_query, at_least=1)
    known = PARTITION.parameters(entry)
    if "num_devices" in known:
        num_devices = options.get("num_devices", known["num_devices"].default)
        _require_enough(labels, require_count("num_devices", num_devices, at_least=1), num_classes)
    if dataset is None and "dataset" in signature_of(entry).parameters:
        raise ConfigError(f"partition {kind} asks for the dataset, got none. Give dataset=.")
    drawn = PARTITION.call(
        entry,
        options,
        supply=np.bincount(labels, minlength=num_classes).astype(np.int64),
        labels=labels,
        num_classes=num_classes,
        shots=shots,
        min_query=min_query,
        rng=rng,
        dataset=dataset,
    )
    if isinstance(drawn, UserSplit):
        return drawn
    counts = np.asarray(drawn)
    if (
        counts.ndim != 2
        or counts.shape[1] != num_classes
        or counts.dtype.kind not in "iu"
        or (counts < 0).any()
    ):
        raise DataError(
            f"partition {kind} must return counts of shape (devices, {num_classes}) or a split, got "
            f"{shown(drawn)}. Count whole samples, or use user_split(...)."
        )
    return counts.astype(np.int64)


def partition_options(kind: str) -> tuple[str, ...]:
    """Return the options of one kind of partition: what its function asks for beside the common arguments."""
    return PARTITION.options(kind)


def _require_enough(labels: IntArray, num_devices: int, num_classes: int) -> None:
    """Refuse more devices than the dataset or the memory has room for."""
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
