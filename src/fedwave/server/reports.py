"""Phase 1 of a round: what the computing devices tell the server, a few numbers each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray

COLUMNS = ("contribution", "loss", "num_samples", "gradient_norms", "loss_lipschitz", "smoothness")


@dataclass(frozen=True, kw_only=True, eq=False)
class Reports:
    """One entry per reporting device; all arrays follow ``device_index``, which is sorted."""

    device_index: IntArray
    contribution: FloatArray  # u_i, Eq. (21)
    loss: FloatArray  # after adaptation, at the global model
    num_samples: IntArray  # D_i
    gradient_norms: FloatArray  # (devices, tau)
    loss_lipschitz: FloatArray | None = None  # rho_i, from the global to the local model; None: not measured
    smoothness: FloatArray | None = None  # beta_i of Wang et al., likewise
    num_gradients: int | None = None  # that each computed, where the round chose; None: as Work says

    def __post_init__(self) -> None:
        for name in COLUMNS:
            values = getattr(self, name)
            if values is not None and len(values) != len(self.device_index):
                raise ProblemError(
                    f"reports need one {name} for each of the {len(self.device_index)} devices, got "
                    f"{len(values)}. Give all columns the order of device_index."
                )

    def __len__(self) -> int:
        return len(self.device_index)

    def of(self, devices: IntArray) -> Reports:
        """Return the reports of these devices alone."""
        at = np.isin(self.device_index, devices)
        columns = {name: getattr(self, name) for name in COLUMNS}
        found: dict[str, Any] = {
            name: None if values is None else values[at] for name, values in columns.items()
        }
        return replace(self, device_index=self.device_index[at], **found)
