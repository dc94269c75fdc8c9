"""From the user's own split to the devices: support and query sets, training and held-out devices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedwave.data.own_split import NAME, OwnSplit
from fedwave.data.partition import DeviceData, require_query, split_heldout
from fedwave.data.request import require_count
from fedwave.errors import DataError
from fedwave.units import BoolArray, IntArray


def devices_of_split(
    split: OwnSplit, labels: IntArray, *, shots: int = 1, rng: np.random.Generator
) -> tuple[DeviceData, ...]:
    """Return each device's support and query samples, in the order of the dataset.

    Where the split does not give the support, it is ``shots`` samples of each class of a device, drawn at
    random (all it has, where it has fewer), and the rest is query, as in ``partition``.
    """
    if labels.shape != (split.num_samples,):
        raise DataError(
            f"{NAME}: it gives owners to {split.num_samples} samples, but the dataset has {len(labels)}. "
            "Give one owner per sample, in the order of the dataset."
        )
    if split.is_support is None:
        is_support = _draw_support(split, labels, shots=shots, rng=rng)
    else:
        is_support = split.is_support
        _require_both_sets(split, is_support)
    by_device = np.argsort(split.device_of_sample, kind="stable")
    start = np.searchsorted(split.device_of_sample[by_device], np.arange(split.num_devices + 1))
    devices = []
    for first, last in pairwise(start):
        own = by_device[first:last]
        classes = tuple(np.unique(labels[own]).tolist())
        devices.append(DeviceData(own[is_support[own]], own[~is_support[own]], classes))
    return tuple(devices)


def heldout_of_split(
    split: OwnSplit, *, heldout_fraction: float = 0.5, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the sorted indices of the devices that train and of those held out: as given, or at random."""
    if split.is_heldout is None:
        return split_heldout(split.num_devices, heldout_fraction=heldout_fraction, rng=rng)
    return np.flatnonzero(~split.is_heldout), np.flatnonzero(split.is_heldout)


def _draw_support(split: OwnSplit, labels: IntArray, *, shots: int, rng: np.random.Generator) -> BoolArray:
    """Return whether each sample is one of the ``shots`` of its class that its device draws at random."""
    require_count("shots", shots, at_least=1)
    shuffled = rng.permutation(np.flatnonzero(split.device_of_sample >= 0))
    owner, label = split.device_of_sample[shuffled], labels[shuffled]
    num_classes = int(label.max()) + 1
    pile = owner * num_classes + label  # one pile for each device and class
    counts = np.bincount(pile, minlength=split.num_devices * num_classes)
    require_query(
        counts.reshape(split.num_devices, num_classes), shots=shots, device_names=split.device_names
    )
    order = np.argsort(pile, kind="stable")
    place_in_pile = np.arange(len(pile)) - (np.cumsum(counts) - counts)[pile[order]]
    is_support = np.zeros(split.num_samples, dtype=np.bool_)
    is_support[shuffled[order[place_in_pile < shots]]] = True
    return is_support


def _require_both_sets(split: OwnSplit, is_support: BoolArray) -> None:
    """Refuse a device whose given support leaves it without support or without query samples."""
    for kind, members in (("support", is_support), ("query", ~is_support)):
        owners = split.device_of_sample[members & (split.device_of_sample >= 0)]
        lacking = np.flatnonzero(np.bincount(owners, minlength=split.num_devices) == 0)
        if len(lacking):
            device = int(lacking[0])
            num_own = np.count_nonzero(split.device_of_sample == device)
            raise DataError(
                f"Device {split.device_names[device]} has {num_own} samples, none of them {kind} "
                f"({len(lacking)} of {split.num_devices} devices lack {kind} samples). Give it both support "
                "and query samples, or none at all."
            )
