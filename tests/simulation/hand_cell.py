"""Small cells whose every number is written out, for accounts worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.simulation.cell_scheduler import CellScheduler
from fedwave.simulation.contribution_scale import ContributionScale
from fedwave.simulation.scheduler import Reports, Schedule
from fedwave.wireless.cell import Cell
from fedwave.wireless.load import resolve_cell_table

FLEET_COLUMNS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")

# The weight of a second at which an upload with (I + B N0) / h = 1 W is cheapest at SNR 3, rate 2: the
# derivative of (p + eta_2) / log2(1 + p) vanishes where (1 + x) ln(1 + x) - x = eta_2.
SNR_3 = 4 * math.log(4) - 3


def write_cell(
    folder: Path,
    *,
    channel_gain: list[Any],
    interference_w: list[float],
    losses: dict[str, float] | None = None,
    **fleet: list[float],
) -> dict[str, Any]:
    """Return a ``[cell]`` table with B = N0 = 1; gains and fleet stand in files in ``folder``."""
    gains = folder / "gains.npy"
    np.save(gains, np.array(channel_gain, dtype=float))
    table = folder / "fleet.csv"
    rows = zip(*(fleet[name] for name in FLEET_COLUMNS), strict=True)
    table.write_text(
        "\n".join([",".join(FLEET_COLUMNS), *(",".join(repr(float(v)) for v in row) for row in rows)])
    )
    return {
        "normalised": True,
        "num_blocks": len(interference_w),
        "bandwidth_hz": 1.0,
        "noise_psd_w_per_hz": 1.0,
        "channel": {"kind": "file", "path": str(gains)},
        "fleet": {"path": str(table)},
        "interference": {"kind": "listed", "power_w": interference_w},
        "losses": losses or {},
    }


def hand_scheduler(
    folder: Path, *, method: str, selection: str = "nufm", cell: dict[str, Any], **settings: Any
) -> CellScheduler:
    """Return a scheduler of two local steps (tau) over 4 and 8, 4 and 8, ... samples; S = 1."""
    table = write_cell(folder, **cell)
    num_devices = len(cell["max_power_w"])
    return CellScheduler(
        **{
            "cell": Cell.build(resolve_cell_table(table), num_devices=num_devices, seed=0),
            "num_samples": np.resize(np.array([4, 8]), num_devices),
            "num_local_steps": 2,
            "model_bits": 1.0,
            "method": method,
            "selection": selection,
            "energy_weight": 1.0,
            "delay_weight": 1.0,
            "scale": ContributionScale("raw"),
            "seed": 0,
            **settings,
        }
    )


def play(scheduler: CellScheduler, contribution: list[float], round_index: int = 0) -> Schedule:
    """Return a round's schedule when the computing devices report these of the contributions."""
    computing = scheduler.computing(round_index)
    return scheduler.schedule(round_index, Reports(computing, np.array(contribution)[computing]))
