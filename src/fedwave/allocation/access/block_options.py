"""What a device is worth on k whole blocks at a delay: a table of options, concave in the delay.

On k blocks for t seconds the area is k B t. With a delay of delta a device sends for t = delta, or for as
long as suits its circuit best if that is shorter: so the worth of an option rises with the delay up to there
and stays. The energy is convex in t, hence the worth is concave in the delay, and tangents bound it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
from fedwave.allocation.access.nats import LEAST_NATS, MOST_NATS, energy, nats_of_saving, saving
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import LIMIT_TOLERANCE
from fedwave.allocation.uploads.snr_range import least_affordable_snr, snr_of_energy_limit
from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockOptions:
    """All options, one row per device and one column per number of blocks, from one on."""

    device: IntArray
    contribution: FloatArray  # u, (n, 1)
    energy_price: FloatArray  # eta_1 s N / (h xi), (n, 1)
    circuit_price: FloatArray  # eta_1 P_circuit, (n, 1) [1/s]
    nat_delay_s: FloatArray  # s / (k B), (n, K)
    first_s: FloatArray  # (n, K): the fastest that modem, power and energy allow; infinite: never
    last_s: FloatArray  # (n, K): sending for longer is of no use, or not decoded
    group: IntArray | None = None  # whose offers the rows are, in rising order, at most one being taken

    @cached_property
    def offers(self) -> Groups | None:
        """Return which rows exclude each other, if any do."""
        return None if self.group is None else Groups.of(self.group)

    @property
    def num_blocks(self) -> int:
        """Return K."""
        return int(self.nat_delay_s.shape[1])

    def only(self, row: IntArray, count: IntArray) -> BlockOptions:
        """Return one option of each of some devices, as a table with one column."""
        return BlockOptions(
            device=self.device[row],
            contribution=self.contribution[row],
            energy_price=self.energy_price[row],
            circuit_price=self.circuit_price[row],
            nat_delay_s=self.nat_delay_s[row, count - 1][:, None],
            first_s=self.first_s[row, count - 1][:, None],
            last_s=self.last_s[row, count - 1][:, None],
        )

    def open_ones(self, is_open: BoolArray, row: IntArray, most: int) -> BlockOptions:
        """Return the options that are still open, of some devices on at most so many blocks."""
        return BlockOptions(
            device=self.device[row],
            contribution=self.contribution[row],
            energy_price=self.energy_price[row],
            circuit_price=self.circuit_price[row],
            nat_delay_s=self.nat_delay_s[row, :most],
            first_s=np.where(is_open, self.first_s, np.inf)[row, :most],
            last_s=self.last_s[row, :most],
            group=None if self.group is None else self.group[row],
        )

    def sending_s(self, delay_s: float | FloatArray) -> FloatArray:
        """Return for how long each option sends if all must be done by then."""
        return np.minimum(np.maximum(delay_s, self.first_s), self.last_s)

    def worth(self, sending_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what each option is worth if it sends for so long, and how fast that grows with the time."""
        can = np.isfinite(sending_s)
        time_s = np.where(can, sending_s, self.nat_delay_s)
        nats = np.minimum(np.maximum(self.nat_delay_s / time_s, LEAST_NATS), MOST_NATS)
        worth = self.contribution - self.energy_price * energy(nats) - self.circuit_price * time_s
        slope = self.energy_price * saving(nats) / self.nat_delay_s - self.circuit_price
        slope = np.where(sending_s >= self.last_s, 0.0, np.maximum(slope, 0.0))
        return np.where(can, worth, -np.inf), slope


def block_options(problem: AllocationProblem, device: IntArray) -> BlockOptions:
    """Return the options of these devices on one to M blocks."""
    nats, noise = nats_of_model(problem), noise_w_per_hz(problem)
    counts = np.arange(1, problem.num_blocks + 1)
    nat_delay_s = load_of(problem, device)[:, None] * (nats / problem.bandwidth_hz / counts)
    gain, unit_j = problem.channel_gain[device][:, None], unit_energy_j(problem, device)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        block_w = noise * problem.bandwidth_hz * counts[None, :]
        cap = np.minimum(problem.max_power_w[device][:, None] * gain / block_w, problem.rate.max_snr)
    slow: FloatArray = np.full((1, 1), max(problem.rate.min_snr, problem.min_snr))
    if problem.max_energy_j is not None:
        cap, slow = _within_energy(problem, device, counts, cap, slow)
    can = (cap >= slow * (1.0 - LIMIT_TOLERANCE)) & (cap > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(can, nat_delay_s / np.minimum(np.log1p(cap), MOST_NATS), np.inf)
        last = nat_delay_s / np.broadcast_to(np.log1p(slow), cap.shape)
    if problem.radio.circuit_power_w > 0.0:  # slower, the circuit takes more than the amplifier saves
        with np.errstate(over="ignore", under="ignore"):
            ratio = problem.radio.circuit_power_w * nat_delay_s / unit_j[:, None]
        last = np.minimum(last, nat_delay_s / nats_of_saving(ratio))
    is_heard = np.isfinite(unit_j)
    weight = energy_weight_of(problem, device)
    first = np.where(is_heard[:, None], first, np.inf)
    return BlockOptions(
        device=device,
        contribution=problem.contribution[device][:, None],
        energy_price=(weight * np.where(is_heard, unit_j, 0.0))[:, None],
        circuit_price=(weight * problem.radio.circuit_power_w)[:, None],
        nat_delay_s=nat_delay_s,
        first_s=first,
        last_s=np.maximum(last, first),
    )


def _within_energy(
    problem: AllocationProblem, device: IntArray, counts: IntArray, cap: FloatArray, slow: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the largest and least SNR of each option that keep to the energy limit, too."""
    cap, slow = cap.copy(), np.broadcast_to(slow, cap.shape).copy()
    block = np.zeros(device.shape, dtype=np.int64)
    for k in counts:
        wide = on_blocks(problem, int(k))
        cap[:, k - 1] = np.minimum(cap[:, k - 1], snr_of_energy_limit(wide, device, block))
        slow[:, k - 1] = np.maximum(slow[:, k - 1], least_affordable_snr(wide, device, block))
    return cap, slow
