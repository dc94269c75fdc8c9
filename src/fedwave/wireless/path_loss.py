"""Path loss, line-of-sight probability and shadowing of 3GPP TR 38.901, clauses 7.4.1 and 7.4.2.

Formulas: Table 7.4.1-1 (path loss and shadowing), Table 7.4.2-1 (line-of-sight probability). Distances are
``2d`` on the ground and ``3d`` between the antennas. Below the 10 m where the tables begin, the loss at 10 m
is used, so that no device profits from a formula outside its range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray, IntArray

# Note 1 and 5 of Table 7.4.1-1 put the velocity of light at 3.0e8 m/s.
SPEED_OF_LIGHT_M_PER_S = 3.0e8
MIN_DISTANCE_M = 10.0
MIN_URBAN_DEVICE_HEIGHT_M = 1.5  # UMi and UMa, Table 7.4.1-1; at 1 m the breakpoint would be at 0 m


class Scenario(Protocol):
    """One column of Table 7.4.1-1: what a distance and a clear or blocked sight cost."""

    max_distance_m: ClassVar[float]  # in sight
    max_blocked_distance_m: ClassVar[float]

    def los_probability(self, distance_2d_m: FloatArray) -> FloatArray:
        """Return the probability of a clear sight."""
        ...

    def path_loss_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the median path loss."""
        ...

    def shadowing_std_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the standard deviation of shadowing."""
        ...


@dataclass(frozen=True, kw_only=True)
class _UrbanScenario:
    """What UMi and UMa share: two slopes in sight that meet at the breakpoint, another one without sight."""

    carrier_frequency_hz: float
    base_station_height_m: float
    device_height_m: float | FloatArray = 1.5  # one for all, or for each device
    environment_height_m: float | FloatArray = 1.0  # h_E; in UMa above 13 m drawn for each device
    max_distance_m: ClassVar[float] = 5_000.0
    max_blocked_distance_m: ClassVar[float] = 5_000.0
    # Table 7.4.1-1: losses at 1 m and 1 GHz, their slopes over distance and frequency.
    name: ClassVar[str]
    near_db: ClassVar[tuple[float, float]]  # constant, slope over distance; over frequency it is 20
    joint: ClassVar[float]  # what joins the second slope, 40, to the first
    blocked_db: ClassVar[tuple[float, float, float]]  # constant, slopes over distance and frequency
    height_slope: ClassVar[float]  # of the device, without sight
    blocked_std_db: ClassVar[float]

    def __post_init__(self) -> None:
        _check_urban_heights(
            self.name, self.base_station_height_m, self.device_height_m, self.environment_height_m
        )

    def breakpoint_distance_m(self) -> float | FloatArray:
        """Return d'_BP = 4 (h_BS - h_E)(h_UT - h_E) f_c / c, Table 7.4.1-1 note 1."""
        effective_heights = (self.base_station_height_m - self.environment_height_m) * (
            self.device_height_m - self.environment_height_m
        )
        return 4.0 * effective_heights * self.carrier_frequency_hz / SPEED_OF_LIGHT_M_PER_S

    def path_loss_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the median path loss, Table 7.4.1-1."""
        distance_2d_m = np.maximum(distance_2d_m, MIN_DISTANCE_M)
        height_m = self.base_station_height_m - self.device_height_m
        log_d3 = np.log10(np.hypot(distance_2d_m, height_m))
        log_f = np.log10(self.carrier_frequency_hz / 1e9)
        breakpoint_m = self.breakpoint_distance_m()
        start, slope = self.near_db
        near_db = start + slope * log_d3 + 20.0 * log_f
        # The Table's PL2: slope 40 beyond the breakpoint, joined to PL1 there.
        far_db = start + 40.0 * log_d3 + 20.0 * log_f - self.joint * np.log10(breakpoint_m**2 + height_m**2)
        los_db = np.where(distance_2d_m <= breakpoint_m, near_db, far_db)
        start, slope, slope_f = self.blocked_db
        nlos_db = start + slope * log_d3 + slope_f * log_f - self.height_slope * (self.device_height_m - 1.5)
        return np.asarray(np.where(is_line_of_sight, los_db, np.maximum(los_db, nlos_db)))

    def shadowing_std_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the standard deviation of shadowing, Table 7.4.1-1: 4 dB in sight, more without."""
        del distance_2d_m
        return np.where(is_line_of_sight, 4.0, self.blocked_std_db)


