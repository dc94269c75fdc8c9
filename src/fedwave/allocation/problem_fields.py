"""What a field of an allocation problem may hold: one number, or an array of them, each with its sign."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedwave.errors import ProblemError, shown
from fedwave.units import BoolArray, FloatArray, real_array

_FIX_SIGN = {
    "channel_gain": "A gain is a power ratio; convert decibels with fedwave.units.db_to_linear",
    "max_power_w": "Use 0 for a device that cannot transmit; convert dBm with fedwave.units.dbm_to_watt",
    "interference_w": "Use 0 for a block without interference",
    "workload_cycles": "Use 0 for a device without work",
    "max_frequency_hz": "Give the frequency in hertz",
    "capacitance": "Use 0 to ignore the energy of computing",
    "static_power_w": "Use 0 for a processor that draws nothing but what its clock takes",
    "joules_per_cycle": "Use 0 where all energy depends on the frequency",
    "device_bits": "Give the size of each upload in bits",
    "offer_bits": "Give the size of each offer in bits",
    "max_delay_s": "Give seconds; inf for a device without a deadline",
    "max_energy_j": "Use None for no limit",
    "max_total_energy_j": "Use None for no limit",
    "min_frequency_hz": "Use None for no lower limit",
    "min_snr": "Give a ratio, not decibels; use 0 for no threshold",
    "packet_error_waterfall": "Use None for no packet errors",
    "fixed_delay_s": "Use 0 if the round has no other phase",
    "energy_weight": "A negative weight rewards wasting energy; use 0 to ignore energy",
    "delay_weight": "A negative weight rewards waiting; use 0 with max_delay_s to ignore delay",
    "noise_psd_w_per_hz": "Give a power density; convert dBm/Hz with fedwave.units.dbm_to_watt",
}


def one_number(name: str, value: Any, *, must_be_positive: bool) -> float:
    """Return a field that is one finite number, not below zero."""
    try:
        array = np.asarray(value)
        if array.ndim or array.dtype.kind in "bcSU":  # float() would convert them, or drop a part
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} must be one number, got {shown(value)}.") from None
    except OverflowError:
        number = math.inf
    bound = "> 0" if must_be_positive else ">= 0"
    if not math.isfinite(number):
        raise ProblemError(f"{name} must be a finite number {bound}, got {number}.")
    if number < 0 or (must_be_positive and number == 0):
        fix = f" {_FIX_SIGN[name]}." if name in _FIX_SIGN else " Check its unit and sign."
        raise ProblemError(f"{name} must be {bound}, got {number:g}.{fix}")
    return number


def checked_array(
    name: str, array: FloatArray, *, may_be_negative: bool = False, may_be_infinite: bool = False
) -> FloatArray:
    """Return a read-only view of a field's values, all of which it may have."""
    is_bad = np.isnan(array) if may_be_infinite else ~np.isfinite(array)
    if is_bad.any():
        where = first_index(is_bad)
        raise ProblemError(
            f"{name} must be finite, got {array[where]} at {_words(where)}. Remove or repair it."
        )
    if not may_be_negative and array.size and array.min() < 0:
        where = first_index(array < 0)
        raise ProblemError(
            f"{name} must be >= 0, got {array[where]:g} at {_words(where)}. {_FIX_SIGN[name]}."
        )
    view = array.view()
    view.flags.writeable = False
    return view


def length_of(value: Any, name: str) -> int:
    """Return how many values a field has that is a row of them."""
    array = real_array(value, name)
    if array.ndim != 1:
        each = "block" if name == "interference_w" else "device"
        raise ProblemError(
            f"{name} must be a one-dimensional array with one value per {each}, got shape {array.shape}. "
            f"Write np.full(num_{each}s, value) if all are alike."
        )
    return int(array.shape[0])


def first_index(mask: BoolArray) -> tuple[int, ...]:
    """Return where the first one is true."""
    return tuple(int(index) for index in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _words(where: tuple[int, ...]) -> str:
    return f"index {where[0]}" if len(where) == 1 else f"device {where[0]}, block {where[1]}"
