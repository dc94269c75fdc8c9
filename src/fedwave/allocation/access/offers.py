"""Devices that offer several pairs (u, S), and uploads of different sizes: one row for each offer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.units import BoolArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferRows:
    """A problem in which every offer is a device of its own, and whose it is."""

    problem: AllocationProblem
    device: IntArray  # of each row, in rising order
    offer: IntArray  # of each row: 0 is contribution and device_bits, 1 the first of offer_contribution

    @classmethod
    def of(cls, problem: AllocationProblem) -> OfferRows:
        """Return a row for each offer; without offers the problem itself."""
        n = problem.num_devices
        if problem.offer_contribution is None or problem.offer_bits is None:
            return cls(problem=problem, device=np.arange(n), offer=np.zeros(n, dtype=np.int64))
        num_offers = 1 + problem.offer_contribution.shape[1]
        device, offer = np.repeat(np.arange(n), num_offers), np.tile(np.arange(num_offers), n)
        own = np.broadcast_to(np.asarray(problem.bits_of(np.arange(n))), (n,))
        values: dict[str, Any] = {
            field.name: value[device]
            for field in fields(problem)
            if isinstance(value := getattr(problem, field.name), np.ndarray)
            and value.shape[:1] == (n,)
            and field.name != "interference_w"
        }
        values |= {
            "contribution": np.hstack([problem.contribution[:, None], problem.offer_contribution]).ravel(),
            "device_bits": np.hstack([own[:, None], problem.offer_bits]).ravel(),
            "offer_contribution": None,
            "offer_bits": None,
        }
        return cls(problem=replace(problem, **values), device=device, offer=offer)

    def groups_of(self, row: IntArray, problem: AllocationProblem) -> IntArray | None:
        """Return whose offers these rows are; None where nobody has several."""
        return self.device[row] if problem.has_offers else None

    def mask(self, may_upload: BoolArray | None) -> BoolArray | None:
        """Return who may upload, row by row."""
        return None if may_upload is None else may_upload[self.device]

    def taken(self, row: IntArray, problem: AllocationProblem) -> IntArray | None:
        """Return the offer that each device takes, -1 for those that do not upload; None without offers."""
        if not problem.has_offers:
            return None
        offer = np.full(problem.num_devices, -1, dtype=np.int64)
        offer[self.device[row]] = self.offer[row]
        return offer
