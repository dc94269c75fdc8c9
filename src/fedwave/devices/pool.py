"""The devices of a run and their samples, stacked into batches on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedwave.data import Dataset, DeviceData, pixel_statistics, standardise
from fedwave.data.dataset import is_token_type
from fedwave.learning import Batch
from fedwave.units import IntArray

# Devices are stacked with others of about the same size: padding may take this share of a chunk.
MAX_PADDING = 0.08


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Turns raw samples into what models see: each pixel standardised over the dataset, or only rescaled.

    Token ids stay what they are.
    """

    mean: NDArray[np.float32]
    std: NDArray[np.float32] | None  # None: only divide by 255 (images) or leave as they are

    @classmethod
    def fit(cls, dataset: Dataset, kind: str) -> Standardiser:
        """Return the standardiser of a dataset; ``kind`` is ``pixel`` or ``none``."""
        if kind == "none" or dataset.has_token_ids:
            return cls(np.zeros(1, dtype=np.float32), None)
        return cls(*pixel_statistics(dataset))

    def __call__(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return the samples as float32, or token ids as int64."""
        if is_token_type(samples.dtype):
            return samples.astype(np.int64)
        if self.std is not None:
            return standardise(samples, self.mean, self.std)
        scale = np.float32(255.0 if samples.dtype == np.uint8 else 1.0)
        return np.asarray(samples, dtype=np.float32) / scale


@dataclass(frozen=True, eq=False)
class DevicePool:
    """Some devices of the partition, with access to their samples. A *position* counts within the pool."""

    dataset: Dataset
    standardiser: Standardiser
    devices: tuple[DeviceData, ...]
    device_ids: IntArray  # each device's number in the whole partition
    torch_device: torch.device

    def __len__(self) -> int:
        return len(self.devices)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to another process: all devices' samples as one array, not as thousands."""
        sets = [own for device in self.devices for own in (device.support, device.query)]
        return {
            "rest": {f.name: getattr(self, f.name) for f in fields(self) if f.name != "devices"},
            "samples": np.concatenate([*sets, np.zeros(0, dtype=np.int64)]),
            "ends": np.cumsum([len(own) for own in sets], dtype=np.int64),
            "classes": [device.classes for device in self.devices],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give every device its part of that array."""
        sets = iter(np.split(state["samples"], state["ends"]))
        devices = tuple(DeviceData(next(sets), next(sets), classes) for classes in state["classes"])
        for name, value in {**state["rest"], "devices": devices}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def num_samples(self) -> IntArray:
        """Number of local samples of each device, D_i in Eq. (21)."""
        return np.array([len(d.support) + len(d.query) for d in self.devices], dtype=np.int64)

    @cached_property
    def num_query(self) -> IntArray:
        """Number of query samples of each device."""
        return np.array([len(d.query) for d in self.devices], dtype=np.int64)

    @property
    def _targets(self) -> NDArray[Any]:
        """What is learnt: class labels, or real numbers where the dataset has them."""
        return self.dataset.labels if self.dataset.targets is None else self.dataset.targets

    def chunks(self, positions: IntArray, *, max_samples: int) -> list[IntArray]:
        """Return the positions in groups of similar size, largest first, each to be computed at once."""
        return group_by_size(positions, self.num_samples[positions], max_samples=max_samples)

    def support(self, positions: IntArray) -> Batch:
        """Return the support sets, D."""
        return self._stack([self.devices[p].support for p in positions])

    def query(self, positions: IntArray) -> Batch:
        """Return the query sets, D'."""
        return self._stack([self.devices[p].query for p in positions])

    def everything(self, positions: IntArray) -> Batch:
        """Return support and query sets together, as FedAvg takes them."""
        return self._stack([self._all_samples(p) for p in positions])

    def drawn(
        self,
        positions: IntArray,
        batch_size: int,
        rngs: Sequence[np.random.Generator],
        *,
        with_support: bool,
    ) -> Batch:
        """Return up to ``batch_size`` samples of each device, drawn without replacement."""
        drawn = []
        for position, rng in zip(positions, rngs, strict=True):
            own = self._all_samples(position) if with_support else self.devices[position].query
            drawn.append(own if len(own) <= batch_size else rng.choice(own, batch_size, replace=False))
        return self._stack(drawn)

    def examples(self, count: int) -> torch.Tensor:
        """Return samples from all over the dataset as models see them, different ones where there are."""
        places = np.linspace(0, self.dataset.num_samples - 1, 4 * count).astype(np.int64)
        candidates = self.dataset.inputs[np.unique(places)]
        _, first = np.unique(candidates.reshape(len(candidates), -1), axis=0, return_index=True)
        chosen = first[np.linspace(0, len(first) - 1, count).astype(np.int64)]
        return torch.from_numpy(self.standardiser(candidates[chosen]))

    def _all_samples(self, position: int) -> IntArray:
        return np.concatenate([self.devices[position].support, self.devices[position].query])

    def _stack(self, samples: Sequence[IntArray]) -> Batch:
        shape = len(samples), max(len(own) for own in samples)
        index, weights = np.empty(shape, dtype=np.int64), np.zeros(shape)
        for row, own in enumerate(samples):
            index[row], weights[row, : len(own)] = own[0], 1.0 / len(own)
            index[row, : len(own)] = own
        inputs = self.standardiser(self.dataset.inputs[index])
        return Batch(
            torch.from_numpy(inputs).to(self.torch_device),
            torch.from_numpy(self._targets[index]).to(self.torch_device),
            torch.from_numpy(weights.astype(np.float32)).to(self.torch_device),
        )


def group_by_size(
    positions: IntArray, sizes: IntArray, *, max_samples: int, max_padding: float = MAX_PADDING
) -> list[IntArray]:
    """Return groups of positions of nearly equal size, largest first.

    A group holds at most ``max_samples`` samples, padding included (but always at least one device), and
    padding is at most ``max_padding`` of it. Groups depend on the sizes alone.
    """
    groups: list[list[int]] = []
    longest = total = 0
    for order in np.argsort(-sizes, kind="stable"):
        size = int(sizes[order])
        count = len(groups[-1]) + 1 if groups else 1
        padded = longest * count
        if not groups or padded > max_samples or padded - (total + size) > max_padding * padded:
            groups.append([])
            longest, total = size, 0
        groups[-1].append(int(positions[order]))
        total += size
    return [np.array(group, dtype=np.int64) for group in groups]
