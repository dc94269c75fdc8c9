"""A channel: devices walk past the base station along a street, so that a round's gains are near the last's.

``walking.toml`` names it. Where a device is follows from the seed and the round, so nothing is remembered,
and a resumed run meets the gains that it would have met.
"""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray, db_to_linear


class WalkingChannel:
    """Log-distance path loss to where a device is, and Rayleigh fading on every block."""

    large_scale = None  # its places change, so that none is shown on a map
    has_own_rounds = True  # the rounds differ even in a static cell
    warnings = ()
    ergodic_k_factor = None  # an upload meets the gains as they are

    def __init__(
        self,
        num_devices: int,  # these three are filled in, the others are options
        num_blocks: int,
        seed: int,
        *,
        speed_m: float = 10.0,  # in a round
        street_m: float = 400.0,
        distance_m: float = 20.0,  # of the street from the base station
        reference_loss_db: float = 40.0,  # at one metre
        exponent: float = 3.5,
    ) -> None:
        rng = np.random.default_rng(seed)
        self._start_m = rng.uniform(0.0, street_m, num_devices)
        self._speed_m = rng.choice([-1.0, 1.0], num_devices) * speed_m
        self._street_m, self._distance_m = street_m, distance_m
        self._reference_loss_db, self._exponent = reference_loss_db, exponent
        self._num_blocks = num_blocks

    def distance_m(self, round_index: int) -> FloatArray:
        """Return how far each device is away; who leaves the street at one end comes back at the other."""
        along_m = (self._start_m + round_index * self._speed_m) % self._street_m - self._street_m / 2
        distance: FloatArray = np.hypot(along_m, self._distance_m)
        return distance

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the gains of a round, (n, M)."""
        loss_db = self._reference_loss_db + 10 * self._exponent * np.log10(self.distance_m(round_index))
        fading = rng.exponential(size=(len(loss_db), self._num_blocks))
        faded: FloatArray = db_to_linear(-loss_db)[:, None] * fading
        return faded