@dataclass(frozen=True, kw_only=True)
class UrbanMicro(_UrbanScenario):
    """UMi-Street Canyon: base station below the roofs, on a lamp post."""

    base_station_height_m: float = 10.0
    name: ClassVar[str] = "UMi"
    near_db: ClassVar[tuple[float, float]] = (32.4, 21.0)
    joint: ClassVar[float] = 9.5
    blocked_db: ClassVar[tuple[float, float, float]] = (22.4, 35.3, 21.3)
    height_slope: ClassVar[float] = 0.3
    blocked_std_db: ClassVar[float] = 7.82

    def los_probability(self, distance_2d_m: FloatArray) -> FloatArray:
        """Return the probability of a clear sight, Table 7.4.2-1."""
        return _urban_los_probability(distance_2d_m, decay_m=36.0)


@dataclass(frozen=True, kw_only=True)
class UrbanMacro(_UrbanScenario):
    """UMa: base station above the roofs of a city."""

    base_station_height_m: float = 25.0
    name: ClassVar[str] = "UMa"
    near_db: ClassVar[tuple[float, float]] = (28.0, 22.0)
    joint: ClassVar[float] = 9.0
    blocked_db: ClassVar[tuple[float, float, float]] = (13.54, 39.08, 20.0)
    height_slope: ClassVar[float] = 0.6
    blocked_std_db: ClassVar[float] = 6.0

    def los_probability(self, distance_2d_m: FloatArray) -> FloatArray:
        """Return the probability of a clear sight, Table 7.4.2-1; better for devices above 13 m."""
        distance_2d_m = np.asarray(distance_2d_m, dtype=np.float64)
        flat = _urban_los_probability(distance_2d_m, decay_m=63.0)
        lift = _uma_lift(distance_2d_m, device_height_m=self.device_height_m)
        return np.where(distance_2d_m <= 18.0, 1.0, np.minimum(1.0, flat * (1.0 + lift)))


@dataclass(frozen=True, kw_only=True)
class RuralMacro:
    """RMa: a mast over fields and low houses."""

    carrier_frequency_hz: float
    base_station_height_m: float = 35.0
    device_height_m: float | FloatArray = 1.5
    building_height_m: float = 5.0  # h, average
    street_width_m: float = 20.0  # W, average
    max_distance_m: ClassVar[float] = 10_000.0
    max_blocked_distance_m: ClassVar[float] = 5_000.0

    def los_probability(self, distance_2d_m: FloatArray) -> FloatArray:
        """Return the probability of a clear sight, Table 7.4.2-1."""
        beyond_m = np.maximum(np.asarray(distance_2d_m, dtype=np.float64) - 10.0, 0.0)
        return np.exp(-beyond_m / 1000.0)

    def breakpoint_distance_m(self) -> float | FloatArray:
        """Return d_BP = 2 pi h_BS h_UT f_c / c, Table 7.4.1-1 note 5; here the true heights count."""
        heights = self.base_station_height_m * self.device_height_m
        return 2.0 * np.pi * heights * self.carrier_frequency_hz / SPEED_OF_LIGHT_M_PER_S

    def path_loss_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the median path loss, Table 7.4.1-1, RMa."""
        distance_2d_m = np.maximum(distance_2d_m, MIN_DISTANCE_M)
        distance_3d_m = np.hypot(distance_2d_m, self.base_station_height_m - self.device_height_m)
        breakpoint_m = self.breakpoint_distance_m()
        far_db = self._near_loss_db(breakpoint_m) + 40.0 * np.log10(distance_3d_m / breakpoint_m)
        los_db = np.where(distance_2d_m <= breakpoint_m, self._near_loss_db(distance_3d_m), far_db)
        log_base = np.log10(self.base_station_height_m)
        nlos_db = (
            161.04
            - 7.1 * np.log10(self.street_width_m)
            + 7.5 * np.log10(self.building_height_m)
            - (24.37 - 3.7 * (self.building_height_m / self.base_station_height_m) ** 2) * log_base
            + (43.42 - 3.1 * log_base) * (np.log10(distance_3d_m) - 3.0)
            + 20.0 * np.log10(self.carrier_frequency_hz / 1e9)
            - (3.2 * np.log10(11.75 * self.device_height_m) ** 2 - 4.97)
        )
        return np.where(is_line_of_sight, los_db, np.maximum(los_db, nlos_db))

    def shadowing_std_db(self, distance_2d_m: FloatArray, is_line_of_sight: BoolArray) -> FloatArray:
        """Return the standard deviation of shadowing: 4 dB in sight, 6 dB past the breakpoint, else 8 dB."""
        los_std_db = np.where(distance_2d_m <= self.breakpoint_distance_m(), 4.0, 6.0)
        return np.where(is_line_of_sight, los_std_db, 8.0)

    def _near_loss_db(self, distance_3d_m: float | FloatArray) -> FloatArray:
        """Return the Table's PL1, free space with a correction for the buildings' height."""
        roughness = self.building_height_m**1.72
        frequency_ghz = self.carrier_frequency_hz / 1e9
        loss_db: FloatArray = (
            20.0 * np.log10(40.0 * np.pi * distance_3d_m * frequency_ghz / 3.0)
            + min(0.03 * roughness, 10.0) * np.log10(distance_3d_m)
            - min(0.044 * roughness, 14.77)
            + 0.002 * np.log10(self.building_height_m) * distance_3d_m
        )
        return loss_db


def draw_environment_height_m(
    distance_2d_m: FloatArray, *, device_height_m: float | FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return UMa's environment height h_E for each device, Table 7.4.1-1 note 1.

    1 m with probability 1 / (1 + C(d, h_UT)), otherwise one of 12, 15, ..., h_UT - 1.5 with equal chance.
    """
    lift = _uma_lift(distance_2d_m, device_height_m=device_height_m)
    num_roofs = _num_roofs(device_height_m)
    roof_m = 12.0 + 3.0 * rng.integers(0, num_roofs, len(distance_2d_m))
    return np.where(rng.random(len(distance_2d_m)) < 1.0 / (1.0 + lift), 1.0, roof_m)


