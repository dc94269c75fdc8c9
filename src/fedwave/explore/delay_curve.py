"""The objective of (P) as a function of the upload delay, a proven bound between, and the steps of IVES.

All of it comes from the allocation's own parts: the best matching at a delay (Theorem 3), what the delay
costs, and the chord that bounds the value between two delays (docs/allocation-proofs.md, "Blocks").
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, allocate
from fedwave.allocation.computing.cpu_frequency import compute_cost, solve_cpu_frequencies
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.allocation.uploads.power import LARGEST_SNR, delay_factor, energy_factor, snr_of_delay
from fedwave.allocation.uploads.snr_range import snr_cap, snr_floor
from fedwave.units import FloatArray

_SMALL_TABLE = 20_000  # pairs; above, fewer delays are tried
_MANY, _FEW = 100, 40
_WIDEST = 1e3  # the curve ends at this multiple of the best delay, however slow the slowest device is


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayCurve:
    """Objectives at rising delays, and a bound for every delay in between."""

    delay_s: FloatArray  # (K,)
    objective: FloatArray  # (K,), of the best matching at exactly this delay
    bound: FloatArray  # (K - 1,): no allocation whose delay lies between two of them is above this


@dataclass(frozen=True, kw_only=True)
class Step:
    """Where IVES stands after an iteration."""

    delay_s: float
    objective: float


class _Curve:
    """F(x) - the cost of computing, and its bound on an interval of SNRs."""

    def __init__(self, problem: AllocationProblem, table: PairTable) -> None:
        self._table = table
        self._known: dict[tuple[float, float], float] = {}
        self._delay = DelayCost.of(problem)
        self._computing = compute_cost(problem, solve_cpu_frequencies(problem).cpu_frequency_hz)

    def objective(self, snr: float) -> float:
        """Return the objective of the best matching at this common SNR."""
        return self._value(snr, snr) - self._delay.at(snr) - self._computing

    def bound(self, low: float, high: float) -> float:
        """Return what no allocation with an SNR in (low, high] exceeds: the best point of a chord.

        Who cannot send at ``low`` cannot at any SNR above, so the pairs with a cap of ``low`` or more hold
        all that matter, and the tangents at ``low`` bound what they are worth.
        """
        factor_low, factor_high = energy_factor(low), energy_factor(high)
        value_low, value_high = self._value(low, low), self._value(low, high)
        width = factor_high - factor_low
        slope = max(value_low - value_high, 0.0) / width if width > 0.0 else 0.0
        best = self._delay.best_snr(slope, smallest=low, largest=high)
        value = value_low - slope * (energy_factor(best) - factor_low)
        return value - self._delay.at(best) - self._computing

    def _value(self, low: float, snr: float) -> float:
        """Return the best matching's value at an SNR, among those who can send at ``low``."""
        if (low, snr) not in self._known:
            factor = energy_factor(snr)
            found = best_matching(self._table.tangent(low), energy_factor=factor, smallest_cap=low)
            self._known[low, snr] = found.value(factor)
        return self._known[low, snr]


def delay_curve(
    problem: AllocationProblem, optimal: Allocation, *, slowest_s: float | None = None
) -> DelayCurve | None:
    """Return the curve around the optimum, at least as far as ``slowest_s``; None if nobody can upload."""
    table = candidate_pairs(problem)
    caps = table.snr_cap
    highest = float(caps.max(initial=0.0))
    if highest <= 0.0:
        return None
    fastest_s = problem.nat_delay_s * delay_factor(highest)
    middle_s = optimal.upload_delay_s if optimal.num_selected else 10.0 * fastest_s
    last_s = min(max(slowest_s or 0.0, 5.0 * middle_s), _WIDEST * middle_s)
    floor = snr_floor(problem)
    if floor > 0.0:
        last_s = min(last_s, problem.nat_delay_s * delay_factor(floor))
    if last_s <= fastest_s:
        return None
    count = _MANY if table.unit_cost.size <= _SMALL_TABLE else _FEW
    delay = np.union1d(np.geomspace(fastest_s, last_s, count), np.clip(middle_s, fastest_s, last_s))
    # From the delay back to its SNR is a rounding away from the caps: they decide who takes part.
    snr = np.array([_snr(problem, one, caps) for one in delay])
    curve = _Curve(problem, table)
    objective = np.array([curve.objective(one) for one in snr])
    bound = np.array([curve.bound(low, high) for high, low in itertools.pairwise(snr)])
    return DelayCurve(delay_s=delay, objective=objective, bound=bound)


def _snr(problem: AllocationProblem, delay_s: float, caps: FloatArray) -> float:
    """Return the SNR of a delay; a cap that it misses by rounding alone is taken for it."""
    snr = min(snr_of_delay(delay_s, nat_delay_s=problem.nat_delay_s), LARGEST_SNR)
    nearest = caps.flat[int(np.argmin(np.abs(caps - snr)))]
    return float(nearest) if math.isclose(nearest, snr, rel_tol=1e-12) else snr


def ives_start_s(problem: AllocationProblem) -> float | None:
    """Return the delay that IVES starts from, Eq. (50): the weakest device on its worst block."""
    weakest = LARGEST_SNR
    device = np.arange(problem.num_devices)
    blocks = np.arange(problem.num_blocks)
    if not problem.is_frequency_selective:
        blocks = blocks[[int(np.argmax(problem.block_noise_w))]]
    for block in blocks:
        cap = snr_cap(problem, device, np.asarray(block))
        weakest = min(weakest, float(cap.min(initial=LARGEST_SNR, where=cap > 0)))
    return None if weakest >= LARGEST_SNR else problem.nat_delay_s * delay_factor(weakest)


def ives_steps(problem: AllocationProblem, *, most: int = 6) -> tuple[Step, ...]:
    """Return where IVES stands after each of its iterations: Alg. 2 as printed, cut off ever later."""
    steps: list[Step] = []
    for count in range(1, most + 1):
        found = allocate(problem, "ives", max_iterations=count, keep_negative=True)
        steps.append(Step(delay_s=found.upload_delay_s, objective=found.objective))
        if found.iterations < count or found.status.value == "converged":
            break
    return tuple(steps)
