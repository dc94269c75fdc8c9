"""The ``[fleet]`` settings, and how a fleet is drawn from them."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar

from pydantic import model_validator

from fedwave.errors import ProblemError
from fedwave.settings import Section
from fedwave.units import FloatArray, dbm_to_watt
from fedwave.wireless.csv_columns import read_columns
from fedwave.wireless.distribution import Distribution, bounds, draw
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.setting_types import FileName
from fedwave.wireless.streams import FleetStream, fleet_generator


class FleetConfig(Section):
    """What each device's radio and processor can do: a constant, a uniform draw, or a CSV row per device."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("max_power_w", "max_power_dbm"),)

    max_power_w: Distribution | None = None
    max_power_dbm: Distribution | None = None
    max_frequency_hz: Distribution | None = None
    capacitance: Distribution | None = None
    cycles_per_sample: Distribution | None = None
    path: FileName | None = None

    @model_validator(mode="after")
    def _one_power(self) -> FleetConfig:
        if self.max_power_w is not None and self.max_power_dbm is not None:
            raise ValueError("max_power_w and max_power_dbm are both given. Keep one of them")
        if self.max_power_dbm is not None and max(map(abs, bounds(self.max_power_dbm))) > 1000.0:
            raise ValueError(
                f"max_power_dbm must lie within 1000 dBm, got {self.max_power_dbm}. Phones send 23"
            )
        return self


def draw_fleet(config: FleetConfig, *, num_devices: int, seed: int) -> Fleet:
    """Return the fleet: columns of the CSV where it has them, draws for the rest."""
    names = tuple(field.name for field in fields(Fleet))
    from_file = (
        {}
        if config.path is None
        else read_columns(config.path, known=names, num_devices=num_devices, what="fleet")
    )
    columns: dict[str, FloatArray] = {}
    for name in names:
        if name in from_file:
            columns[name] = from_file[name]
            continue
        rng = fleet_generator(seed, FleetStream[name.upper()])
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
