"""Where the penalties of Eq. (21) come from: settings, the theory's estimates, or these scaled to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fedwave.errors import ConfigError, require_count
from fedwave.selection.contribution import turning_point
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class Penalties:
    """A pair of penalties of Eq. (21)."""

    similarity: float  # lambda_1
    variance: float  # lambda_2

    def turning_point(self, num_samples: IntArray) -> FloatArray:
        """Return the gradient norm at which each device's contribution starts to rise."""
        return turning_point(num_samples, similarity_penalty=self.similarity, variance_penalty=self.variance)

    def times(self, factor: float) -> Penalties:
        """Return both, scaled."""
        return Penalties(self.similarity * factor, self.variance * factor)


class PenaltyRule(Protocol):
    """Says where penalties come from; one that needs estimates derives from ``EstimatedPenalties``."""

    @property
    def needs_estimates(self) -> bool:
        """Whether the theory's constants are estimated on the devices as the run goes on."""
        ...


@dataclass(frozen=True)
class FixedPenalties:
    """The penalties of the settings, similarity_penalty and variance_penalty, in every round."""

    needs_estimates: ClassVar[bool] = False


@dataclass(frozen=True)
class EstimatedPenalties:
    """The least penalties of Corollary 1, Eq. (19) and (20), by constants estimated every few rounds.

    Estimates are noisy: ``smoothing`` is the weight of what was before. As the constants are lower bounds, so
    are the penalties. docs/theory.md says what they do.
    """

    every: int = 5  # rounds between two estimates
    smoothing: float = 0.5
    as_printed: bool = False  # Eq. (19) as it stands in the paper, not corrected
    num_devices: int = 3  # on which the constants are measured, drawn anew each time
    num_iterations: int = 3  # of Lanczos
    num_probes: int = 1  # of Hutchinson
    needs_estimates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, least in (("every", 1), ("num_devices", 2), ("num_iterations", 1), ("num_probes", 1)):
            require_count(f"selection.penalties.{name}", getattr(self, name), at_least=least)
        if not 0 <= self.smoothing < 1:
            raise ConfigError(
                f"selection.penalties.smoothing must be at least 0 and below 1, got {self.smoothing}. "
                "0 forgets what was before; at 1 the first estimate would stay for ever."
            )

    def smoothed(self, before: Penalties | None, found: Penalties) -> Penalties:
        """Return the theory's penalties after an estimate; the first one counts in full."""
        if before is None:
            return found
        old, new = self.smoothing, 1.0 - self.smoothing
        return Penalties(
            old * before.similarity + new * found.similarity, old * before.variance + new * found.variance
        )

    def used(self, theory: Penalties, first_norms: FloatArray, num_samples: IntArray) -> Penalties:
        """Return the penalties of a round with these norms of the devices' first steps: the theory's own."""
        del first_norms, num_samples
        return theory


@dataclass(frozen=True)
class CalibratedPenalties(EstimatedPenalties):
    """The theory's penalties, scaled in every round so that a share of devices is above the turning point.

    Their ratio is the theory's; their size is not, as that puts everybody below it where it was measured.
    """

    share_above: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share_above <= 1:
            raise ConfigError(
                f"selection.penalties.share_above must be above 0 and at most 1, got {self.share_above}. "
                "It is the share of devices of which a larger gradient counts more."
            )

    def used(self, theory: Penalties, first_norms: FloatArray, num_samples: IntArray) -> Penalties:
        """Return them scaled: between the last norm that is to lie above its point and the next one."""
        points = theory.turning_point(num_samples)
        if first_norms.size == 0 or not np.all(points > 0):
            return theory
        ratios = np.sort(first_norms / points)[::-1]
        above = int(np.floor(self.share_above * len(ratios) + 0.5))
        ends = np.array([2.0 * ratios[0], *ratios, 0.0])  # beyond the largest, and below the smallest
        return theory.times(float(0.5 * (ends[above] + ends[above + 1])))
