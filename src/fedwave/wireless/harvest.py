"""What fills batteries: nothing, a constant power, the sun over a day, or a recorded trace; a class each.

``energy_j`` is an exact integral, so that rounds of any length and the pauses between them add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from fedwave.csv_table import read_table
from fedwave.errors import ProblemError
from fedwave.parts import PartKind
from fedwave.settings import FileName, Part
from fedwave.units import FloatArray
from fedwave.wireless.settings.distribution import Distribution, bounds, draw

DAY_S = 86_400.0
HOUR_S = 3_600.0
Hour = Annotated[float, Field(ge=0.0, le=24.0)]


class Harvest(Protocol):
    """One way to fill the batteries of all devices."""

    def energy_j(self, start_s: float, end_s: float) -> FloatArray:
        """Return what each device takes in between two times since the run began, shape (n,)."""
        ...


class HarvestPart(Part):
    """What a battery's ``harvest`` names: a kind of ``HARVESTS``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.harvest:HARVEST"

    kind: str = "none"


class HarvestSection(HarvestPart, extra="forbid"):
    """A harvest whose options are its fields."""


class NoHarvest(HarvestSection):
    """Nothing comes in."""

    kind: Literal["none"] = "none"

    def build(self, *, num_devices: int) -> Harvest:
        """Return no power."""
        return PiecewiseConstant(np.zeros(1), np.zeros((1, num_devices)))


class ConstantHarvest(HarvestSection):
    """The same power at all times, one for all devices or drawn for each."""

    kind: Literal["constant"] = "constant"
    power_w: Distribution

    def build(self, *, num_devices: int, rng: np.random.Generator) -> Harvest:
        """Return the devices' powers."""
        power_w = _drawn("power_w", self.power_w, num_devices, rng)
        return PiecewiseConstant(np.zeros(1), power_w[np.newaxis])


class DayHarvest(HarvestSection):
    """The sun: half a sine from sunrise to sunset, every day alike; the peak may differ between devices."""

    kind: Literal["day"] = "day"
    peak_w: Distribution
    sunrise_h: Hour = 6.0
    sunset_h: Hour = 18.0
    start_h: Hour = 0.0  # the time of day at which the run begins

    def build(self, *, num_devices: int, rng: np.random.Generator) -> Harvest:
        """Return the devices' suns."""
        if not self.sunrise_h < self.sunset_h:
            raise ProblemError(
                f"harvest.sunset_h must be after sunrise_h = {self.sunrise_h:g}, got {self.sunset_h:g}. Give "
                "hours from 0 to 24."
            )
        peak_w = _drawn("peak_w", self.peak_w, num_devices, rng)
        return Sun(peak_w, self.sunrise_h * HOUR_S, self.sunset_h * HOUR_S, self.start_h * HOUR_S)


class TraceHarvest(HarvestSection):
    """A CSV of powers: ``time_s`` since the run began, and ``power_w`` for all or a column for each device.

    A row holds until the next one; the last row holds for good, and nothing comes in before the first.
    """

    kind: Literal["trace"] = "trace"
    path: FileName

    def build(self, *, num_devices: int) -> Harvest:
        """Return the powers of the file."""
        return _trace(self.path, num_devices)


@dataclass(frozen=True, eq=False)
class PiecewiseConstant:
    """Powers that hold from one time to the next, the last of them for good."""

    time_s: FloatArray  # (rows,), rising
    power_w: FloatArray  # (rows, n)

    def energy_j(self, start_s: float, end_s: float) -> FloatArray:
        """Return the sum of power times overlap."""
        ends = np.append(self.time_s[1:], np.inf)
        overlap_s = np.maximum(np.minimum(ends, end_s) - np.maximum(self.time_s, start_s), 0.0)
        return np.asarray(overlap_s @ self.power_w)


@dataclass(frozen=True, eq=False)
class Sun:
    """P sin(pi (t - rise) / (set - rise)) between sunrise and sunset of every day."""

    peak_w: FloatArray  # (n,)
    rise_s: float
    set_s: float
    start_s: float

    def energy_j(self, start_s: float, end_s: float) -> FloatArray:
        """Return the integral between the two times."""
        begin, end = self.start_s + start_s, self.start_s + end_s
        return self.peak_w * (self._sunshine_s(end) - self._sunshine_s(begin))

    def _sunshine_s(self, time_s: float) -> float:
        """Return the seconds of full sun since the first midnight: (L / pi) (1 - cos(pi x / L)) a day."""
        days, in_day_s = divmod(time_s, DAY_S)
        length_s = self.set_s - self.rise_s
        shining_s = min(max(in_day_s - self.rise_s, 0.0), length_s)
        today_s = length_s / math.pi * (1.0 - math.cos(math.pi * shining_s / length_s))
        return days * 2.0 * length_s / math.pi + today_s


def _drawn(name: str, given: Distribution, num_devices: int, rng: np.random.Generator) -> FloatArray:
    low, _ = bounds(given)
    if low < 0.0:
        raise ProblemError(f"harvest.{name} must be >= 0, got {low:g}. What drains a battery is draw_w.")
    return draw(given, num_devices, rng=rng)


def _trace(path: Path, num_devices: int) -> PiecewiseConstant:
    """Return the powers of a CSV file, checked."""
    table = read_table(
        path, what="harvest file", error=ProblemError, fix="Check the path.", has_comments=True
    )
    header = ["time_s", *(f"power_w_{device}" for device in range(num_devices))]
    if table.header not in (["time_s", "power_w"], header):
        raise ProblemError(
            f"{table.name} must have the columns time_s and power_w, or time_s and power_w_0 to "
            f"power_w_{num_devices - 1}, got {', '.join(table.header)[:80]}. Name them so."
        )
    values = np.empty((len(table.rows), len(table.header)))
    for row, texts in enumerate(table.rows):
        for column, text in enumerate(texts):
            values[row, column] = _number(text, table.name, table.header[column], table.lines[row])
    if not len(values) or (np.diff(values[:, 0]) <= 0.0).any():
        raise ProblemError(f"{table.name} needs rows of rising time_s. Sort them, one for each time.")
    return PiecewiseConstant(values[:, 0], values[:, 1:] * np.ones(num_devices))


def _number(text: str, file: str, column: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise ProblemError(f'{file} has {column} = "{text[:40]}" in line {line}. Write a finite number >= 0.')
    return value


HARVESTS: dict[str, Any] = {
    "none": NoHarvest,
    "constant": ConstantHarvest,
    "day": DayHarvest,
    "trace": TraceHarvest,
}
HARVEST = PartKind("harvest", HARVESTS, ("kind", "num_devices", "rng"))
