"""The certified optimum of (P): the search (branch and bound), its candidates, and what rules devices out."""

from __future__ import annotations

from fedwave.allocation.optimal.solve import allocate_optimal

__all__ = ["allocate_optimal"]
