"""The ``[cell.battery]`` settings, and how the batteries of a cell are drawn from them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fedwave.errors import ConfigError, ProblemError
from fedwave.rng import Stream, generator
from fedwave.settings import NonNegativeFloat, Section
from fedwave.units import FloatArray
from fedwave.wireless.battery import Batteries
from fedwave.wireless.harvest import HarvestPart, NoHarvest
from fedwave.wireless.settings.distribution import Distribution, draw

BelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]


class BatteryConfig(Section):
    """What each device lives on: a constant, or a uniform draw for each."""

    place: ClassVar[str] = "cell.battery"

    capacity_j: Distribution = Field(description="Joules that a full battery holds.")
    initial_charge: Distribution = Field(1.0, description="Share of it at the run's beginning, 0 to 1.")
    draw_w: Distribution = Field(0.0, description="What the device takes for itself at all times.")
    min_charge: BelowOne = Field(
        0.0, description="Share at or below which a device takes no part in a round: it is not asked."
    )
    interval_s: NonNegativeFloat = Field(
        0.0, description="Seconds from the start of a round to the next; 0: rounds follow at once."
    )
    harvest: HarvestPart = Field(
        NoHarvest(),
        description='none, constant, day or trace, e.g. { kind = "day", peak_w = 0.02, start_h = 6 }.',
    )

    @model_validator(mode="after")
    def _time_goes_on(self) -> BatteryConfig:
        if self.interval_s == 0.0 and self.harvest.kind != "none":
            raise ConfigError(
                f'cell.battery.harvest "{self.harvest.kind}" needs cell.battery.interval_s > 0, got 0. Once '
                "all are flat no round takes time, and the sun would stand still."
            )
        return self


def draw_batteries(config: BatteryConfig, *, num_devices: int, seed: int) -> Batteries:
    """Return the batteries of a cell's devices; each quantity has a random stream of its own."""

    def drawn(name: str, index: int, low: float, high: float) -> FloatArray:
        values = draw(getattr(config, name), num_devices, rng=generator(seed, Stream.BATTERY, index))
        wrong = values[~((values >= low) & (values <= high))]
        if wrong.size:
            raise ProblemError(
                f"cell.battery.{name} must lie in {low:g} to {high:g}, got {wrong[0]:g}. Change it, or the "
                "range that it is drawn from."
            )
        return values

    capacity_j = drawn("capacity_j", 0, float(np.finfo(np.float64).tiny), np.finfo(np.float64).max / 1e3)
    return Batteries(
        capacity_j=capacity_j,
        initial_charge_j=capacity_j * drawn("initial_charge", 1, 0.0, 1.0),
        draw_w=drawn("draw_w", 2, 0.0, np.finfo(np.float64).max / 1e12),
        min_charge_j=capacity_j * config.min_charge,
        interval_s=config.interval_s,
        harvest=config.harvest.create(
            "cell.battery.harvest", num_devices=num_devices, rng=generator(seed, Stream.BATTERY, 3)
        ),
    )
