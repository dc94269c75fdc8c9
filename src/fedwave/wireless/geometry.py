"""Where the devices stand. The base station is at the origin; distances are on the ground (2D)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray
from fedwave.wireless.csv_columns import read_columns


def place_in_disc(
    num_devices: int, *, radius_m: float, min_distance_m: float, rng: np.random.Generator
) -> FloatArray:
    """Return positions (n, 2) spread evenly over the area between the two radii.

    The area within r grows with r^2, so r^2 (not r) is drawn uniformly.
    """
    distance_m = np.sqrt(rng.uniform(min_distance_m**2, radius_m**2, num_devices))
    return _at_random_angles(distance_m, rng=rng)


def place_by_distance(
    num_devices: int, *, min_distance_m: float, max_distance_m: float, rng: np.random.Generator
) -> FloatArray:
    """Return positions (n, 2) with distances drawn uniformly."""
    return _at_random_angles(rng.uniform(min_distance_m, max_distance_m, num_devices), rng=rng)


def read_positions(path: Path, *, num_devices: int) -> FloatArray:
    """Return positions (n, 2) from a CSV with the columns x_m and y_m."""
    columns = read_columns(
        path, known=("x_m", "y_m"), required=("x_m", "y_m"), num_devices=num_devices, what="positions"
    )
    position_m = np.column_stack([columns["x_m"], columns["y_m"]])
    if not np.isfinite(position_m).all():
        device_index = int(np.argmin(np.isfinite(position_m).all(axis=1)))
        raise ProblemError(
            f"The positions file {path} has a position that is not finite at device {device_index}. "
            "Write metres from the base station."
        )
    return position_m


def ground_distance_m(position_m: FloatArray) -> FloatArray:
    """Return each device's 2D distance from the base station."""
    return np.hypot(position_m[:, 0], position_m[:, 1])


def _at_random_angles(distance_m: FloatArray, *, rng: np.random.Generator) -> FloatArray:
    angle_rad = rng.uniform(0.0, 2.0 * np.pi, len(distance_m))
    return np.column_stack([distance_m * np.cos(angle_rad), distance_m * np.sin(angle_rad)])
