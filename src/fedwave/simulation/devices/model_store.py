"""Keeps the local models that may be needed for the mean, and no more: memory grows with n_k, not n."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from fedwave.learning.parameters import Parameters, unstack
from fedwave.units import FloatArray, IntArray


class ModelStore:
    """The models of the ``capacity`` devices with the largest scores so far; ties keep the lower position."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._worst_first: list[tuple[float, int]] = []  # a heap of (score, -position)
        self._models: dict[int, Parameters] = {}

    def offer(self, positions: IntArray, scores: FloatArray, stacked: Parameters) -> None:
        """Keep those of a chunk's models that are among the best so far."""
        for row, (position, score) in enumerate(zip(positions.tolist(), scores.tolist(), strict=True)):
            entry = (score, -position)
            if len(self._worst_first) < self._capacity:
                heapq.heappush(self._worst_first, entry)
            elif self._worst_first and entry > self._worst_first[0]:
                _, dropped = heapq.heapreplace(self._worst_first, entry)
                del self._models[-dropped]
            else:
                continue
            self._models[position] = unstack(stacked, row)

    def missing(self, positions: Iterable[int]) -> list[int]:
        """Return those positions whose model was not kept."""
        return [position for position in positions if position not in self._models]

    def models(self, positions: Iterable[int]) -> Iterator[Parameters]:
        """Yield the kept models in the order asked for."""
        for position in positions:
            yield self._models[position]
