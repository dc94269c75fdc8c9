"""Small-scale fading, a class for each kind: a factor of mean 1 on the power gain, drawn for each round."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from fedwave.parts import PartKind
from fedwave.settings import Decibel, NonNegativeFloat, Part, PositiveFloat
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.channels.placement import LargeScale


class Fading(Protocol):
    """Small-scale fading: a random factor of mean 1 on the power gain."""

    def faded(self, large_scale: LargeScale, *, num_blocks: int, rng: np.random.Generator) -> FloatArray:
        """Return the large-scale gains (n,) times fading: (n, M), or (n,) where blocks do not differ."""
        ...


class FadingPart(Part):
    """What a channel's ``fading`` names: a kind of ``FADINGS``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.channels.fading:FADING"

    kind: str = "none"


class NoFading(FadingPart, extra="forbid"):
    """Gains stay as the places make them."""

    kind: Literal["none"] = "none"

    def faded(self, large_scale: LargeScale, *, num_blocks: int, rng: np.random.Generator) -> FloatArray:
        """Return the large-scale gains."""
        del num_blocks, rng
        return large_scale.gain.copy()


class RayleighFading(FadingPart, extra="forbid"):
    """Many echoes and no steady path."""

    kind: Literal["rayleigh"] = "rayleigh"
    per_block: bool = True  # False: all blocks of a device fade together

    def faded(self, large_scale: LargeScale, *, num_blocks: int, rng: np.random.Generator) -> FloatArray:
        """Return the gains times an exponential factor."""
        shape = (len(large_scale.gain), num_blocks if self.per_block else 1)
        return _times(large_scale.gain, rayleigh_power(shape, rng=rng), per_block=self.per_block)


class RicianFading(FadingPart, extra="forbid"):
    """A steady path beside the echoes; where the channel knows the line of sight, for devices in sight alone.

    The others are Rayleigh.
    """

    kind: Literal["rician"] = "rician"
    # How far the steady path stands above the scattered rest: mean of UMi and UMa line of sight, TR 38.901
    # Table 7.5-6.
    rician_k_db: Decibel = 9.0
    per_block: bool = True  # False: all blocks of a device fade together

    def faded(self, large_scale: LargeScale, *, num_blocks: int, rng: np.random.Generator) -> FloatArray:
        """Return the gains times a Rician factor."""
        gain = large_scale.gain
        shape = (len(gain), num_blocks if self.per_block else 1)
        # Only a device in sight has a steady path; K = 0 is Rayleigh.
        in_sight = large_scale.is_line_of_sight
        share_in_sight = np.ones(len(gain)) if in_sight is None else in_sight.astype(np.float64)
        if large_scale.whereabouts is not None:
            share_in_sight *= ~large_scale.whereabouts.is_indoor
        k_factor = db_to_linear(self.rician_k_db) * share_in_sight[:, np.newaxis]
        return _times(gain, rician_power(shape, k_factor=k_factor, rng=rng), per_block=self.per_block)


class DelayLineFading(FadingPart, extra="forbid"):
    """Each device's echoes by TR 38.901, clause 7.5, so that neighbouring blocks are alike.

    The channel draws them: only "3gpp" has their tables.
    """

    kind: Literal["delay-line"] = "delay-line"
    ergodic: bool = True  # an upload outlasts the fading; False: it meets one snapshot of it
    # Of all devices, for coherence and correlated rounds; the report's pedestrian, Table 7.2-1.
    speed_km_per_h: NonNegativeFloat = 3.0
    round_interval_s: PositiveFloat | None = None  # rounds are this far apart; None: they fade independently


FADINGS: dict[str, Any] = {
    "none": NoFading,
    "rayleigh": RayleighFading,
    "rician": RicianFading,
    "delay-line": DelayLineFading,
}
FADING = PartKind("fading", FADINGS, ("kind",))


def combined(
    fading: Fading, large_scale: LargeScale, *, num_blocks: int, rng: np.random.Generator
) -> FloatArray:
    """Return the gains after maximum-ratio combining: the sum over antennas that fade independently."""
    gain = fading.faded(large_scale, num_blocks=num_blocks, rng=rng)
    for _ in range(large_scale.num_receive_antennas - 1):
        gain = gain + fading.faded(large_scale, num_blocks=num_blocks, rng=rng)
    return gain


def rayleigh_power(shape: tuple[int, ...], *, rng: np.random.Generator) -> FloatArray:
    """Return |g|^2 for g complex normal of unit power: exponential with mean 1 and variance 1."""
    return rng.standard_exponential(shape)


def rician_power(
    shape: tuple[int, ...], *, k_factor: float | FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return |g|^2 for a steady path K times as strong as the scattered rest; mean 1.

    The variance is (1 + 2K) / (1 + K)^2: 1 at K = 0 (Rayleigh), towards 0 for a steady channel.
    """
    scatter = np.sqrt(0.5 / (1.0 + k_factor))  # standard deviation of each of the two components
    power = rng.standard_normal(shape)
    power *= scatter
    power += np.sqrt(k_factor / (1.0 + k_factor))
    np.square(power, out=power)
    quadrature = rng.standard_normal(shape)
    quadrature *= scatter
    np.square(quadrature, out=quadrature)
    power += quadrature
    return power


def _times(gain: FloatArray, power: FloatArray, *, per_block: bool) -> FloatArray:
    power *= gain[:, np.newaxis]
    return power if per_block else power[:, 0]
