"""What real devices say of their radio and their CPU, for a planner to plan with."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw


@dataclass(frozen=True, kw_only=True, eq=False)
class CellReports:
    """What devices in a radio cell say of themselves; axis 0 follows ``device_index``."""

    device_index: IntArray
    channel_gain: FloatArray  # h: (devices, blocks), or (devices, 1) where all blocks are alike
    max_power_w: FloatArray
    max_frequency_hz: FloatArray
    capacitance: FloatArray
    cycles_per_sample: FloatArray  # c; the workload is tau c D

    def of(self, devices: IntArray) -> CellReports | None:
        """Return what these devices say; None if none of them says anything."""
        at = np.isin(self.device_index, devices)
        if not at.any():
            return None
        return CellReports(**{field.name: getattr(self, field.name)[at] for field in fields(self)})

    def channel(self, num_devices: int, known: ChannelDraw | None = None) -> ChannelDraw:
        """Return the channel as measured by these devices; of the others it is what the server knows.

        Its own receiver measures the interference on each block. Without anything ``known`` there is none,
        and the others have no channel.
        """
        blocks = self.channel_gain.shape[1]
        interference_w = np.zeros(blocks) if known is None else known.interference_w
        if len(interference_w) not in (1, blocks) and blocks != 1:
            raise ProblemError(
                f"devices must report a gain for each of the {len(interference_w)} blocks, or one for all, "
                f"got {blocks}. Give server and devices the same cell."
            )
        if known is None:
            gain = np.zeros((num_devices, blocks))
        else:
            per_block = known.channel_gain.reshape(num_devices, -1)
            gain = np.repeat(per_block, max(blocks // per_block.shape[1], 1), axis=1)
        gain[self.device_index] = self.channel_gain
        return ChannelDraw(gain[:, 0] if gain.shape[1] == 1 else gain, interference_w)

    def fleet(self, known: Fleet) -> Fleet:
        """Return a fleet with the limits that these devices reported; a slow CPU has a lower floor.

        Of static power and energy per cycle they say nothing: those stay as the server knows them.
        """

        def column(name: str) -> FloatArray:
            values: FloatArray = np.array(getattr(known, name), dtype=np.float64)
            values[self.device_index] = getattr(self, name)
            return values

        max_frequency_hz = column("max_frequency_hz")
        return replace(
            known,
            max_power_w=column("max_power_w"),
            max_frequency_hz=max_frequency_hz,
            capacitance=column("capacitance"),
            cycles_per_sample=column("cycles_per_sample"),
            min_frequency_hz=np.minimum(known.min_frequency_hz, max_frequency_hz),
        )
