"""The account of a run over a cell: seconds on a virtual clock, joules of every device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import RunError
from fedwave.server import RoundCosts
from fedwave.units import FloatArray


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
