"""The radio channel of one round, as a server knows it: measured, read or drawn. Needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

from fedwave.units import FloatArray


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """The radio channel of one round. Those that a cell draws are read-only."""

    channel_gain: FloatArray  # h: (n,), the same on all blocks, or (n, M)
    interference_w: FloatArray  # I: (M,)
