"""Named random streams: one seed, one independent generator for each purpose, round and device."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """Sources of randomness. Append only: renumbering changes every published number."""

    PARTITION = 0
    CHANNEL = 1
    SELECTION = 2
    LOCAL_BATCHES = 3
    MODEL_INIT = 4
    SYNTHETIC_DATA = 5
    FLEET = 6
    ALLOCATION = 7
    UPLOAD_LOSS = 8
    INTERFERENCE = 9
    FAULTS = 10
    SKETCHES = 11
    BATTERY = 12
    ESTIMATION = 13
    THEORY = 14


def generator(seed: int, stream: Stream, *index: int) -> np.random.Generator:
    """Return the generator for one purpose, e.g. ``generator(seed, Stream.CHANNEL, round_index)``.

    The purpose and index go into ``spawn_key``, not into the seed list: a short list drops its trailing
    zeros, so ``[seed, 1]`` and ``[seed, 1, 0]`` would share one stream.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *index)))


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
    STATIC_POWER_W = 10
    JOULES_PER_CYCLE = 11
    WHEREABOUTS = 12


def fleet_generator(seed: int, purpose: FleetStream) -> np.random.Generator:
    """Return the generator of one thing that a cell draws once."""
    return generator(seed, Stream.FLEET, int(purpose))
