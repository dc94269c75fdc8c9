"""What the world answers to a plan: who arrives, and what it cost in joules and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fedwave.server import Outcome, Plan, Reports
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw


class World(Protocol):
    """Nature: draws the channel, and answers what the server has planned."""

    @property
    def counts_costs(self) -> bool:
        """Whether every outcome says what the round cost: only then do tables have joules and seconds."""
        ...

    @property
    def fleet(self) -> Fleet | None:
        """The devices' hardware as it is; None where the world does not know it."""
        ...

    def channel(self, round_index: int) -> ChannelDraw | None:
        """Return the channel of a round; None on an ideal network."""
        ...

    def answer(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return what becomes of the plan."""
        ...


@dataclass(frozen=True)
class IdealWorld:
    """Every upload arrives, at no cost, as in Alg. 1."""

    counts_costs: ClassVar[bool] = False
    fleet: ClassVar[Fleet | None] = None

    def channel(self, round_index: int) -> ChannelDraw | None:
        """Return None: there is no radio."""
        del round_index
        return None

    def answer(self, round_index: int, plan: Plan, reports: Reports, channel: ChannelDraw | None) -> Outcome:
        """Return that everybody arrives."""
        del round_index, reports, channel
        return Outcome(plan.selected, np.full(len(plan.selected), UploadFate.ARRIVED, dtype=np.int64))
