"""Devices that send faster than the others: because of packet errors, circuit power or an early deadline.

A pair with contribution u is worth g(y) = u e^(-m/y) - k e(y) - kappa / ln(1 + y) at an SNR y of its own,
where k = eta_1 s (I + B N0) / (h xi), kappa = eta_1 s P_circuit and e(y) = y / ln(1 + y). It may take any y
from the common SNR x up to its cap, so its worth at x is the largest g on [x, cap]. In
docs/allocation-proofs.md it is shown that, as a function of e,

1. for y >= m, g is concave;
2. for y < m, g rises wherever it is positive.

So each pair has a favourite SNR, the best on [min(m, cap), cap], and a pair that is worth anything is worth
g(max(x, favourite)): level up to the favourite, then concave and falling. A deadline of a device's own is a
least y: its favourite is the best from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.power import LARGEST_SNR, energy_factor, steepness
from fedwave.allocation.uploads.snr_range import own_snr_floor, thrifty_snr
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.delivery import success_probability

_FAINT_SNR = 1e-5  # below, (1 + x) ln(1 + x) - x is x^2 / 2 for our purpose, and would cancel
_LARGE = 700.0  # logarithms past this are as good as infinite


def may_be_faster(problem: AllocationProblem) -> bool:
    """Return whether a device may do best to send faster, or more loudly, than the common SNR asks for."""
    counts_energy = problem.counts_energy or problem.max_energy_j is not None
    pays_by_the_second = problem.radio.has_circuit and counts_energy
    is_louder = problem.waterfall > 0.0 or problem.min_snr > problem.rate.max_snr
    return pays_by_the_second or is_louder or problem.has_own_deadlines


@dataclass(frozen=True, kw_only=True, eq=False)
class FasterUploads:
    """What pairs do that may send faster than the common SNR: arrays of the shape of their table."""

    favourite: FloatArray  # SNR; a pair sends at the larger of this and the common one
    worth: FloatArray  # g at the favourite: u times its success, minus its energy's cost
    waterfall: float  # m
    circuit_cost: FloatArray | float  # kappa = eta_1 s P_circuit; an array where prices or circuits differ

    def joined_by(self, *others: FasterUploads) -> FasterUploads:
        """Return these pairs with the columns of others after their own."""
        every = [self, *others]
        circuit_cost = self.circuit_cost
        if isinstance(circuit_cost, np.ndarray):
            circuit_cost = np.hstack([np.asarray(one.circuit_cost) for one in every])
        return replace(
            self,
            favourite=np.hstack([one.favourite for one in every]),
            worth=np.hstack([one.worth for one in every]),
            circuit_cost=circuit_cost,
        )

    def columns(self, which: IntArray) -> FasterUploads:
        """Return some columns of these pairs, in this order; each lies in one piece."""
        circuit_cost = self.circuit_cost
        if isinstance(circuit_cost, np.ndarray):
            circuit_cost = columns_of(circuit_cost, which)
        favourite, worth = columns_of(self.favourite, which), columns_of(self.worth, which)
        return replace(self, favourite=favourite, worth=worth, circuit_cost=circuit_cost)

    def tangent(self, snr: float) -> tuple[float, float, float, float]:
        """Return intercepts and slopes in e, at an SNR, of the success and of -1 / ln(1 + x): a, b, c, d.

        They make up the tangent of g: u a - kappa c - (k - u b - kappa d) e.
        """
        nats = math.log1p(snr)
        factor, steep = energy_factor(snr), steepness(nats)
        success = math.exp(-self.waterfall / snr) if self.waterfall else 1.0
        slope = self.waterfall * success * nats * nats * (1.0 + snr) / (snr * snr * steep)
        return success - slope * factor, slope, 1.0 / nats + factor / steep, 1.0 / steep


def columns_of(values: FloatArray, which: IntArray) -> FloatArray:
    """Return some columns, each in one piece in memory: whoever takes some of them again does so quickly."""
    return values.T.take(which, axis=0).T


def faster_uploads(
    problem: AllocationProblem,
    device: IntArray,
    block: IntArray,
    *,
    contribution: FloatArray,
    unit_cost: FloatArray,
    own_cap: FloatArray,
) -> FasterUploads:
    """Return each pair's favourite SNR up to its own cap, and its worth there. All arrays have one shape."""
    waterfall = problem.waterfall
    # A threshold below the rate's cap is a floor of the common SNR already.
    threshold: FloatArray | float = problem.min_snr if problem.min_snr > problem.rate.max_snr else 0.0
    if problem.has_own_deadlines:
        threshold = np.maximum(threshold, own_snr_floor(problem, device))
    circuit_cost = problem.price_of(device) * problem.nat_delay_s * problem.circuit_power_of(device)
    max_snr = min(problem.rate.max_snr, LARGEST_SNR)
    if waterfall == 0.0:
        favourite = np.minimum(np.maximum(thrifty_snr(problem, device, block), threshold), own_cap)
    else:
        favourite = own_cap.copy()
        low = np.minimum(np.maximum(waterfall, threshold), own_cap)
        is_open = (own_cap > low) & (unit_cost > 0) & (contribution > 0)
        favourite[is_open] = _favourites(
            contribution[is_open],
            unit_cost[is_open],
            low[is_open],
            own_cap[is_open],
            waterfall,
            circuit_cost[is_open] if isinstance(circuit_cost, np.ndarray) else circuit_cost,
            max_snr,
        )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        nats = np.log1p(np.minimum(favourite, max_snr))
        cost = np.where(favourite > 0, (unit_cost * favourite + circuit_cost) / nats, unit_cost)
        worth = contribution * success_probability(favourite, waterfall=waterfall) - cost
    return FasterUploads(
        favourite=favourite,
        worth=np.where(own_cap > 0, worth, -np.inf),
        waterfall=waterfall,
        circuit_cost=circuit_cost,
    )


