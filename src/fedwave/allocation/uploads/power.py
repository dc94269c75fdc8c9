"""SP2 at a given assignment, Lemma 6 and Theorem 4: the signal-to-noise ratio of all uploads, in closed form.

All selected devices finish together (whoever is early could save energy by whispering), and with equal S
and B that means they share one SNR x. The delay is s / ln(1 + x), s = S ln2 / B, and a device on a block
with a = (I + B N0) / h watts per unit of SNR spends a s x / ln(1 + x) joules.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from fedwave.units import FloatArray

LARGEST_SNR = 1e300  # stands for "no limit": its logarithm is finite, and so is its product with small gains

_SMALL_RATIO = 0.05  # below this eta_2 / b1 the series is more accurate than the closed form
_LARGE_RATIO = 10.0
_TINY_RATIO = 1e-10  # below this the first terms of the inverse series are exact
# Coefficients (k-1)/k! of (y-1) e^y + 1 = y^2/2 + y^3/3 + y^4/8 + ..., highest first. For c < _SMALL_RATIO,
# where y < 0.32, the terms left out are below rounding.
_SERIES = tuple((k - 1) / math.factorial(k) for k in range(14, 1, -1))
_FEW_NATS = 0.3  # up to here the series is exact, and the plain formula would cancel


def optimal_snr(delay_to_energy: float) -> float:
    """Return the zero of f4, Lemma 6: (1 + x) ln(1 + x) - x = c, with c = eta_2 / b1 of Eq. (46).

    x = exp(1 + W0((c - 1) / e)) - 1. y = ln(1 + x) comes from Newton's method on (y - 1) e^y = c - 1, in
    three forms: near the branch point of W0, where rounding would take half of the digits, as a series of
    positive terms; for large c in logarithms.
    """
    c = delay_to_energy
    if c <= 0.0:
        return 0.0
    if c >= LARGEST_SNR:
        return LARGEST_SNR
    if c >= _LARGE_RATIO:  # y + ln(y - 1) = ln(c - 1)
        level = math.log(c - 1.0)
        y = 1.0 + level - math.log(level)
        for _ in range(60):  # four steps in practice
            step = (y + math.log(y - 1.0) - level) * (y - 1.0) / y
            y -= step
            if abs(step) <= 1e-15 * y:
                break
        return math.expm1(y)
    if c >= _SMALL_RATIO:
        y = min(math.sqrt(2.0 * c), 1.0 + math.log1p(c))  # right of the root
        for _ in range(60):  # five steps in practice
            pull = (c - 1.0) * math.exp(-y)
            step = (y - 1.0 - pull) / (1.0 + pull)
            y -= step
            if abs(step) <= 1e-15 * y:
                break
        return math.expm1(y)
    y = _first_terms(math.sqrt(2.0 * c))
    for _ in range(60):  # two or three steps in practice
        value = 0.0
        for coefficient in _SERIES:
            value = value * y + coefficient
        step = (value * y * y - c) / (y * math.exp(y))
        y -= step
        if abs(step) <= 1e-15 * y:
            break
    return math.expm1(y)


def optimal_snrs(delay_to_energy: FloatArray) -> FloatArray:
    """Return ``optimal_snr`` of each entry, by Newton's method: quicker for many than the Lambert W function.

    In v = ln(1 + x) the function (v - 1) e^v + 1 is convex, and both starting points lie right of its root.
    """
    c = np.clip(delay_to_energy, 0.0, LARGEST_SNR)
    v = np.minimum(np.sqrt(2.0 * c), 1.0 + np.log1p(c))
    is_tiny = c < _TINY_RATIO
    v[is_tiny] = _first_terms(v[is_tiny])
    for _ in range(60):  # ten in practice
        growth = np.exp(v)
        slope = v * growth
        excess = np.where(is_tiny, 0.0, np.maximum(slope - np.expm1(v) - c, 0.0))
        step = np.divide(excess, slope, out=np.zeros(v.shape), where=slope > 0)
        v = v - step
        if (step <= 1e-12 * v).all():
            break
    return np.minimum(np.expm1(v), LARGEST_SNR)


@overload
def _first_terms(root: float) -> float: ...
@overload
def _first_terms(root: FloatArray) -> FloatArray: ...
def _first_terms(root: float | FloatArray) -> float | FloatArray:
    """Return the y with (y - 1) e^y + 1 = c for small c, by the inverse series in sqrt(2 c)."""
    return root * (1.0 - root * (1.0 / 3.0 - root * (11.0 / 72.0)))


def steepness(nats: float) -> float:
    """Return (v - 1) e^v + 1 = (1 + x) ln(1 + x) - x with v = ln(1 + x), the left side of Lemma 6."""
    if nats > _FEW_NATS:
        return (nats - 1.0) * math.exp(nats) + 1.0
    value = 0.0
    for coefficient in _SERIES:
        value = value * nats + coefficient
    return value * nats * nats


def delay_factor(snr: float) -> float:
    """Return 1 / ln(1 + x): the upload delay in units of s = S ln2 / B, Eq. (28)."""
    return 1.0 / math.log1p(snr) if snr > 0.0 else math.inf


def energy_factor(snr: float) -> float:
    """Return x / ln(1 + x): the upload energy in units of s (I + B N0) / h, Eq. (29). It grows from 1."""
    return snr / math.log1p(snr) if snr > 0.0 else 1.0


def snr_of_delay(delay_s: float, *, nat_delay_s: float) -> float:
    """Return the SNR that uploads in exactly this time, Lemma 5, Eq. (42): 2^(S / (B delta)) - 1."""
    exponent = nat_delay_s / delay_s
    return math.expm1(exponent) if exponent < math.log(LARGEST_SNR) else math.inf


def snr_of_energy_factor(factor: FloatArray) -> FloatArray:
    """Return the x with x / ln(1 + x) = factor, the inverse of ``energy_factor``; 0 where factor <= 1.

    With y = ln(1 + x) this is (e^y - 1) / y = r. As e^(y/2) <= r, the root is at most 2 ln r, hence at most
    ln(1 + 2 r ln r), and so on. From there Newton's method descends on a convex function.
    """
    r = np.clip(np.asarray(factor, dtype=np.float64), 1.0, LARGEST_SNR / 1e3)
    y = 2.0 * np.log(r)
    y = np.where(r < 1.0 + 1e-3, 2.0 * (r - 1.0), np.minimum(y, np.log1p(r * np.log1p(r * y))))
    positive = y > 1e-300
    safe = np.where(positive, y, 1.0)
    for _ in range(12):  # three to six in practice
        mean_growth = np.expm1(safe) / safe
        slope = (np.exp(safe) - mean_growth) / safe
        slope = np.where(safe < 1e-4, 0.5 + safe / 3.0, slope)  # the quotient cancels for small y
        step = np.where(positive, (mean_growth - r) / slope, 0.0)
        safe = np.maximum(safe - step, 1e-300)
        if (np.abs(step) <= 1e-16 * safe).all():
            break
    return np.minimum(np.expm1(np.where(positive, safe, 0.0)), LARGEST_SNR)


def best_common_snr(
    unit_cost: float, *, delay_weight: float, nat_delay_s: float, smallest: float, largest: float
) -> float:
    """Return the SNR that all uploads of an assignment share, Theorem 4.

    ``unit_cost`` is eta_1 s sum of a over the assigned pairs; the range comes from deadline, power and
    energy limits.
    """
    delay_cost = delay_weight * nat_delay_s
    # Mostly a limit binds, and to see that is quicker than to find what would be best without it.
    if largest < LARGEST_SNR and unit_cost * steepness(math.log1p(largest)) <= delay_cost:
        return max(smallest, largest)
    # Free energy: as fast as possible. Overflowing quotients mean the same.
    wished = optimal_snr(delay_cost / unit_cost) if unit_cost > delay_cost / LARGEST_SNR else LARGEST_SNR
    return max(smallest, min(wished, largest))
