"""What channels with a geometry share: a gain that a place fixes, times fading drawn for each round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from fedwave.settings import NonNegativeFloat, PositiveFloat, Section
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.fading import rayleigh_power, rician_power
from fedwave.wireless.large_scale import LargeScale
from fedwave.wireless.sanity import gain_warnings
from fedwave.wireless.setting_types import Decibel

_BLOCKS_DIFFER = {"per_block": True}
_OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "rayleigh": _BLOCKS_DIFFER,
    # Mean K-factor of UMi and UMa line of sight, TR 38.901 Table 7.5-6.
    "rician": {**_BLOCKS_DIFFER, "rician_k_db": 9.0},
    # 3 km/h is the report's speed of a pedestrian, Table 7.2-1.
    "delay-line": {"ergodic": True, "speed_km_per_h": 3.0, "round_interval_s": None},
}


class FadingConfig(Section):
    """Small-scale fading: a random factor of mean 1 on the power gain.

    Where the channel knows the line of sight, "rician" applies to devices in sight, the others are Rayleigh.
    "delay-line" draws each device's echoes by TR 38.901, clause 7.5, so that neighbouring blocks are alike.
    """

    place: ClassVar[str] = "channel.fading"
    choice: ClassVar[str | None] = "kind"

    kind: Literal["none", "rayleigh", "rician", "delay-line"] = "none"
    rician_k_db: Decibel | None = None  # how far the steady path stands above the scattered rest
    per_block: bool | None = None  # False: all blocks of a device fade together
    ergodic: bool | None = None  # an upload outlasts the fading; False: it meets one snapshot of it
    speed_km_per_h: NonNegativeFloat | None = None  # of all devices, for coherence and correlated rounds
    round_interval_s: PositiveFloat | None = None  # rounds are this far apart; None: they fade independently

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return what a kind of fading can be told, with the defaults."""
        return _OPTIONS.get(value, {})


def fade(
    large_scale: LargeScale, fading: FadingConfig, *, num_blocks: int, rng: np.random.Generator
) -> FloatArray:
    """Return the large-scale gains (n,) times fading: (n, M), or (n,) where blocks do not differ."""
    gain = large_scale.gain
    if fading.kind == "none":
        return gain.copy()
    shape = (len(gain), num_blocks if fading.per_block else 1)
    if fading.kind == "rayleigh":
        power = rayleigh_power(shape, rng=rng)
    else:
        assert fading.rician_k_db is not None  # options_of
        # Only a device in sight has a steady path; K = 0 is Rayleigh.
        in_sight = large_scale.is_line_of_sight
        share_in_sight = np.ones(len(gain)) if in_sight is None else in_sight.astype(np.float64)
        k_factor = db_to_linear(fading.rician_k_db) * share_in_sight[:, np.newaxis]
        power = rician_power(shape, k_factor=k_factor, rng=rng)
    power *= gain[:, np.newaxis]
    return power if fading.per_block else power[:, 0]


def place_warnings(large_scale: LargeScale) -> tuple[str, ...]:
    """Return a line if a place gives a gain above 1."""
    return gain_warnings(
        float(large_scale.gain.max()),
        advice="Is a device too close, or a loss in dB of the wrong sign?",
    )
