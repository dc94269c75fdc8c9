"""Means and medians over seeds with their 95 % intervals, of values and of ratios, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TAIL = 0.025  # on either side of a 95 % interval
NO_WIDTH = 1e-9  # of the mean: rounding's doing


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with the half-width of its 95 % confidence interval (Student's t)."""

    mean: float
    half_width: float  # NaN for a single seed
    count: int

    @property
    def prediction(self) -> float:
        """Half the width of the 95 % interval of one more seed, t s sqrt(1 + 1/n)."""
        return self.half_width * math.sqrt(self.count + 1.0)

    def __str__(self) -> str:
        """Return the half-width to two digits and the mean to the same decimal: 71.60 ± 0.58, 2,251 ± 911."""
        if math.isnan(self.mean):
            return "-"
        if math.isnan(self.half_width):
            return short_number(self.mean)
        if self.half_width <= NO_WIDTH * abs(self.mean):
            return f"{short_number(self.mean)} ± 0"
        decimals = max(0, 1 - math.floor(math.log10(self.half_width)))
        mean = round(self.mean, decimals) + 0.0  # no minus before a zero
        return f"{mean:,.{decimals}f} ± {self.half_width:,.{decimals}f}"


@dataclass(frozen=True)
class Median:
    """A median over seeds between two of the values: its 95 % interval, whatever their distribution.

    Fewer than six values allow none; then these are the smallest and the largest.
    """

    median: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """Return the median and its interval to three digits: 206 (189–240)."""
        if self.count == 0:
            return "-"
        if self.count == 1:
            return short_number(self.median)
        return f"{_three(self.median)} ({_three(self.low)}–{_three(self.high)})"


@dataclass(frozen=True)
class Ratio:
    """A geometric mean over seeds with its 95 % interval (Student's t of the logarithms)."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        spread = "" if self.count == 1 else f" ({_times(self.low)}–{_times(self.high)})"
        return f"{_times(self.mean)} ×{spread}"


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of the finite values and its 95 % confidence interval."""
    finite = np.array([value for value in values if math.isfinite(value)])
    if finite.size == 0:
        return Interval(math.nan, math.nan, 0)
    if finite.size == 1:
        return Interval(float(finite[0]), math.nan, 1)
    from scipy.special import stdtrit  # Student's quantiles; scipy.stats takes as long to load as torch

    error = float(finite.std(ddof=1)) / math.sqrt(finite.size)
    return Interval(float(finite.mean()), float(stdtrit(finite.size - 1, 0.975)) * error, finite.size)


def median_interval(values: Sequence[float]) -> Median:
    """Return the median of the finite values between order statistics.

    Half of all values lie below the true median, so the k-th smallest and k-th largest hold it between them
    but for twice the chance of fewer than k of n tosses; k is the largest with 95 % left.
    """
    finite = sorted(value for value in values if math.isfinite(value))
    count = len(finite)
    if count == 0:
        return Median(math.nan, math.nan, math.nan, 0)
    tail, k = 0.5**count, 1
    while k < (count + 1) // 2 and tail + math.comb(count, k) * 0.5**count <= TAIL:
        tail += math.comb(count, k) * 0.5**count
        k += 1
    return Median(float(np.median(finite)), float(finite[k - 1]), float(finite[count - k]), count)


def ratio_interval(ratios: Sequence[float]) -> Ratio:
    """Return the geometric mean of positive ratios and its 95 % confidence interval."""
    found = interval([math.log(ratio) for ratio in ratios])
    low, high = found.mean - found.half_width, found.mean + found.half_width
    return Ratio(math.exp(found.mean), math.exp(low), math.exp(high), found.count)


def short_number(value: float, count: int = 4) -> str:
    """Return a number with so many significant digits, and thousands written out: 29,930 not 2.993e+04."""
    return f"{value:,.0f}" if abs(value) >= 10.0**count else f"{value:,.{count}g}"


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def _times(value: float) -> str:
    if value >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.1f}" if 0.995 <= value < 10.0 else f"{value:.2g}"  # 1.0, not 1, from 0.995 on
