"""What became of a plan: who arrived, and what it cost in joules and seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedwave.allocation import Allocation, Evaluation
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.schedule import UploadSchedule


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadLinks:
    """What Eq. (25) is made of: the link of each upload, and each device's samples. NaN without an upload."""

    num_samples: IntArray  # D_i
    channel_gain: FloatArray  # h on the device's block
    interference_w: FloatArray  # I of that block
    sinr: FloatArray  # linear, at the power used
    rate_bps: FloatArray

    @classmethod
    def without_uploads(cls, num_samples: IntArray) -> UploadLinks:
        """Return the links of a round in which nobody uploads."""
        empty = [np.full(len(num_samples), np.nan) for _ in range(4)]
        return cls(
            num_samples=num_samples,
            channel_gain=empty[0],
            interference_w=empty[1],
            sinr=empty[2],
            rate_bps=empty[3],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundCosts:
    """What one round costs. Arrays have one entry per training device."""

    compute_energy_j: FloatArray
    compute_time_s: FloatArray
    report_energy_j: FloatArray
    report_time_s: FloatArray
    upload_energy_j: FloatArray
    upload_time_s: FloatArray
    idle_energy_j: FloatArray
    idle_time_s: FloatArray
    delay_s: float  # the round on the clock: Eq. (31), plus broadcast and reports, cut off by a deadline
    downlink_energy_j: FloatArray = field(default_factory=lambda: np.zeros(1))  # of listening
    downlink_time_s: FloatArray = field(default_factory=lambda: np.zeros(1))
    broadcast_energy_j: float = 0.0  # the base station's, which no battery feels: not in the sums
    links: UploadLinks | None = None
    upload_start_s: FloatArray = field(default_factory=lambda: np.zeros(1))  # after the first upload's begin
    schedule: UploadSchedule | None = None  # who sent when on which blocks, where that changes in time

    @property
    def device_energy_j(self) -> FloatArray:
        """Each device's energy in this round."""
        sending = self.compute_energy_j + self.report_energy_j + self.upload_energy_j + self.idle_energy_j
        return sending + self.downlink_energy_j

    @property
    def energy_j(self) -> float:
        """The round's energy: Eq. (30), plus listening, reports and idling where those are not free."""
        return float(self.device_energy_j.sum())

    @property
    def busy_time_s(self) -> FloatArray:
        """How long each device listened, computed and sent; waiting does not count."""
        return self.downlink_time_s + self.compute_time_s + self.report_time_s + self.upload_time_s


@dataclass(frozen=True, kw_only=True, eq=False)
class BatteryReport:
    """The batteries after a round and the pause that follows it; arrays have one entry per device."""

    charge_j: FloatArray  # when the next round begins
    capacity_j: FloatArray
    is_awake: BoolArray  # who has enough to take part in it
    harvested_j: FloatArray  # what came in since the round began; a full battery does not hold all of it
    clock_s: float  # when the next round begins, counted from the run's beginning


@dataclass(frozen=True, eq=False)
class Hindsight:
    """What a round's plan was worth with the true gains, and what the best one would have been worth."""

    plan: Evaluation
    clairvoyant: Allocation  # the certified optimum of (P) with the true gains

    @property
    def regret(self) -> float:
        """What knowing the gains, and the best method, would have brought: up to the proven bound."""
        return self.plan.regret(self.clairvoyant)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a round's uploads."""

    received: IntArray  # sorted device indices: their models enter the server's step
    fate: IntArray  # of each selected device, in the order of the plan; values of UploadFate
    costs: RoundCosts | None = None  # None: nothing is counted
    battery: BatteryReport | None = None  # None: nobody lives on one
    hindsight: Hindsight | None = None  # None: the planner knew the gains, or nobody asks
