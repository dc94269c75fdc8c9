"""Phase 1 of a round: what the computing devices tell the server, a few numbers each."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Reports:
    """One entry per reporting device; all arrays follow ``device_index``, which is sorted."""

    device_index: IntArray
    contribution: FloatArray  # u_i, Eq. (21)
    loss: FloatArray  # after adaptation, at the global model
    num_samples: IntArray  # D_i
    gradient_norms: FloatArray  # (devices, tau)

    def __post_init__(self) -> None:
        for name in ("contribution", "loss", "num_samples", "gradient_norms"):
            if len(getattr(self, name)) != len(self.device_index):
                raise ProblemError(
                    f"reports need one {name} for each of the {len(self.device_index)} devices, got "
                    f"{len(getattr(self, name))}. Give all columns the order of device_index."
                )

    def __len__(self) -> int:
        return len(self.device_index)

    def of(self, devices: IntArray) -> Reports:
        """Return the reports of these devices alone."""
        at = np.isin(self.device_index, devices)
        return Reports(**{field.name: getattr(self, field.name)[at] for field in fields(self)})
