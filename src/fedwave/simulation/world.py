"""What the world answers to a plan: who arrives, and what it cost in joules and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedwave.server import Plan, Reports
from fedwave.simulation.ledger import RoundCosts
from fedwave.units import IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.delivery import UploadFate


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a round's uploads."""

    received: IntArray  # sorted device indices: their models enter the server's step
    fate: IntArray  # of each selected device, in the order of the plan; values of UploadFate
    costs: RoundCosts | None = None  # None: nothing is counted


class World(Protocol):
    """Nature: draws the channel, and plays what the server has planned."""

    def channel(self, round_index: int) -> ChannelDraw | None:
        """Return the channel of a round; None on an ideal network."""
        ...

    def play(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return what becomes of the plan."""
        ...


@dataclass(frozen=True)
class IdealWorld:
    """Every upload arrives, at no cost, as in Alg. 1."""

    def channel(self, round_index: int) -> ChannelDraw | None:
        """Return None: there is no radio."""
        del round_index
        return None

    def play(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return that everybody arrives."""
        del round_index, reports, channel
        return Outcome(plan.selected, np.full(len(plan.selected), UploadFate.ARRIVED, dtype=np.int64))
