"""The user's own split: which sample belongs to which device, who is held out, what is support and query."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.data.dataset import Dataset, fingerprint_of
from fedwave.data.dealing import DeviceData, require_query, split_heldout
from fedwave.data.device_ids import device_name, index_devices, require_devices
from fedwave.errors import DataError, require_count
from fedwave.units import BoolArray, IntArray

NAME = "own split"  # what error messages call it


@dataclass(frozen=True, eq=False)
class UserSplit:
    """Who owns each sample and, where they are given, the held-out devices and the support samples.

    Axis 0 of ``device_of_sample`` and ``is_support`` is the sample of the dataset; -1 is nobody. Axis 0 of
    ``is_heldout`` is the device. None means: by the rules that hold for other partitions.
    """

    device_of_sample: IntArray
    device_names: tuple[str, ...] = ()  # by default the devices are called 0, 1, 2, ...
    is_heldout: BoolArray | None = None
    is_support: BoolArray | None = None

    def __post_init__(self) -> None:
        names = require_devices(
            self.device_of_sample, self.device_names, num_samples=len(self.device_of_sample), name=NAME
        )
        object.__setattr__(self, "device_names", names)
        for field, flags, length in (
            ("is_heldout", self.is_heldout, len(names)),
            ("is_support", self.is_support, self.num_samples),
        ):
            if flags is not None and (flags.dtype != np.bool_ or flags.shape != (length,)):
                raise DataError(
                    f"{NAME}: {field} must be bool of shape ({length},), got {flags.dtype} of shape "
                    f"{flags.shape}. Use user_split, which makes it."
                )
        if self.is_heldout is not None and np.all(self.is_heldout):
            raise DataError(
                f"{NAME}: all {self.num_devices} devices are held out, none is left to train. Hold out fewer."
            )

    @property
    def num_devices(self) -> int:
        """Number of devices, training and held out together."""
        return len(self.device_names)

    @property
    def num_samples(self) -> int:
        """Number of samples of the dataset, those of nobody included."""
        return len(self.device_of_sample)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change when an owner, a name or a flag changes."""
        absent = np.zeros((0, 0), dtype=np.bool_)
        flags = (absent if flags is None else flags for flags in (self.is_heldout, self.is_support))
        return fingerprint_of(self.device_of_sample, *flags, texts=self.device_names)


def user_split(
    device_of_sample: Iterable[Any],
    *,
    is_heldout: ArrayLike | Collection[Any] | None = None,
    is_support: ArrayLike | None = None,
    name: str = NAME,
) -> UserSplit:
    """Return the split with these owners, one id per sample: a whole number or text, -1 or "" for nobody.

    ``is_heldout`` is a bool per sample, the same for all samples of a device, or a collection of device ids.
    ``is_support`` is a bool per sample. Devices are numbered in the sorted order of their ids.
    """
    owners, names = index_devices(device_of_sample, name=name)
    heldout = None if is_heldout is None else _heldout_devices(is_heldout, owners, names, name=name)
    support = None if is_support is None else as_flags(is_support, len(owners), what=f"{name}: is_support")
    return UserSplit(owners, names, heldout, support)


def split_of_dataset(dataset: Dataset) -> UserSplit:
    """Return the split that comes with a dataset."""
    if dataset.device_of_sample is None:
        raise DataError(
            f"{dataset.name} does not say which device owns which sample. Give the split as a file, or the "
            "dataset its device_of_sample (devices, in a .npz file)."
        )
    return UserSplit(dataset.device_of_sample, dataset.device_names)


def devices_of_split(
    split: UserSplit, labels: IntArray, *, shots: int = 1, rng: np.random.Generator
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
    split: UserSplit, *, heldout_fraction: float = 0.5, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the sorted indices of the devices that train and of those held out: as given, or at random."""
    if split.is_heldout is None:
        return split_heldout(split.num_devices, heldout_fraction=heldout_fraction, rng=rng)
    return np.flatnonzero(~split.is_heldout), np.flatnonzero(split.is_heldout)


def as_flags(values: ArrayLike, num_samples: int, *, what: str) -> BoolArray:
    """Return one bool per sample; 0 and 1 will do."""
    flags = np.asarray(values)
    if flags.shape != (num_samples,):
        raise DataError(
            f"{what} must be one bool for each of the {num_samples} samples, got shape {flags.shape}. "
            "Give as many as there are samples."
        )
    is_0_or_1 = flags.dtype.kind in "iu" and bool(np.all((flags == 0) | (flags == 1)))
    if flags.dtype != np.bool_ and not is_0_or_1:
        raise DataError(
            f"{what} must be True or False for each sample, got {flags.dtype}. Use bools, or 0 and 1."
        )
    return flags.astype(np.bool_)


def _heldout_devices(
    is_heldout: Any, owners: IntArray, device_names: tuple[str, ...], *, name: str
) -> BoolArray:
    """Return whether each device is held out, from a bool per sample or the ids of the held-out devices."""
    if isinstance(is_heldout, str) or not isinstance(is_heldout, Iterable):
        raise DataError(
            f"{name}: is_heldout must be a bool per sample or a list of ids, got {is_heldout!r}. "
            f"Write [{is_heldout!r}]."
        )
    given = list(is_heldout)
    if given and all(isinstance(one, bool | np.bool_) for one in given):
        flags = as_flags(given, len(owners), what=f"{name}: is_heldout")
        return _agreed_by_samples(flags, owners, device_names, name=name)
    index_of_name = {device: index for index, device in enumerate(device_names)}
    heldout = np.zeros(len(device_names), dtype=np.bool_)
    for device in (device_name(one, name=name) for one in given):
        if device not in index_of_name:
            raise DataError(
                f'{name}: the held-out device "{device}" owns no sample, those that do are '
                f'"{device_names[0]}" to "{device_names[-1]}". Correct the id.'
            )
        if heldout[index_of_name[device]]:
            raise DataError(
                f'{name}: the held-out device "{device}" is named twice. Name it once, or give a bool per '
                "sample."
            )
        heldout[index_of_name[device]] = True
    return heldout


def _agreed_by_samples(
    is_heldout: BoolArray, owners: IntArray, device_names: tuple[str, ...], *, name: str
) -> BoolArray:
    """Return whether each device is held out, on which all its samples must agree."""
    num_own = np.bincount(owners[owners >= 0], minlength=len(device_names))
    num_heldout = np.bincount(owners[is_heldout & (owners >= 0)], minlength=len(device_names))
    mixed = np.flatnonzero((num_heldout > 0) & (num_heldout < num_own))
    if len(mixed):
        device = int(mixed[0])
        raise DataError(
            f"{name}: device {device_names[device]} is held out in {num_heldout[device]} of its "
            f"{num_own[device]} samples. A device trains or is held out as a whole: make its samples agree."
        )
    return num_heldout > 0


def _draw_support(split: UserSplit, labels: IntArray, *, shots: int, rng: np.random.Generator) -> BoolArray:
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


def _require_both_sets(split: UserSplit, is_support: BoolArray) -> None:
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
