"""A planner and a world over small cells whose every number is written out, for accounts made by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.allocation import Allocation
from fedwave.server import CellPlanner, Outcome, RoundCosts
from fedwave.settings import validate
from fedwave.simulation.cell_world import CellWorld
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.settings.config import CellConfig
from tests.server.radios import Planned, cell_planner, play

FLEET_COLUMNS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")


def write_cell(folder: Path, radio: dict[str, Any], losses: dict[str, float] | None = None) -> dict[str, Any]:
    """Return a ``[cell]`` table with B = N0 = 1; gains and fleet stand in files in ``folder``."""
    gains = folder / "gains.npy"
    np.save(gains, np.array(radio["channel_gain"], dtype=float))
    table = folder / "fleet.csv"
    rows = zip(*(radio[name] for name in FLEET_COLUMNS), strict=True)
    table.write_text(
        "\n".join([",".join(FLEET_COLUMNS), *(",".join(repr(float(v)) for v in row) for row in rows)])
    )
    return {
        "normalised": True,
        "num_blocks": len(radio["interference_w"]),
        "bandwidth_hz": 1.0,
        "noise_psd_w_per_hz": 1.0,
        "channel": {"kind": "file", "path": str(gains)},
        "fleet": {"path": str(table)},
        "interference": {"kind": "listed", "power_w": radio["interference_w"]},
        "losses": losses or {},
    }


@dataclass(frozen=True)
class Played:
    """What the server planned and what the world answered."""

    planned: Planned
    outcome: Outcome

    @property
    def selected(self) -> list[int]:
        return self.planned.plan.selected.tolist()

    @property
    def received(self) -> list[int]:
        return self.outcome.received.tolist()

    @property
    def allocation(self) -> Allocation:
        return self.planned.allocation

    @property
    def costs(self) -> RoundCosts:
        assert self.outcome.costs is not None
        return self.outcome.costs

    def count(self, fate: UploadFate) -> int:
        return int((self.outcome.fate == fate).sum())


@dataclass(frozen=True)
class HandCell:
    """A server and a world that agree on every number."""

    planner: CellPlanner
    world: CellWorld

    def play(self, contribution: list[float], round_index: int = 0) -> Played:
        """Return a round in which the computing devices report these of the contributions."""
        channel = self.world.channel(round_index)
        planned = play(self.planner, contribution, round_index, channel)
        return Played(planned, self.world.answer(round_index, planned.plan, planned.reports, channel))


def hand_cell(
    folder: Path,
    radio: dict[str, Any],
    *,
    losses: dict[str, float] | None = None,
    idle_power_w: float = 0.0,
    seed: int = 0,
    **planning: Any,
) -> HandCell:
    """Return a cell of two local steps (tau) over 4 and 8, 4 and 8, ... samples; S = 1."""
    config = validate(CellConfig, write_cell(folder, radio, losses), root="cell")
    num_devices = len(radio["max_power_w"])
    cell = Cell.build(config, num_devices=num_devices, seed=0)
    planner = cell_planner(
        cell.fleet, cell.num_blocks, seed=seed, deadline_s=config.losses.deadline_s, **planning
    )
    world = CellWorld(
        cell=cell,
        terms=replace(cell.terms, report_bits=planner.terms.report_bits),
        work=planner.work,
        seed=seed,
        idle_power_w=idle_power_w,
    )
    return HandCell(planner, world)
