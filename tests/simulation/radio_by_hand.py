"""A cell of two devices with B = N0 = 1 and every number written out, and plans to play over it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedwave.allocation import Allocation, Status
from fedwave.server import Outcome, Plan, Reports, RoundCosts, Work
from fedwave.settings import validate
from fedwave.simulation.cell_world import CellWorld
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.terms import ChannelDraw

# Full power is 15 W, so that a gain of 1 without interference is an SNR of 15 and a rate of 4 bit/s.
CELL: dict[str, Any] = {
    "normalised": True,
    "num_blocks": 2,
    "bandwidth_hz": 1.0,
    "noise_psd_w_per_hz": 1.0,
    "channel": {"kind": "uniform", "low": 1.0, "high": 1.0},
    "fleet": {"max_power_w": 15.0, "max_frequency_hz": 2.0, "capacitance": 2.0, "cycles_per_sample": 1.0},
}


def world(*, num_devices: int = 2, settings: dict[str, Any] | None = None, **options: Any) -> CellWorld:
    """Return a world of devices with 4 samples each, one local step, S = 8 bits."""
    cell = Cell.build(
        validate(CellConfig, {**CELL, **(settings or {})}),
        num_devices=num_devices,
        seed=options.pop("seed", 0),
    )
    report_bits = options.pop("report_bits", 0.0)
    work = Work(model_bits=8.0, num_local_steps=1, num_samples=np.full(num_devices, 4))
    return CellWorld(
        **{
            "cell": cell,
            "terms": replace(cell.terms, report_bits=report_bits),
            "work": replace(work, **{name: options.pop(name) for name in vars(work) if name in options}),
            "seed": 0,
            **options,
        }
    )


def play(
    place: CellWorld,
    *,
    power_w: list[float],
    frequency_hz: list[float],
    gain: list[Any],
    interference_w: list[float] | None = None,
    block: list[int] | None = None,
    computes: list[int] | None = None,
) -> Outcome:
    """Return what becomes of a plan in which device i has block i, unless said otherwise."""
    num_devices = len(power_w)
    blocks = np.array(range(num_devices) if block is None else block)
    who = np.array(range(num_devices) if computes is None else computes, dtype=np.int64)
    allocation = Allocation(
        method="by hand",
        block_of_device=blocks,
        transmit_power_w=np.array(power_w),
        cpu_frequency_hz=np.array(frequency_hz),
        contribution=0.0,
        energy_j=0.0,
        compute_delay_s=0.0,
        upload_delay_s=0.0,
        objective=0.0,
        status=Status.FEASIBLE,
    )
    reports = Reports(
        device_index=who,
        contribution=np.ones(len(who)),
        loss=np.ones(len(who)),
        num_samples=np.full(len(who), 4),
        gradient_norms=np.ones((len(who), 1)),
    )
    draw = ChannelDraw(np.array(gain, dtype=float), np.array(interference_w or [0.0, 0.0]))
    return place.answer(0, Plan(selected=np.flatnonzero(blocks >= 0), allocation=allocation), reports, draw)


def costs_of(outcome: Outcome) -> RoundCosts:
    """Return the account, which a cell always keeps."""
    assert outcome.costs is not None
    return outcome.costs
