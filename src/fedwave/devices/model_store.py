"""Keeps the local models that may be needed for the mean, and no more: memory grows with n_k, not n."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from fedwave.units import FloatArray, IntArray

Kept = TypeVar("Kept")  # a model, or what stands for one that lies on another machine


class ModelStore(Generic[Kept]):
    """The models of the ``capacity`` devices with the largest scores so far; ties keep the lower position.

    What scores less than ``floor`` is not kept, and where ``only`` is given, nobody else's model is.
    """

    def __init__(
        self, capacity: int, *, floor: float = -math.inf, only: Collection[int] | None = None
    ) -> None:
        self._capacity = capacity
        self._floor = floor
        self._only = None if only is None else frozenset(only)
        self._worst_first: list[tuple[float, int]] = []  # a heap of (score, -position)
        self._models: dict[int, Kept] = {}

    def offer(self, positions: IntArray, scores: FloatArray, model_of_row: Callable[[int], Kept]) -> None:
        """Keep those of some models that are among the best so far; only they are asked for."""
        for row, (position, score) in enumerate(zip(positions.tolist(), scores.tolist(), strict=True)):
            if score < self._floor or (self._only is not None and position not in self._only):
                continue
            entry = (score, -position)
            if len(self._worst_first) < self._capacity:
                heapq.heappush(self._worst_first, entry)
            elif self._worst_first and entry > self._worst_first[0]:
                _, dropped = heapq.heapreplace(self._worst_first, entry)
                del self._models[-dropped]
            else:
                continue
            self._models[position] = model_of_row(row)

    def emptied(self) -> ModelStore[Kept]:
        """Return a store that takes in whatever this one may still want, for work elsewhere."""
        is_full = len(self._worst_first) >= self._capacity and self._worst_first
        floor = self._worst_first[0][0] if is_full else self._floor
        return ModelStore(self._capacity, floor=floor, only=self._only)

    def scored(self) -> list[tuple[int, float, Kept]]:
        """Return position, score and model of all that are kept."""
        return [(-minus, score, self._models[-minus]) for score, minus in sorted(self._worst_first)]

    def get(self, position: int) -> Kept | None:
        """Return the model of a device, or None if it was not kept."""
        return self._models.get(position)
