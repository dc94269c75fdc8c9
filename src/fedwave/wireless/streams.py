"""Random streams of what is drawn once for a cell: its fleet and its places."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from fedwave.rng import Stream, generator


class FleetStream(IntEnum):
    """Sub-streams of ``Stream.FLEET``: drawing one differently leaves the others. Append only."""

    MAX_POWER_W = 0
    MAX_FREQUENCY_HZ = 1
    CAPACITANCE = 2
    CYCLES_PER_SAMPLE = 3
    POSITION = 4
    LINE_OF_SIGHT = 5
    SHADOWING = 6
    ENVIRONMENT_HEIGHT = 7
    MIN_FREQUENCY_HZ = 8
    MULTIPATH = 9


def fleet_generator(seed: int, purpose: FleetStream) -> np.random.Generator:
    """Return the generator of one thing that a cell draws once."""
    return generator(seed, Stream.FLEET, int(purpose))
