"""Offers of the same device: of each group of uploads at most one is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Uploads in groups that stand together, the last axis of every table."""

    start: IntArray  # where each group begins
    number: IntArray  # of the group of each upload, from 0 on

    @classmethod
    def of(cls, group: IntArray) -> Groups:
        """Return the groups of labels in rising order."""
        is_new = np.ones(group.shape, dtype=bool)
        is_new[1:] = group[1:] != group[:-1]
        return cls(start=np.flatnonzero(is_new), number=np.cumsum(is_new) - 1)

    def best(self, worth: FloatArray) -> FloatArray:
        """Return the largest worth of each group."""
        if self.start.size == 0:
            return worth
        return np.asarray(np.maximum.reduceat(worth, self.start, axis=-1))

    def leaders(self, worth: FloatArray) -> BoolArray:
        """Return which uploads are the best of their group, the first of equals."""
        is_best = worth >= self.best(worth)[..., self.number]
        before = np.cumsum(is_best, axis=-1)
        begin = np.where(self.start > 0, before[..., self.start - 1], 0)
        return np.asarray(is_best & (before - begin[..., self.number] == 1))

    def rivals(self, worth: FloatArray) -> FloatArray:
        """Return of each upload the best worth of the others in its group; minus infinity if it is alone."""
        leads = self.leaders(worth)
        second = self.best(np.where(leads, -np.inf, worth))
        return np.where(leads, second[self.number], self.best(worth)[self.number])

    @property
    def is_alone(self) -> BoolArray:
        """Return which uploads are the only one of their group."""
        size = np.bincount(self.number, minlength=self.start.size)
        return np.asarray(size[self.number] == 1)
