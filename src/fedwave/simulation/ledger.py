"""The account of a run over a cell: seconds on a virtual clock, joules of every device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import RunError
from fedwave.units import FloatArray, IntArray


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

    @property
    def device_energy_j(self) -> FloatArray:
        """Each device's energy in this round."""
        sending = self.compute_energy_j + self.report_energy_j + self.upload_energy_j + self.idle_energy_j
        return sending + self.downlink_energy_j

    @property
    def energy_j(self) -> float:
        """The round's energy: Eq. (30), plus listening, reports and idling where those are not free."""
        return float(self.device_energy_j.sum())


@dataclass(frozen=True, eq=False)
class Ledger:
    """The running totals; part of a run's state, so that a resumed run goes on counting."""

    elapsed_s: float
    device_energy_j: FloatArray

    @classmethod
    def empty(cls, num_devices: int) -> Ledger:
        """Return the account before the first round."""
        return cls(0.0, np.zeros(num_devices))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the account as arrays by name, for a checkpoint."""
        return {"elapsed_s": np.array([self.elapsed_s]), "device_energy_j": self.device_energy_j}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Ledger:
        """Return the account that a checkpoint holds."""
        for name in ("elapsed_s", "device_energy_j"):
            values = arrays.get(name, np.zeros(0))
            if values.ndim != 1 or not values.size or values.dtype != np.float64 or np.isnan(values).any():
                raise RunError(
                    f"the checkpoint's account of seconds and joules is damaged: {name} must hold numbers. "
                    "Restore the checkpoint, or compute the run again with --from-start."
                )
        return cls(float(arrays["elapsed_s"][0]), np.asarray(arrays["device_energy_j"]))

    def after(self, costs: RoundCosts) -> Ledger:
        """Return the account after one more round."""
        return Ledger(self.elapsed_s + costs.delay_s, self.device_energy_j + costs.device_energy_j)

    @property
    def energy_j(self) -> float:
        """All devices' energy so far."""
        return float(self.device_energy_j.sum())
