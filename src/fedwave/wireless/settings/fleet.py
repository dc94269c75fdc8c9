"""The ``[fleet]`` settings, and how a fleet is drawn from them."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar

import numpy as np
from pydantic import model_validator

from fedwave.csv_table import read_columns
from fedwave.errors import ProblemError
from fedwave.rng import FleetStream, fleet_generator
from fedwave.settings import FileName, Section
from fedwave.units import FloatArray, dbm_to_watt
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.settings.distribution import Distribution, bounds, draw

# The paper's CNN on a 28 x 28 image with the exact meta-gradient, counted: see fedwave.learning.operations.
PAPER_CNN_OPERATIONS = 28.5e6


class FleetConfig(Section):
    """What each device's radio and processor can do: a constant, a uniform draw, or a CSV row per device."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("max_power_w", "max_power_dbm"),
        ("cycles_per_sample", "cycles_per_operation"),
    )

    max_power_w: Distribution | None = None
    max_power_dbm: Distribution | None = None
    max_frequency_hz: Distribution | None = None
    min_frequency_hz: Distribution | None = None  # None: no lower limit
    capacitance: Distribution | None = None
    cycles_per_sample: Distribution | None = None  # as given, or from the next
    cycles_per_operation: Distribution | None = (
        None  # clock cycles of a multiply-add; the model says how many
    )
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


def draw_fleet(
    config: FleetConfig,
    *,
    num_devices: int,
    seed: int,
    operations_per_sample: float = PAPER_CNN_OPERATIONS,
) -> Fleet:
    """Return the fleet: columns of the CSV where it has them, draws for the rest.

    ``operations_per_sample`` is what one sample costs the model in multiply-adds; it counts only where
    ``cycles_per_operation`` is given in place of ``cycles_per_sample``.
    """
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
        elif name == "cycles_per_sample" and distribution is None and config.cycles_per_operation is not None:
            columns[name] = operations_per_sample * draw(config.cycles_per_operation, num_devices, rng=rng)
        elif name == "min_frequency_hz" and distribution is None:
            columns[name] = np.zeros(num_devices)
        elif distribution is not None:
            columns[name] = draw(distribution, num_devices, rng=rng)
        else:
            where = f"nor a column in {config.path.name}" if config.path else "nor is there a fleet CSV"
            raise ProblemError(
                f"fleet.{name} is not given, {where}. Set fleet.{name} to a number or to {{low, high}}."
            )
    return Fleet(**columns)
