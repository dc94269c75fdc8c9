"""The devices' hardware limits: transmit power, CPU frequency, capacitance, cycles per sample."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.units import FloatArray, dbm_to_watt
from fedwave.wireless.config import FleetConfig
from fedwave.wireless.csv_columns import read_columns
from fedwave.wireless.distribution import Distribution, draw


@dataclass(frozen=True, eq=False)
class Fleet:
    """One value per device, each array of shape (n,)."""

    max_power_w: FloatArray  # p^max
    max_frequency_hz: FloatArray  # nu^max
    capacitance: FloatArray  # iota; the energy uses iota / 2, Eq. (23)
    cycles_per_sample: FloatArray  # c

    def __post_init__(self) -> None:
        _require(self.max_power_w > 0, self.max_power_w, "max_power_w must be > 0", "It could never upload")
        _require(
            self.max_frequency_hz > 0,
            self.max_frequency_hz,
            "max_frequency_hz must be > 0",
            "It could never finish its local update",
        )
        _require(self.capacitance >= 0, self.capacitance, "capacitance must be >= 0", "Energy is not gained")
        _require(
            self.cycles_per_sample >= 0,
            self.cycles_per_sample,
            "cycles_per_sample must be >= 0",
            "Work cannot be negative",
        )

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return len(self.max_power_w)


# Each column has its own generator: changing how one is drawn leaves the others as they were. Append only.
_COLUMN_STREAMS = {"max_power_w": 0, "max_frequency_hz": 1, "capacitance": 2, "cycles_per_sample": 3}


def draw_fleet(config: FleetConfig, *, num_devices: int, seed: int) -> Fleet:
    """Return the fleet: columns of the CSV where it has them, draws for the rest."""
    from_file = (
        {}
        if config.path is None
        else read_columns(config.path, known=tuple(_COLUMN_STREAMS), num_devices=num_devices, what="fleet")
    )
    columns: dict[str, FloatArray] = {}
    for field in fields(Fleet):
        name = field.name
        if name in from_file:
            columns[name] = from_file[name]
            continue
        rng = generator(seed, Stream.FLEET, _COLUMN_STREAMS[name])
        distribution: Distribution | None = getattr(config, name)
        if name == "max_power_w" and config.max_power_dbm is not None:
            columns[name] = dbm_to_watt(draw(config.max_power_dbm, num_devices, rng=rng))
        elif distribution is not None:
            columns[name] = draw(distribution, num_devices, rng=rng)
        else:
            where = f"nor a column in {config.path.name}" if config.path else "nor is there a fleet CSV"
            raise ProblemError(
                f"fleet.{name} is not given, {where}. Set fleet.{name} to a number or to {{low, high}}."
            )
    return Fleet(**columns)


def _require(is_valid: np.ndarray, values: FloatArray, rule: str, why: str) -> None:
    is_valid = is_valid & np.isfinite(values)
    if not is_valid.all():
        device_index = int(np.argmin(is_valid))
        raise ProblemError(
            f"fleet.{rule} for every device, got {values[device_index]:g} at device {device_index}. "
            f"{why}; leave that device out or correct the value."
        )
