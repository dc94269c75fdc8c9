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


def generator(seed: int, stream: Stream, *index: int) -> np.random.Generator:
    """Return the generator for one purpose, e.g. ``generator(seed, Stream.CHANNEL, round_index)``.

    The purpose and index go into ``spawn_key``, not into the seed list: a short list drops its trailing
    zeros, so ``[seed, 1]`` and ``[seed, 1, 0]`` would share one stream.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *index)))
