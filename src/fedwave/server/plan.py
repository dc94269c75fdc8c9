"""What a server decides in a round, and why."""

from __future__ import annotations

from dataclasses import dataclass

from fedwave.allocation import Allocation
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Who uploads and, over a radio cell, on which block, at what power and CPU frequency."""

    selected: IntArray  # sorted device indices
    allocation: Allocation | None = None  # None: no radio to allocate
    scaled_contribution: FloatArray | None = None  # (n,), the contributions as the allocation saw them
    waits_for_reports: bool = True  # False: the choice did not need them, so nobody reports over the air
    reason: str = ""
