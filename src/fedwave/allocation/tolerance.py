"""The one rule by which a limit holds: within a relative 1e-9, in plans, bounds and ``violations`` alike.

Delays and energies come from decisions by a dozen roundings, so nobody can hit a limit to the last bit. Plans
aim at the limits themselves; the tolerance only decides who stands close enough to count as meeting them.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from fedwave.units import BoolArray, FloatArray

LIMIT_TOLERANCE = 1e-9  # relative
# A plan may use the tolerance up to here: rounding cannot carry it past the rule.
RELAXED = 1.0 + LIMIT_TOLERANCE * (1.0 - 1e-5)
_NEARLY = 0.01  # who misses a limit by less than this share is said to be nearly feasible
_FAR = 9.0  # from here on a factor reads better than a percentage


@overload
def exceeds(value: float, limit: float) -> bool: ...
@overload
def exceeds(value: FloatArray, limit: FloatArray | float) -> BoolArray: ...
def exceeds(value: FloatArray | float, limit: FloatArray | float) -> BoolArray | bool:
    """Return whether a value breaks an upper limit; what is no number breaks every limit."""
    with np.errstate(over="ignore"):
        return np.logical_not(value <= np.multiply(limit, 1.0 + LIMIT_TOLERANCE))


def missed_by(share: float, limit: str) -> str:
    """Return "misses max_delay_s by 0.03 %", and that this is little where it is."""
    if not math.isfinite(share):
        return f"misses {limit} by any measure"
    if share > _FAR:
        return f"misses {limit} by a factor of {1.0 + share:.3g}"
    text = f"misses {limit} by {100.0 * share:.3g} %"
    return f"{text} (nearly feasible)" if share < _NEARLY else text
