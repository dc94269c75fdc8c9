"""What a run reports: one record a round, rows for each device. Never read back by the algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fedwave.devices.base import HeldOutResult
from fedwave.server import Plan
from fedwave.units import IntArray


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """Everything that is reported about one round."""

    round_index: int
    columns: Mapping[str, Any]  # one value each: a row of rounds.csv
    device_ids: IntArray
    device_columns: Mapping[str, NDArray[Any]]  # one entry a training device: rows of devices.csv
    heldout: HeldOutResult | None  # None in rounds without evaluation
    plan: Plan | None = None  # what the server decided; not in the tables
