"""What every kind of channel offers to the cell. To add one, see ``fedwave.wireless.channels``."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from fedwave.settings import Part
from fedwave.units import FloatArray
from fedwave.wireless.channels.placement import LargeScale


class Channel(Protocol):
    """How well the devices of one cell are heard, round by round."""

    @property
    def large_scale(self) -> LargeScale | None:
        """The devices' places and what they cost; None: the channel has no geometry."""
        ...

    @property
    def has_own_rounds(self) -> bool:
        """Whether the rounds differ even in a static cell, and may come to an end, as in a recording."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each number that looks wrong in SI units, or place outside the model's range."""
        ...

    @property
    def ergodic_k_factor(self) -> FloatArray | None:
        """None: gains are what an upload meets. Otherwise they are means, and this is each device's K, (n,).

        An upload then lasts through the fading around the mean, Rician with K (0: Rayleigh), and the cell
        turns the mean into the gain of the ergodic rate.
        """
        ...

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return a new array with the power gains h of a round: (n,), the same on all blocks, or (n, M).

        The result depends on the channel, the round and ``rng`` alone, never on the rounds asked for before.
        """
        ...


class ChannelPart(Part):
    """What a cell's ``channel`` names: a kind of ``CHANNELS``, or a class or function of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.channels:CHANNEL"


class ChannelSection(ChannelPart, extra="forbid"):
    """A channel whose options are its fields; ``build`` returns the ``Channel`` of a cell."""

    place: ClassVar[str] = "channel"
