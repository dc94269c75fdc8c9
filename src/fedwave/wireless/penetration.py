"""Devices in buildings and cars: where they are, and what walls and bodywork cost, TR 38.901, clause 7.4.3.

A device in a building loses PL_tw (the wall, Table 7.4.3-2 from the materials of Table 7.4.3-1), 0.5 dB for
each metre inside, and N(0, sigma_P); one in a car N(9, 5) dB (ordinary windows). Needs numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import BoolArray, FloatArray, db_to_linear, linear_to_db

CAR_MEAN_DB = 9.0  # clause 7.4.3.2; 20 with metallised windows
CAR_STD_DB = 5.0
LOW_LOSS_STD_DB = 4.4  # sigma_P of Table 7.4.3-2
HIGH_LOSS_STD_DB = 6.5
INSIDE_DB_PER_M = 0.5
# Clause 7.4.3.1: d_2D-in is the smaller of two draws, uniform up to this far inside.
MAX_INSIDE_M = {"umi": 25.0, "uma": 25.0, "rma": 10.0}
# Table 7.5-6, column O2I.
INDOOR_SHADOWING_STD_DB = {"umi": 7.0, "uma": 7.0, "rma": 8.0}
FLOOR_HEIGHT_M = 3.0
FEWEST_FLOORS, MOST_FLOORS = 4, 8  # of a building, TR 36.873 Table 6-1, which Table 7.2-1 refers to
HIGHEST_DEVICE_M = 22.5  # where the models of Table 7.4.1-1 end: the eighth floor


def material_loss_db(material: str, *, carrier_frequency_hz: float) -> float:
    """Return what a material costs, Table 7.4.3-1: a constant and a slope over GHz."""
    start_db, slope_db = {
        "glass": (2.0, 0.2),  # standard multi-pane
        "coated-glass": (23.0, 0.3),  # reflects infrared
        "concrete": (5.0, 4.0),
        "wood": (4.85, 0.12),
    }[material]
    return start_db + slope_db * carrier_frequency_hz / 1e9


def wall_loss_db(*, carrier_frequency_hz: float, high_loss: bool) -> float:
    """Return PL_tw of Table 7.4.3-2: glass beside concrete, and 5 dB for oblique incidence.

    Low loss: 30 % standard glass, 70 % concrete; high loss: 70 % coated glass, 30 % concrete.
    """
    glass, share = ("coated-glass", 0.7) if high_loss else ("glass", 0.3)
    through_glass, through_concrete = (
        db_to_linear(-material_loss_db(material, carrier_frequency_hz=carrier_frequency_hz))
        for material in (glass, "concrete")
    )
    return 5.0 - linear_to_db(share * through_glass + (1.0 - share) * through_concrete)


@dataclass(frozen=True, eq=False, kw_only=True)
class Whereabouts:
    """Who is in a building or a car; one value per device."""

    is_indoor: BoolArray
    is_in_car: BoolArray
    inside_m: FloatArray  # d_2D-in, part of the ground distance; 0 outdoors
    floor: FloatArray  # 0 at ground level
    penetration_db: FloatArray  # what walls, rooms and bodywork cost; 0 in the open

    def where(self, device_index: int) -> str:
        """Return in words where a device is."""
        if self.is_indoor[device_index]:
            return "in a building"
        return "in a car" if self.is_in_car[device_index] else "outdoors"

    @property
    def height_m(self) -> FloatArray:
        """How far each device is above its height at ground level."""
        return FLOOR_HEIGHT_M * self.floor


def draw_whereabouts(
    scenario: str,
    num_devices: int,
    *,
    carrier_frequency_hz: float,
    indoor_share: float,
    car_share: float,
    high_loss_share: float,
    on_floors: bool,
    rng: np.random.Generator,
) -> Whereabouts:
    """Return where each device is, drawn once.

    ``indoor_share`` and ``car_share`` are of all devices, ``high_loss_share`` is of the buildings. Everything
    is drawn whatever the shares are, so a device that is indoors at 50 % is so at 80 %, with the same loss.
    """
    who, building, *inside = rng.random((4, num_devices))
    normal = rng.standard_normal(num_devices)
    num_floors = rng.integers(FEWEST_FLOORS, MOST_FLOORS + 1, num_devices)
    floor = np.floor(rng.random(num_devices) * num_floors)
    is_indoor = who < indoor_share
    is_in_car = ~is_indoor & (who < indoor_share + car_share)
    is_high = building < high_loss_share
    inside_m = MAX_INSIDE_M[scenario] * np.minimum(*inside) * is_indoor
    low_db, high_db = (
        wall_loss_db(carrier_frequency_hz=carrier_frequency_hz, high_loss=high_loss)
        for high_loss in (False, True)
    )
    wall_db = np.where(is_high, high_db, low_db) + normal * np.where(
        is_high, HIGH_LOSS_STD_DB, LOW_LOSS_STD_DB
    )
    return Whereabouts(
        is_indoor=is_indoor,
        is_in_car=is_in_car,
        inside_m=inside_m,
        floor=floor * is_indoor * on_floors,
        penetration_db=np.where(is_indoor, wall_db, 0.0)
        + INSIDE_DB_PER_M * inside_m
        + np.where(is_in_car, CAR_MEAN_DB + CAR_STD_DB * normal, 0.0),
    )
