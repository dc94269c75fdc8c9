"""One round of two devices, with costs that are added up by hand."""

from __future__ import annotations

import numpy as np

from fedwave.server import RoundCosts

COSTS = RoundCosts(
    compute_energy_j=np.array([1.0, 2.0]),
    compute_time_s=np.array([10.0, 20.0]),
    report_energy_j=np.array([0.1, 0.2]),
    report_time_s=np.array([0.5, 0.25]),
    upload_energy_j=np.array([0.0, 40.0]),
    upload_time_s=np.array([0.0, 4.0]),
    idle_energy_j=np.array([500.0, 0.0]),
    idle_time_s=np.array([14.0, 0.0]),
    delay_s=24.5,
)
