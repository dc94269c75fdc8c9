"""What the devices live on: the charge of their batteries from round to round, and who runs out in one.

The truth about the charge is the world's, and part of a run's state. Whoever is flat at a round's beginning
is not asked. Whoever runs out within it is spent to zero in the order of the phases, and its upload is lost:
the server planned with it and finds out by waiting for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import RunError
from fedwave.server import BatteryReport, Outcome, Plan, Planner, RoundCosts
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.battery import Batteries
from fedwave.wireless.delivery import UploadFate

PHASES = ("downlink", "compute", "report", "upload", "idle")  # in the order in which a charge is spent


@dataclass(frozen=True, eq=False)
class Charge:
    """The batteries when a round begins; part of a run's state."""

    charge_j: FloatArray
    clock_s: float  # since the run began, pauses included

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays by name, for a checkpoint."""
        return {"charge_j": self.charge_j, "clock_s": np.array([self.clock_s])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Charge:
        """Return what a checkpoint holds."""
        for name in ("charge_j", "clock_s"):
            values = arrays.get(name, np.zeros(0))
            is_sound = values.ndim == 1 and values.size and values.dtype == np.float64
            if not is_sound or not (np.isfinite(values) & (values >= 0)).all():
                raise RunError(
                    f"the checkpoint's batteries are damaged: {name} must hold numbers >= 0. Restore the "
                    "checkpoint, or compute the run again with --from-start."
                )
        return cls(np.asarray(arrays["charge_j"]), float(arrays["clock_s"][0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Power:
    """The batteries of a federation's devices."""

    batteries: Batteries
    num_samples: IntArray  # D_i of every device, which a planner is told with who is there

    def initial(self) -> Charge:
        """Return the batteries before the first round."""
        return Charge(self.batteries.initial_charge_j, 0.0)

    def among_awake(self, planner: Planner, charge: Charge) -> Planner:
        """Return the planner that knows who can be reached: those with a charge."""
        awake = np.flatnonzero(self.batteries.is_awake(charge.charge_j))
        return planner.with_devices(present=awake, num_samples=self.num_samples)

    def drain(self, plan: Plan, outcome: Outcome, charge: Charge) -> Outcome:
        """Return the outcome of a round as the batteries allow it, and what it leaves in them."""
        costs, clock_s = outcome.costs, charge.clock_s
        assert costs is not None  # batteries come with a cell, which counts
        available_j = self.batteries.available_j(charge.charge_j, clock_s, costs.delay_s)
        spent, sent_all = _within(costs, available_j)
        is_flat = ~sent_all[plan.selected] & (outcome.fate != UploadFate.DROPPED_OUT)
        fate = np.where(is_flat, int(UploadFate.FLAT), outcome.fate)
        received = outcome.received[sent_all[outcome.received]]
        left_j = np.maximum(available_j - spent.device_energy_j, 0.0)
        charge_j = self.batteries.charge_after_j(left_j, clock_s, costs.delay_s)
        next_s = self.batteries.next_start_s(clock_s, costs.delay_s)
        report = BatteryReport(
            charge_j=charge_j,
            capacity_j=self.batteries.capacity_j,
            is_awake=self.batteries.is_awake(charge_j),
            harvested_j=self.batteries.harvest.energy_j(clock_s, next_s),
            clock_s=next_s,
        )
        return replace(outcome, received=received, fate=fate, costs=spent, battery=report)


def _within(costs: RoundCosts, available_j: FloatArray) -> tuple[RoundCosts, NDArray[np.bool_]]:
    """Return the costs with every device's phases cut off where its charge ends, and who got past sending.

    A phase draws a constant power, so that its seconds shrink with its joules.
    """
    left_j, cut = available_j, {}
    can_send = np.ones(len(available_j), dtype=bool)
    for phase in PHASES:
        wanted_j = np.broadcast_to(getattr(costs, f"{phase}_energy_j"), left_j.shape)
        given_j = np.minimum(wanted_j, left_j)
        is_whole = given_j == wanted_j
        share = np.divide(given_j, wanted_j, out=np.ones_like(left_j), where=~is_whole)
        cut[f"{phase}_energy_j"] = given_j
        cut[f"{phase}_time_s"] = share * getattr(costs, f"{phase}_time_s")
        left_j = left_j - given_j
        if phase != "idle":
            can_send &= is_whole
    return replace(costs, **cut), can_send
