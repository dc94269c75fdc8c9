"""Conversions between decibel scales and linear SI units. Used at the edges; inside everything is linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ProblemError, shown

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def real_array(value: Any, name: str) -> FloatArray:
    """Return the values as an array of float64, not copied if they are one; refuse what is no real number.

    What float64 cannot hold becomes infinite, without a warning.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"{name} must hold numbers only, got {shown(value)}.") from None
    # Numpy would drop imaginary parts, and make numbers of truth values and words.
    if array.dtype.kind == "c":
        raise ProblemError(
            f"{name} must hold real numbers, got {array.dtype}. The power of a complex h is abs(h) ** 2."
        )
    if array.dtype.kind not in "iuf":
        raise ProblemError(
            f"{name} must hold numbers only, got {shown(value)} ({array.dtype}). Use numpy arrays of floats."
        )
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=np.float64)


@overload
def db_to_linear(value_db: float) -> float: ...
@overload
def db_to_linear(value_db: FloatArray) -> FloatArray: ...
def db_to_linear(value_db: float | FloatArray) -> float | FloatArray:
    """Return the power ratio of a value in dB: 10^(x/10)."""
    return 10.0 ** (value_db / 10.0)


@overload
def linear_to_db(ratio: float) -> float: ...
@overload
def linear_to_db(ratio: FloatArray) -> FloatArray: ...
def linear_to_db(ratio: float | FloatArray) -> float | FloatArray:
    """Return a power ratio in dB: 10 log10(x). Zero becomes minus infinity."""
    with np.errstate(divide="ignore"):
        value = 10.0 * np.log10(ratio)
    return float(value) if np.ndim(value) == 0 else value


@overload
def dbm_to_watt(value_dbm: float) -> float: ...
@overload
def dbm_to_watt(value_dbm: FloatArray) -> FloatArray: ...
def dbm_to_watt(value_dbm: float | FloatArray) -> float | FloatArray:
    """Return a power in dBm as watts: 23 dBm is 0.1995 W."""
    return 1e-3 * db_to_linear(value_dbm)


@overload
def watt_to_dbm(power_w: float) -> float: ...
@overload
def watt_to_dbm(power_w: FloatArray) -> FloatArray: ...
def watt_to_dbm(power_w: float | FloatArray) -> float | FloatArray:
    """Return a power in watts as dBm."""
    return linear_to_db(power_w * 1e3)


def other_units(name: str) -> dict[str, Callable[[FloatArray], FloatArray]]:
    """Return the names under which a quantity may be given in other units, and what makes it linear SI.

    ``max_power_w`` may be ``max_power_dbm`` or ``max_power_mw``, ``channel_gain`` may be ``channel_gain_db``.
    """
    if name.endswith("_w"):
        stem = name.removesuffix("_w")
        return {f"{stem}_dbm": dbm_to_watt, f"{stem}_mw": _milliwatt_to_watt}
    if name.endswith("_w_per_hz"):
        return {name.replace("_w_per_hz", "_dbm_per_hz"): dbm_to_watt}
    return {f"{name}_db": db_to_linear} if re.search(r"(gain|snr)(_\d+)?$", name) else {}


def _milliwatt_to_watt(power_mw: FloatArray) -> FloatArray:
    return 1e-3 * power_mw


def carbon_g(energy_j: float, intensity_g_per_kwh: float) -> float:
    """Return the grams of CO2 of an energy; a kilowatt-hour is 3.6 million joules."""
    return energy_j / 3.6e6 * intensity_g_per_kwh
