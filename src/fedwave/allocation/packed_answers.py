"""Allocations as a few long arrays, which go through a pipe much faster than thousands of short ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fedwave.allocation.solution import Allocation, DeviceCosts

_PACKED = (Allocation, DeviceCosts)  # all that they hold is in their fields


@dataclass(frozen=True, eq=False)
class _Joined:
    """Arrays with one axis, end to end."""

    values: np.ndarray[Any, Any]
    lengths: list[int]

    def parts(self) -> list[Any]:
        """Return them, each with memory of its own: who keeps one must not keep them all."""
        ends = np.cumsum(self.lengths)[:-1]
        return [part.copy() for part in np.split(self.values, ends)]


@dataclass(frozen=True, eq=False)
class Packed:
    """Objects of one class: each of its fields, of all of them."""

    kind: type
    columns: dict[str, Any]

    def objects(self) -> list[Any]:
        """Return the objects as they were."""
        found = []
        names = tuple(self.columns)
        for values in zip(*map(unpacked, self.columns.values()), strict=True):
            one: Any = object.__new__(self.kind)  # they were checked when they were made
            vars(one).update(zip(names, values, strict=True))
            found.append(one)
        return found


def packed(values: Sequence[Any]) -> Any:
    """Return what ``unpacked`` makes the same list of: short to send where the values are alike."""
    kinds = {type(value) for value in values}
    if len(kinds) != 1:
        return list(values)
    (kind,) = kinds
    if kind in _PACKED:
        names = [field.name for field in fields(kind)]
        return Packed(kind, {name: packed([getattr(value, name) for value in values]) for name in names})
    if kind is np.ndarray and {(value.dtype, value.ndim) for value in values} == {(values[0].dtype, 1)}:
        return _Joined(np.concatenate(values), [value.size for value in values])
    return list(values)


def unpacked(sent: Any) -> list[Any]:
    """Return the values that were packed."""
    if isinstance(sent, Packed):
        return sent.objects()
    if isinstance(sent, _Joined):
        return sent.parts()
    found: list[Any] = sent
    return found
