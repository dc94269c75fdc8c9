"""The user's own split: which sample belongs to which device, who is held out, what is support and query."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.data.dataset import Dataset, fingerprint_of
from fedwave.data.device_ids import device_name, index_devices, require_devices
from fedwave.errors import DataError
from fedwave.units import BoolArray, IntArray

NAME = "own split"  # what error messages call it


@dataclass(frozen=True, eq=False)
class OwnSplit:
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
                    f"{flags.shape}. Use own_split, which makes it."
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


def own_split(
    device_of_sample: Iterable[Any],
    *,
    is_heldout: ArrayLike | Collection[Any] | None = None,
    is_support: ArrayLike | None = None,
    name: str = NAME,
) -> OwnSplit:
    """Return the split with these owners, one id per sample: a whole number or text, -1 or "" for nobody.

    ``is_heldout`` is a bool per sample, the same for all samples of a device, or a collection of device ids.
    ``is_support`` is a bool per sample. Devices are numbered in the sorted order of their ids.
    """
    owners, names = index_devices(device_of_sample, name=name)
    heldout = None if is_heldout is None else _heldout_devices(is_heldout, owners, names, name=name)
    support = None if is_support is None else as_flags(is_support, len(owners), what=f"{name}: is_support")
    return OwnSplit(owners, names, heldout, support)


def split_of_dataset(dataset: Dataset) -> OwnSplit:
    """Return the split that comes with a dataset."""
    if dataset.device_of_sample is None:
        raise DataError(
            f"{dataset.name} does not say which device owns which sample. Give the split as a file, or the "
            "dataset its device_of_sample (devices, in a .npz file)."
        )
    return OwnSplit(dataset.device_of_sample, dataset.device_names)


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
