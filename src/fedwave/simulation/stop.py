"""When a run ends before its last round: a budget is spent, an accuracy reached, too many devices flat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StopRule:
    """Ends a run after the first round at which one of these is reached; None: it plays no part.

    It looks at a row of rounds.csv alone, so that a run that is resumed ends where it would have ended.
    """

    energy_j: float | None = None  # of all devices
    time_s: float | None = None  # on the cell's clock; with batteries pauses count
    accuracy: float | None = None  # of the held-out devices
    dead_share: float | None = None  # of the devices that have no charge for the next round
    num_devices: int = 1

    def reason(self, row: Mapping[str, Any]) -> str | None:
        """Return why the run ends after the round with these columns; None if it goes on."""
        time_s = row.get("clock_s", row.get("cumulative_delay_s"))
        num_awake = row.get("num_awake")
        dead_share = None if num_awake is None else 1.0 - num_awake / self.num_devices
        measured = {
            "energy_j": row.get("cumulative_energy_j"),
            "time_s": time_s,
            "accuracy": row.get("heldout_accuracy"),
            "dead_share": dead_share,
        }
        for name, value in measured.items():
            limit = getattr(self, name)
            if limit is not None and value is not None and value >= limit:  # NaN where nothing was measured
                return f"stop.{name} = {limit:g} is reached, with {value:.6g}"
        if row.get("next_local_steps") == 0:
            return "algorithm.local_steps ends the run: no further round fits into its budget"
        return None


NEVER = StopRule()