def _favourites(
    contribution: FloatArray,
    unit_cost: FloatArray,
    low: FloatArray,
    high: FloatArray,
    waterfall: float,
    circuit_cost: FloatArray | float,
    max_snr: float,
) -> FloatArray:
    """Return where each pair's worth is largest between low >= m and high: where its slope falls through 0.

    The slope is negative from some SNR on, positive before. At the rate's cap it drops, so the sides of that
    point are looked at one by one.
    """

    def rise(log_snr: FloatArray, where: IntArray) -> FloatArray:
        """Return the logarithm of what more SNR brings over what it costs, up to the rate's cap."""
        snr = np.exp(log_snr)
        nats = np.log1p(snr)
        steep = np.where(snr < _FAINT_SNR, 0.5 * snr * snr, (1.0 + snr) * nats - snr)
        ratio = nats / snr
        gain = contribution[where] * waterfall * np.exp(-waterfall / snr) * ratio * ratio * (1.0 + snr)
        circuit = circuit_cost[where] if isinstance(circuit_cost, np.ndarray) else circuit_cost
        return _log_ratio(gain + circuit, unit_cost[where] * steep)

    def rise_past(log_snr: FloatArray, where: IntArray) -> FloatArray:
        """Return the same past the rate's cap, where the delay stays and the energy grows with the power."""
        gain = contribution[where] * waterfall * np.exp(-waterfall * np.exp(-log_snr)) * math.log1p(max_snr)
        return _log_ratio(gain, unit_cost[where] * np.exp(2.0 * log_snr))

    first, last = np.log(low), np.log(high)
    favourite = np.empty(low.shape)  # its logarithm, at first
    every = np.arange(low.size)
    is_past = high > max_snr
    if is_past.any():
        start = np.maximum(first, math.log(max_snr))
        is_past &= (low >= max_snr) | (rise_past(start, every) > 0.0)
        favourite[is_past] = _falling_roots(rise_past, every[is_past], start[is_past], last[is_past])
        high = np.where(is_past, high, np.minimum(high, max_snr))
        last = np.log(high)
    rest = every[~is_past]
    favourite[rest] = _falling_roots(rise, rest, first[rest], last[rest])
    return np.where(favourite >= last, high, np.clip(np.exp(favourite), low, high))  # ends are exact


def _log_ratio(gain: FloatArray, cost: FloatArray) -> FloatArray:
    """Return ln(gain / cost), within bounds that a secant can use."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.minimum(np.maximum(np.log(gain / cost), -_LARGE), _LARGE))


def _falling_roots(
    falling: Callable[[FloatArray, IntArray], FloatArray], which: IntArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return where each of the functions falls through 0 between low and high, or the end nearest to that.

    By the Illinois rule: a secant between the ends of a bracket, the older end being given half its weight
    if it stays a second time. Errors of 1e-7 are enough: at a favourite the worth is level.
    """
    at_low, at_high = falling(low, which), falling(high, which)
    root = np.where(at_low <= 0.0, low, high)
    is_open = (at_low > 0.0) & (at_high < 0.0)
    which, place = which[is_open], np.flatnonzero(is_open)
    low, high, at_low, at_high = low[is_open], high[is_open], at_low[is_open], at_high[is_open]
    side = np.zeros(which.shape)
    for _ in range(100):  # six in practice
        if which.size == 0:
            break
        new = high - at_high * (high - low) / (at_high - at_low)
        value = falling(new, which)
        root[place] = new
        is_right = value < 0.0  # the root lies left of it
        at_low = np.where(is_right & (side > 0), 0.5 * at_low, at_low)
        at_high = np.where(~is_right & (side < 0), 0.5 * at_high, at_high)
        high, at_high = np.where(is_right, new, high), np.where(is_right, value, at_high)
        low, at_low = np.where(is_right, low, new), np.where(is_right, at_low, value)
        side = np.where(is_right, 1.0, -1.0)
        is_open = (np.abs(value) > 1e-7) & (high - low > 1e-7)
        which, place, side = which[is_open], place[is_open], side[is_open]
        low, high, at_low, at_high = low[is_open], high[is_open], at_low[is_open], at_high[is_open]
    return root
