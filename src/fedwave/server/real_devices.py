"""A planner that was told of real devices: who can be reached, their samples, their radio and their CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.errors import ProblemError
from fedwave.server.cell_planner import CellPlanner
from fedwave.server.planner import Planner
from fedwave.server.policy_planner import PolicyPlanner
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.fleet import Fleet


@dataclass(frozen=True, kw_only=True, eq=False)
class CellReports:
    """What devices in a radio cell say of themselves; axis 0 follows ``device_index``."""

    device_index: IntArray
    channel_gain: FloatArray  # h: (devices, blocks), or (devices, 1) where all blocks are alike
    max_power_w: FloatArray
    max_frequency_hz: FloatArray
    capacitance: FloatArray
    cycles_per_sample: FloatArray  # c; the workload is tau c D

    def channel(self, num_devices: int, interference_w: FloatArray) -> ChannelDraw:
        """Return the channel as measured by these devices; the others have none."""
        blocks = self.channel_gain.shape[1]
        if blocks not in (1, len(interference_w)):
            raise ProblemError(
                f"devices must report a gain for each of the {len(interference_w)} blocks, or one for all, "
                f"got {blocks}. Give server and devices the same cell."
            )
        gain = np.zeros((num_devices, blocks))
        gain[self.device_index] = self.channel_gain
        return ChannelDraw(gain[:, 0] if blocks == 1 else gain, interference_w)


def reachable(planner: Planner, *, present: IntArray, num_samples: IntArray) -> Planner:
    """Return the planner that chooses among the devices present; one without a ``Chooser`` stays as it is."""
    if isinstance(planner, PolicyPlanner | CellPlanner):
        chooser = replace(planner.chooser, present=present, num_samples=num_samples)
        return replace(planner, chooser=chooser)
    return planner


def told_of_fleet(planner: Planner, told: CellReports) -> Planner:
    """Return a planner over a cell with the hardware limits that devices reported in place of its own."""
    if not isinstance(planner, CellPlanner):
        return planner
    own = planner.fleet

    def column(name: str) -> FloatArray:
        values: FloatArray = np.array(getattr(own, name), dtype=np.float64)
        values[told.device_index] = getattr(told, name)
        return values

    max_frequency_hz = column("max_frequency_hz")
    fleet = Fleet(
        max_power_w=column("max_power_w"),
        max_frequency_hz=max_frequency_hz,
        capacitance=column("capacitance"),
        cycles_per_sample=column("cycles_per_sample"),
        min_frequency_hz=np.minimum(own.min_frequency_hz, max_frequency_hz),
    )
    return replace(planner, fleet=fleet)
