"""Devices that share a band: what an upload is worth at a price of area, and how that moves with the delay.

Where all blocks are alike only areas matter. An upload of s nats that holds b hertz for t seconds has the
area q = b t, sends v = s / q nats per hertz second, and takes the transmit energy s N / (h xi) (e^v - 1) / v,
N being noise and interference per hertz: a function of the area alone, convex and falling. Areas are in units
of s here, so that q = 1 / v. All uploads together have the area W delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from fedwave.allocation.access.alike import (
    energy_weight_of,
    load_of,
    nats_of_model,
    noise_w_per_hz,
    on_blocks,
    unit_energy_j,
)
from fedwave.allocation.access.groups import Groups
from fedwave.allocation.access.nats import (
    LEAST_NATS,
    MOST_NATS,
    energy,
    nats_of_energy,
    nats_of_saving,
    saving,
)
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import LIMIT_TOLERANCE
from fedwave.allocation.uploads.snr_range import least_affordable_snr, snr_caps
from fedwave.units import BoolArray, FloatArray, IntArray

Delay = TypeVar("Delay", float, FloatArray)


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """The uploads that may be made, one entry each, and the area that they share."""

    device: IntArray
    contribution: FloatArray  # u
    energy_price: FloatArray  # eta_1 s N / (h xi): what an upload costs per unit of ``energy``
    reach_per_s: FloatArray  # p_max h / (N s): peak power keeps ``energy`` below this times the delay
    most_nats: FloatArray  # what modem and energy limit allow; over slots peak power, too
    least_nats: FloatArray  # below, the signal is not decoded, or the circuit takes too much
    width_per_s: float  # W / s: the area of a second
    load: FloatArray  # s_i / s: the size of each upload; its area is load / v
    circuit_price: FloatArray  # eta_1 P_circuit: what the circuit costs per second of the delay, over shares
    hold_price: float = 0.0  # eta_1 P_circuit s / W: what the circuit costs per unit of area, over slots
    group: IntArray | None = None  # whose offers these are, in rising order, at most one being taken
    has_slots: bool = False  # one upload after another over the whole band: peak power knows no delay

    @cached_property
    def inverse_price(self) -> FloatArray:
        """Return load / energy_price, huge where energy is free."""
        return np.asarray(self.load / np.maximum(self.energy_price, 1.0 / _HUGE))

    @cached_property
    def offers(self) -> Groups | None:
        """Return which uploads exclude each other, if any do."""
        return None if self.group is None else Groups.of(self.group)

    @property
    def size(self) -> int:
        """Return how many uploads may be made."""
        return int(self.device.size)

    def only(self, keep: BoolArray | IntArray) -> Band:
        """Return the band with some of the uploads."""
        names = (
            "device",
            "contribution",
            "energy_price",
            "reach_per_s",
            "most_nats",
            "least_nats",
            "circuit_price",
            "load",
        )
        group = None if self.group is None else self.group[keep]
        return replace(self, group=group, **{name: getattr(self, name)[keep] for name in names})

    def at(self, delay_s: Delay) -> Moment[Delay]:
        """Return the uploads if all must be done after this delay, or after each of a column of delays."""
        most, at_peak = self.most_nats, np.zeros(self.size, dtype=bool)
        if not self.has_slots:
            peak = nats_of_energy(np.minimum(self.reach_per_s * delay_s, _HUGE))
            at_peak = peak < most
            most = np.where(at_peak, peak, most)
        can = (most >= self.least_nats * (1.0 - LIMIT_TOLERANCE)) & (most >= LEAST_NATS)
        return Moment(
            band=self,
            delay_s=delay_s,
            supply=self.width_per_s * delay_s,
            most_nats=np.where(can, most, 1.0),
            least_nats=np.minimum(self.least_nats, np.where(can, most, 1.0)),
            at_peak=at_peak & can,
            can=can,
        )

    def first_delay_s(self) -> FloatArray:
        """Return the delay from which on each upload is possible within its peak power; 0: always."""
        if self.has_slots:
            return np.where(self.most_nats >= self.least_nats, 0.0, np.inf)
        least = energy(np.maximum(self.least_nats, LEAST_NATS))
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(least / self.reach_per_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment(Generic[Delay]):
    """The same uploads at a given delay; a column of delays makes a table of moments."""

    band: Band
    delay_s: Delay
    supply: Delay  # area, in units of s
    most_nats: FloatArray
    least_nats: FloatArray
    at_peak: BoolArray  # peak power is what bounds the nats
    can: BoolArray

    def nats(self, price: float | FloatArray) -> FloatArray:
        """Return v of each upload if a unit of area costs this much: m(v) = price / (eta_1 energy unit)."""
        paid = price + self.band.hold_price
        nats = nats_of_saving(np.minimum(paid * self.band.inverse_price, _HUGE))
        return np.minimum(np.maximum(nats, self.least_nats), self.most_nats)

    def worth(self, nats: FloatArray, price: float | FloatArray) -> FloatArray:
        """Return what each upload is worth with v nats per unit of area; minus infinity if it cannot be."""
        band = self.band
        area = band.load / nats
        worth = band.contribution - band.energy_price * energy(nats) - (price + band.hold_price) * area
        if not band.has_slots:  # where the delay may be endless, and the circuit is on for its slot alone
            worth = worth - band.circuit_price * self.delay_s
        return np.where(self.can, worth, -np.inf)

    def slope(self, nats: FloatArray, price: float | FloatArray) -> FloatArray:
        """Return how fast each worth grows with the delay, at a given price.

        More time relaxes the peak power, and the circuit is on for longer.
        """
        band = self.band
        saved = saving(nats)
        gain = band.reach_per_s * ((price + band.hold_price) * band.load / saved - band.energy_price)
        gain = np.where(self.at_peak & (nats >= self.most_nats), np.maximum(gain, 0.0), 0.0)
        return gain - band.circuit_price

    def elasticity(self, nats: FloatArray) -> FloatArray:
        """Return by what share each area shrinks as the price rises by a share; 0 at a limit."""
        is_free = (nats < self.most_nats) & (nats > self.least_nats)
        return np.where(is_free, saving(nats) / (nats * nats * np.exp(nats)), 0.0)


_HUGE = 1e290


def shared_band(problem: AllocationProblem, device: IntArray) -> Band:
    """Return the uploads of these devices over shares of the band, each share held until all are done."""
    nats, unit_j = nats_of_model(problem), unit_energy_j(problem, device)
    gain, noise = problem.channel_gain[device], noise_w_per_hz(problem)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        load = load_of(problem, device)
        reach = problem.max_power_w[device] * gain / (noise * nats * load)
        limit = np.minimum(problem.energy_limit_of(device) / unit_j, _HUGE)
    most = np.full(device.shape, min(math.log1p(problem.rate.max_snr), MOST_NATS))
    if problem.max_energy_j is not None:
        most = np.minimum(most, nats_of_energy(limit))
    least = math.log1p(max(problem.rate.min_snr, problem.min_snr))
    keep = np.isfinite(unit_j) & (reach > 0.0)
    weight = energy_weight_of(problem, device)
    band = Band(
        device=device,
        contribution=problem.contribution[device],
        energy_price=weight * unit_j,
        reach_per_s=reach,
        most_nats=most,
        least_nats=np.full(device.shape, max(least, LEAST_NATS)),
        circuit_price=weight * problem.radio.circuit_power_w,
        load=load,
        width_per_s=problem.num_blocks * problem.bandwidth_hz / nats,
    )
    return band.only(keep)


def slots(problem: AllocationProblem, device: IntArray) -> Band:
    """Return the uploads of these devices one after another, each over the whole band."""
    wide = on_blocks(problem, problem.num_blocks)
    block = np.zeros(device.shape, dtype=np.int64)
    cap = snr_caps(wide, device, block)[0]
    nats, unit_j = nats_of_model(problem), unit_energy_j(problem, device)
    floor = np.maximum(least_affordable_snr(wide, device, block), max(problem.rate.min_snr, problem.min_snr))
    width = problem.num_blocks * problem.bandwidth_hz / nats
    weight = energy_weight_of(problem, device)
    band = Band(
        device=device,
        contribution=problem.contribution[device],
        energy_price=weight * unit_j,
        reach_per_s=np.zeros(device.shape),
        most_nats=np.minimum(np.log1p(cap), MOST_NATS),
        least_nats=np.maximum(np.log1p(floor), LEAST_NATS),
        circuit_price=np.zeros(device.shape),  # off between slots: see hold_price
        width_per_s=width,
        load=load_of(problem, device),
        hold_price=float(weight.max(initial=0.0))
        * float(np.max(problem.radio.circuit_power_w))
        / width,  # one weight for all
        has_slots=True,
    )
    return band.only((cap > 0.0) & np.isfinite(unit_j))
