"""What real devices say of their radio and their CPU, for a planner to plan with."""

from __future__ import annotations

from dataclasses import dataclass

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

    def channel(self, num_devices: int, interference_w: FloatArray | None = None) -> ChannelDraw:
        """Return the channel as measured by these devices; the others have none.

        ``interference_w`` is what the server's own receiver measures on each block; None: nothing.
        """
        blocks = self.channel_gain.shape[1]
        received_w = np.zeros(blocks) if interference_w is None else interference_w
        if blocks not in (1, len(received_w)):
            raise ProblemError(
                f"devices must report a gain for each of the {len(received_w)} blocks, or one for all, "
                f"got {blocks}. Give server and devices the same cell."
            )
        gain = np.zeros((num_devices, blocks))
        gain[self.device_index] = self.channel_gain
        return ChannelDraw(gain[:, 0] if blocks == 1 else gain, received_w)

    def fleet(self, known: Fleet) -> Fleet:
        """Return a fleet with the limits that these devices reported; a slow CPU has a lower floor."""

        def column(name: str) -> FloatArray:
            values: FloatArray = np.array(getattr(known, name), dtype=np.float64)
            values[self.device_index] = getattr(self, name)
            return values

        max_frequency_hz = column("max_frequency_hz")
        return Fleet(
            max_power_w=column("max_power_w"),
            max_frequency_hz=max_frequency_hz,
            capacitance=column("capacitance"),
            cycles_per_sample=column("cycles_per_sample"),
            min_frequency_hz=np.minimum(known.min_frequency_hz, max_frequency_hz),
        )
