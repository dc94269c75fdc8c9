"""What a round is planned for: what joules, seconds and contributions are worth, and the work to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray

ScaleKind = Literal["raw", "constant", "normalised"]


@dataclass(frozen=True)
class ContributionScale:
    """The scale on which contributions meet joules and seconds: it decides how much those matter.

    raw: u of Eq. (21). constant: u plus a constant (the paper's footnote). normalised: mean |u| is ``size``.
    """

    kind: ScaleKind = "raw"
    constant: float = 0.0
    size: float = 1.0

    def __call__(self, contribution: FloatArray) -> FloatArray:
        """Return the contributions as the allocation sees them."""
        if self.kind == "constant":
            return contribution + self.constant
        if self.kind == "normalised":
            size = float(np.abs(contribution).mean()) if contribution.size else 0.0
            return self.size * (contribution / size) if size > 0 else contribution
        return contribution


RAW = ContributionScale()


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundAims:
    """What problem (P) maximises, U - eta_1 E - eta_2 T, and the hard limits that every method respects."""

    energy_weight: FloatArray | float  # eta_1 [1/J]; (n,): a price of each device's joules
    delay_weight: float  # eta_2 [1/s]
    scale: ContributionScale = RAW  # of U
    max_delay_s: float | None = None  # of the uploads
    max_energy_j: FloatArray | float | None = None  # of each upload: one for all, or one a device


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """What each device does in a round: tau steps over D samples, then an upload of S bits."""

    model_bits: float  # S
    num_local_steps: int  # tau
    num_samples: IntArray  # D_i of every device

    def __post_init__(self) -> None:
        if np.ndim(self.num_samples) != 1:
            raise ProblemError(
                f"num_samples must have one entry for each device, got shape {np.shape(self.num_samples)}. "
                "Use np.full(num_devices, 10) where all have as many."
            )

    def with_gradients(self, num_gradients: int | None) -> Work:
        """Return the work of a round that chose how many gradients each computes; None: it did not."""
        return self if num_gradients is None else replace(self, num_local_steps=num_gradients)
