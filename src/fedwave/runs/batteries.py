"""The batteries of a run, round by round: charges, who has none, lifetimes, and what its planner says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.runs.compare import FinishedRun
from fedwave.runs.tables import DEVICES, read_table
from fedwave.simulation.column import PLANNERS_OWN
from fedwave.units import BoolArray, FloatArray

HOUR_S = 3_600.0
_OWN = PLANNERS_OWN.format(own="")


@dataclass(frozen=True, kw_only=True, eq=False)
class BatteryHistory:
    """What devices had when the next round began; arrays are (R,), or (R, n) where they are of devices."""

    clock_s: FloatArray
    charge_j: FloatArray
    num_dead: FloatArray  # that have no charge for the next round
    lifetimes: Mapping[str, Any]

    @property
    def dead_device_hours(self) -> float:
        """Hours in which devices took no part for want of charge, summed: from one round to the next."""
        lasts_s = np.diff(self.clock_s, prepend=0.0)
        return float(self.num_dead[:-1] @ lasts_s[1:]) / HOUR_S

    def quantile_j(self, share: float) -> FloatArray:
        """Return the charge that this share of the devices has at most, in each round."""
        return np.asarray(np.quantile(self.charge_j, share, axis=1))


@dataclass(frozen=True, eq=False)
class DeviceHistory:
    """The table of devices of a run as grids of rounds by devices."""

    path: Path
    num_devices: int
    columns: Mapping[str, Any]

    def grid(self, name: str) -> FloatArray:
        """Return a column as (R, n)."""
        return np.asarray(self.columns[name], dtype=np.float64).reshape(-1, self.num_devices)

    @cached_property
    def own(self) -> dict[str, FloatArray]:
        """The planner's own columns, by the names that it gave them."""
        return {name.removeprefix(_OWN): self.grid(name) for name in self.columns if name.startswith(_OWN)}


def device_history(run: FinishedRun) -> DeviceHistory | None:
    """Return the rounds of devices.csv that rounds.csv has, too; None if there is no such table."""
    path = run.path / DEVICES
    if not path.exists():
        return None
    table = read_table(path)
    num_devices = int(np.count_nonzero(table["round"] == table["round"][0]))
    num_rows = run.num_rounds * num_devices
    if len(table["round"]) < num_rows:
        raise RunError(
            f"{path} has {len(table['round'])} rows for {run.num_rounds} rounds of {num_devices} devices. "
            "Restore it; tables are not to be edited."
        )
    return DeviceHistory(path, num_devices, {name: values[:num_rows] for name, values in table.items()})


def battery_history(run: FinishedRun, devices: DeviceHistory | None = None) -> BatteryHistory | None:
    """Return the batteries of a run; None where nobody lives on one."""
    if "num_awake" not in run.columns:
        return None
    devices = devices or device_history(run)
    if devices is None or "battery_j" not in devices.columns:
        return None
    return BatteryHistory(
        clock_s=run.curve("clock_s"),
        charge_j=devices.grid("battery_j"),
        num_dead=devices.num_devices - run.curve("num_awake"),
        lifetimes=lifetimes(run.columns, num_devices=devices.num_devices, metric=run.metric.name),
    )


def lifetimes(columns: Mapping[str, Any], *, num_devices: int, metric: str) -> dict[str, Any]:
    """Return when the first device, and half of them, had no charge for a round, by the columns of a run.

    A device may wake up again where something is harvested: this is the first time.
    """
    num_dead = num_devices - columns["num_awake"]
    return {
        "first_dead": _until(num_dead >= 1, columns, metric),
        "half_dead": _until(2 * num_dead >= num_devices, columns, metric),
        "most_dead": int(num_dead.max()),
        "dead_at_the_end": int(num_dead[-1]),
        "uploads_lost_to_flat_batteries": int(columns["num_flat"].sum()),
    }


def _until(is_so: BoolArray, columns: Mapping[str, Any], metric: str) -> dict[str, float] | None:
    """Return rounds, seconds and the metric last measured, when something first is so; None if never."""
    if not is_so.any():
        return None
    first = int(np.argmax(is_so))
    measured = columns[f"heldout_{metric}"][: first + 1]
    measured = measured[np.isfinite(measured)]
    return {
        "rounds": first + 1,
        "clock_s": float(columns["clock_s"][first]),
        **({f"heldout_{metric}": float(measured[-1])} if measured.size else {}),
    }
