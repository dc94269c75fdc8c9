"""A planner over a cell for tests whose devices tell of their radio themselves."""

from __future__ import annotations

import numpy as np

from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, ContributionScale, PolicyRunner, RadioTerms, RoundAims, Work
from fedwave.wireless.fleet import Fleet


def cell_planner(fleet: Fleet, num_samples: np.ndarray, *, num_blocks: int) -> CellPlanner:
    """Return a planner that may serve every device of the fleet."""
    return CellPlanner(
        runner=PolicyRunner(TopContribution(len(num_samples)), num_samples, seed=0),
        fleet=fleet,
        terms=RadioTerms(num_blocks=num_blocks, bandwidth_hz=180e3, noise_psd_w_per_hz=4e-21),
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0, scale=ContributionScale("normalised")),
        work=Work(model_bits=1e6, num_local_steps=1, num_samples=num_samples),
    )
