"""What a server decides in a round, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fedwave.allocation import (
    Allocation,
    AllocationProblem,
    DeviceCosts,
    Status,
    account,
    build_allocation,
)
from fedwave.allocation.schedule import upload_schedule
from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.schedule import UploadSchedule


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Who uploads and, over a radio cell, on which block, at what power and CPU frequency."""

    selected: IntArray  # sorted device indices
    allocation: Allocation | None = None  # None: no radio to allocate
    problem: AllocationProblem | None = None  # (P) as the planner saw it, e.g. with the gains it believes in
    scaled_contribution: FloatArray | None = None  # (n,), the contributions as the allocation saw them
    needs_reports: bool = True  # False: the choice did not need them, so nobody reports over the air
    reason: str = ""
    weights: FloatArray | None = None  # of each selected device's model; None: all weigh the same, Eq. (6)
    columns: Mapping[str, FloatArray] = field(default_factory=dict)  # (n,) each, the same names in all rounds

    def __post_init__(self) -> None:
        wrong = [name for name in self.columns if not re.fullmatch("[a-z][a-z0-9_]*", name)]
        if wrong:
            raise ProblemError(
                f'a plan\'s columns are named by small letters, digits and "_", got "{wrong[0]}". Rename it.'
            )
        if self.weights is None:
            return
        if np.shape(self.weights) != np.shape(self.selected):
            raise ProblemError(
                f"a plan needs one weight for each of the {len(self.selected)} selected devices, got shape "
                f"{np.shape(self.weights)}. Give them in the order of selected."
            )
        if not np.all(np.isfinite(self.weights) & (np.asarray(self.weights) > 0)):
            raise ProblemError(
                f"a plan's weights must be finite and > 0, got {np.asarray(self.weights).tolist()}. Leave "
                "out a device whose model is not to count."
            )

    @property
    def account(self) -> DeviceCosts | None:
        """What each device is to spend, and the SINR and rate of its upload, as the planner sees it.

        Counted anew from the decisions, so also after a planner around another has changed them. None without
        a radio. What listening, reports and waiting cost only the round's outcome says.
        """
        if self.allocation is None or self.problem is None:
            return None if self.allocation is None else self.allocation.account
        return account(self.problem, self.allocation)

    @property
    def schedule(self) -> UploadSchedule | None:
        """Who is to send when over which hertz, as a picture of the band over time; None without a radio.

        Where blocks that fall free go on to others (``work_conserving``) this is how the round begins, and
        the outcome's costs have the schedule as it was played.
        """
        if self.allocation is None or self.problem is None:
            return None
        return upload_schedule(self.problem, self.allocation, self.selected)

    def without(self, devices: IntArray) -> Plan:
        """Return the plan in which these devices do not upload; what the others do stays as it is."""
        stays = ~np.isin(self.selected, devices)
        return replace(
            self,
            selected=self.selected[stays],
            allocation=self._allocation_of(self.selected[stays]),
            weights=None if self.weights is None else np.asarray(self.weights)[stays],
        )

    def _allocation_of(self, devices: IntArray) -> Allocation | None:
        """Return the allocation with the uploads of these devices alone, its cost counted anew."""
        planned = self.allocation
        width = None if planned is None else planned.bandwidth_of_device_hz
        if planned is None or self.problem is None:
            if planned is not None:
                raise ProblemError(
                    "a plan without a problem cannot be counted anew, got None. Give problem=."
                )
            return None
        found = build_allocation(
            self.problem,
            method=planned.method,
            device=devices,
            block=planned.block_of_device[devices],
            power_w=planned.transmit_power_w[devices],
            cpu_frequency_hz=planned.cpu_frequency_hz,
            status=Status.FEASIBLE,
            iterations=planned.iterations,
            bandwidth_hz=width if width is None else width[devices],
        )
        return replace(found, upper_bound=max(planned.upper_bound, found.objective))

    def weights_of(self, received: IntArray) -> FloatArray | None:
        """Return the weights of those that arrived, in the order given; None where all weigh the same."""
        if self.weights is None:
            return None
        return np.asarray(self.weights, dtype=np.float64)[np.searchsorted(self.selected, received)]