def highest_environment_m(device_height_m: float) -> float:
    """Return the largest environment height that UMa can draw: 1 m for devices up to 13 m."""
    return 1.0 if device_height_m <= 13.0 else 12.0 + 3.0 * (int(_num_roofs(device_height_m)) - 1)


def log_distance_path_loss_db(
    distance_m: FloatArray, *, reference_loss_db: float, reference_distance_m: float, exponent: float
) -> FloatArray:
    """Return reference_loss + 10 exponent log10(d / reference_distance)."""
    loss_db: FloatArray = reference_loss_db + 10.0 * exponent * np.log10(distance_m / reference_distance_m)
    return loss_db


def _num_roofs(device_height_m: float | FloatArray) -> IntArray:
    return np.maximum(1, np.asarray((device_height_m - 1.5 - 12.0) // 3.0, dtype=np.int64) + 1)


def _check_urban_heights(
    name: str, base_m: float, device_m: float | FloatArray, environment_m: float | FloatArray
) -> None:
    """Raise where the effective heights h - h_E of note 1 give no breakpoint."""
    lowest_m = float(np.min(device_m))
    if lowest_m < MIN_URBAN_DEVICE_HEIGHT_M:
        raise ProblemError(
            f"device_height_m must be >= 1.5 in {name}, got {lowest_m:g}. "
            "Its formulas have no breakpoint for lower devices; use 1.5."
        )
    if np.any(np.minimum(base_m, device_m) <= environment_m):
        raise ProblemError(
            f"base_station_height_m and device_height_m must exceed {name}'s environment height of "
            f"{np.max(environment_m):g} m, got {base_m:g} and {lowest_m:g}. Raise the lower one."
        )


def _urban_los_probability(distance_2d_m: FloatArray, *, decay_m: float) -> FloatArray:
    """Return 18/d + exp(-d/decay)(1 - 18/d), and 1 within 18 m."""
    distance_2d_m = np.maximum(distance_2d_m, 18.0)
    share = 18.0 / distance_2d_m
    return share + np.exp(-distance_2d_m / decay_m) * (1.0 - share)


def _uma_lift(distance_2d_m: FloatArray, *, device_height_m: float | FloatArray) -> FloatArray:
    """Return C(d, h_UT) = C'(h_UT) (5/4) (d/100)^3 exp(-d/150); zero within 18 m and up to 13 m height."""
    height_factor = (np.maximum(device_height_m - 13.0, 0.0) / 10.0) ** 1.5
    lift = height_factor * 1.25 * (distance_2d_m / 100.0) ** 3 * np.exp(-distance_2d_m / 150.0)
    return np.where(distance_2d_m <= 18.0, 0.0, lift)


SCENARIOS: dict[str, type[UrbanMicro] | type[UrbanMacro] | type[RuralMacro]] = {
    "umi": UrbanMicro,
    "uma": UrbanMacro,
    "rma": RuralMacro,
}
