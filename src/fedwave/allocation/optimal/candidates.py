"""The (device, block) pairs that an optimum may need, whatever its delay: few, even of a million devices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.optimal.dominance import roughly_undominated, undominated
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.pairs import PairTable, pair_table
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_floor
from fedwave.units import BoolArray, FloatArray, IntArray


def candidate_pairs(problem: AllocationProblem, *, may_upload: BoolArray | None = None) -> PairTable:
    """Return the pairs left after exact pruning; some optimum of (SP2) uses only these, whatever its delay.

    Left out are devices that cost more than they bring even at the slowest rate, and, on each block,
    devices with M others at least as good in u, h and, where the limits of the devices differ, h p_max
    and h E_max (E_max, if a circuit draws power): see dominance.py. At any SNR of its own that such a device
    may use, each of those M may use it as well, arrives as surely and takes no more energy. With prices a of
    their own h / a takes the place of h, a P_circuit counts by itself if a circuit draws power, and the
    limits always. So do deadlines and circuit powers of their own: see docs/allocation-proofs.md.
    """
    num_blocks = problem.num_blocks
    if num_blocks == 0:
        return pair_table(problem, np.zeros((1, 0), dtype=np.int64))
    fleet = _Fleet.able(problem, may_upload)
    if not problem.is_frequency_selective:
        least_noise = float(problem.block_noise_w.min())
        kept = fleet.needed(problem, problem.channel_gain[fleet.device], least_noise)
        return pair_table(problem, kept[None, :])
    fleet = fleet.by_falling_contribution()  # sorted once, for all blocks
    rows = []
    for block, noise_w in enumerate(problem.block_noise_w):
        gain = problem.channel_gain[:, block].take(fleet.device)  # copies the column first: faster than [ ]
        rows.append(np.sort(fleet.needed(problem, gain, noise_w)))
    width = max((row.size for row in rows), default=0)
    padded = np.zeros((num_blocks, width), dtype=np.int64)
    is_real = np.zeros((num_blocks, width), dtype=bool)
    for block, row in enumerate(rows):
        padded[block, : row.size] = row
        is_real[block, : row.size] = True
    return pair_table(problem, padded, is_real)


def useful_devices(problem: AllocationProblem, may_upload: BoolArray | None) -> IntArray:
    """Return the devices that may bring more than they cost on some block, pruned only roughly."""
    fleet = _Fleet.able(problem, may_upload)
    if problem.is_frequency_selective:
        return fleet.device
    least_noise = float(problem.block_noise_w.min())
    return np.sort(
        fleet.needed(problem, problem.channel_gain[fleet.device], least_noise, prune=roughly_undominated)
    )


@dataclass(frozen=True, eq=False)
class _Fleet:
    """The devices that bring anything and may and can send."""

    device: IntArray
    contribution: FloatArray
    limits: tuple[FloatArray, ...]  # that count times the gain, each only if devices differ
    batteries: tuple[FloatArray, ...]  # limits and minus costs that count as they are, likewise
    price: FloatArray | None = None  # a, where each device has its own
    needs_gain: bool = True  # whether the gain itself counts, besides what it is multiplied with

    @classmethod
    def able(cls, problem: AllocationProblem, may_upload: BoolArray | None) -> _Fleet:
        is_able = (problem.contribution > 0) & (problem.max_power_w > 0)
        if may_upload is not None:
            is_able &= may_upload
        device = np.flatnonzero(is_able)
        limits, batteries = [problem.max_power_w[device]], list[FloatArray]()
        has_circuit = problem.radio.has_circuit
        if problem.max_energy_j is not None:
            # What the circuit draws does not shrink with a better gain, so then E_max itself must be no less.
            (batteries if has_circuit else limits).append(problem.energy_limit_of(device))
        if problem.has_own_deadlines:
            batteries.append(np.asarray(problem.deadline_of(device)))
        contribution = problem.contribution[device]
        circuit_w = np.asarray(problem.circuit_power_of(device))
        if circuit_w.ndim and (not problem.has_prices or problem.max_energy_j is not None):
            batteries.append(-circuit_w)
        if not problem.has_prices:
            return cls(device, contribution, _differing(limits), _differing(batteries))
        price = np.asarray(problem.price_of(device))
        # h / a does not say who has the larger h: so each limit counts even where all have the same.
        kept = tuple(limits if _differing(limits) else limits[:1])
        kappas = () if not has_circuit else (-price * circuit_w if circuit_w.ndim else -price,)
        needs_gain = has_circuit and problem.max_energy_j is not None
        return cls(device, contribution, kept, (*_differing(batteries), *kappas), price, needs_gain)

    def by_falling_contribution(self) -> _Fleet:
        """Return the same devices, sorted; ties go by index."""
        return self._at(np.argsort(-self.contribution, kind="stable"))

    def needed(
        self,
        problem: AllocationProblem,
        gain: FloatArray,
        noise_w: float,
        prune: Callable[[tuple[FloatArray, ...], int], IntArray] = undominated,
    ) -> IntArray:
        """Return the devices that a block with these gains and this noise may need, in the fleet's order."""
        is_worth = gain > 0
        least_energy = problem.nat_delay_s * float(noise_w) * energy_factor(min(snr_floor(problem), 1e300))
        if problem.counts_energy and least_energy < math.inf:  # else nobody is ruled out here
            price = problem.energy_weight if self.price is None else self.price
            least_cost = price * least_energy / problem.radio.amplifier_efficiency
            with np.errstate(over="ignore"):
                # Never drop one for rounding.
                is_worth &= self.contribution * gain > least_cost * (1.0 - 1e-12)
        few, gain = self._at(is_worth), gain[is_worth]
        with np.errstate(over="ignore"):
            gains = (gain,) if few.needs_gain else ()
            if few.price is not None:
                free = np.full(gain.shape, np.inf)
                gains = (*gains, np.divide(gain, few.price, out=free, where=few.price > 0))
            criteria = (few.contribution, *gains, *(gain * limit for limit in few.limits), *few.batteries)
        return np.asarray(few.device[prune(criteria, problem.num_blocks)])

    def _at(self, where: IntArray | BoolArray) -> _Fleet:
        return _Fleet(
            self.device[where],
            self.contribution[where],
            tuple(limit[where] for limit in self.limits),
            tuple(limit[where] for limit in self.batteries),
            None if self.price is None else self.price[where],
            self.needs_gain,
        )


def _differing(limits: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Return the limits that are not the same for all."""
    return tuple(limit for limit in limits if limit.size and limit.min() < limit.max())
