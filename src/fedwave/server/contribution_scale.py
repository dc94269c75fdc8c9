"""On which scale contributions meet joules and seconds in problem (P): it decides how much those matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedwave.units import FloatArray

ScaleKind = Literal["raw", "constant", "normalised"]


@dataclass(frozen=True)
class ContributionScale:
    """raw: u of Eq. (21). constant: u plus a constant (the paper's footnote). normalised: mean |u| is 1."""

    kind: ScaleKind = "raw"
    constant: float = 0.0

    def __call__(self, contribution: FloatArray) -> FloatArray:
        """Return the contributions as the allocation sees them."""
        if self.kind == "constant":
            return contribution + self.constant
        if self.kind == "normalised":
            size = float(np.abs(contribution).mean()) if contribution.size else 0.0
            return contribution / size if size > 0 else contribution
        return contribution
