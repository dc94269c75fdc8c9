"""SP1 as a curve: what it costs to have all CPUs done by a given time, and how that cost rises in a hurry.

A device that computes for t = w / nu takes (iota / 2) w^3 / t^2 + P_0 t: convex in t, and least where nu is
nu* = (P_0 / iota)^(1/3). Slower than that costs more energy and more time, so its floor is the larger of
nu_min and nu*, within nu_max. By a time T each device runs at max(w / T, floor), and whoever would be below
its floor is done early. So the energy of each is convex in T, falling until it settles at its floor, and
level from there on; so is the sum. What a cycle takes at any frequency is left out: no time changes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray


def frequency_floor_hz(problem: AllocationProblem) -> FloatArray | None:
    """Return the frequency that no device should go below: nu_min or nu*, within nu_max; None: there is none.

    nu* = (P_0 / iota)^(1/3) is where a cycle takes the least energy; infinite if only time costs energy.
    """
    least = None if problem.min_frequency_hz is None else np.asarray(problem.min_frequency_hz)
    static = np.asarray(problem.static_power_w)
    if not static.any():
        return least
    thrifty: FloatArray = np.where(static > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        ratio = np.divide(static, problem.capacitance, out=thrifty, where=problem.capacitance > 0)
    floor: FloatArray = np.minimum(np.cbrt(ratio), problem.max_frequency_hz)
    return floor if least is None else np.maximum(floor, least)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputeCurve:
    """The weighted energy of computing as a function of the time T by which all are done.

    Devices are sorted by the time w / floor at which they reach their floor; the sums have one entry more
    than there are devices, the k-th for the first k of them being there.
    """

    settles_s: FloatArray  # w / floor, sorted; devices without a floor are left out
    hurried: FloatArray  # eta_1 sum of iota w^3 / unit^3 over the devices that still follow T
    settled: FloatArray  # eta_1 sum of w (iota nu^2 + 2 P_0 / nu) / unit over the devices at their floor nu
    unit: float  # the largest w, so that w^3 cannot overflow
    static: FloatArray | None = None  # eta_1 sum of P_0 over the devices that still follow T; None: no P_0

    @classmethod
    def of(cls, problem: AllocationProblem) -> ComputeCurve:
        """Return the curve of a problem."""
        workload = problem.workload_cycles
        unit = float(workload.max(initial=0.0)) or 1.0
        relative = workload / unit
        price = problem.energy_weight * problem.capacitance * relative
        pull = price * relative**2
        total = float(pull.sum())
        least = frequency_floor_hz(problem)
        if least is None:
            return cls(settles_s=np.zeros(0), hurried=np.array([total]), settled=np.zeros(1), unit=unit)
        has_floor = (least > 0) & (workload > 0)
        settles_s = workload[has_floor] / least[has_floor]
        floor_cost = price[has_floor] * least[has_floor] ** 2
        drain = None
        if np.any(problem.static_power_w):  # who has any has a floor
            drain = (problem.energy_weight * np.asarray(problem.static_power_w))[has_floor]
            floor_cost = floor_cost + 2.0 * drain * relative[has_floor] / least[has_floor]
            # Who does best at its full frequency never follows: it has settled at any time at all.
            follows = least < problem.max_frequency_hz
            pull = np.where(follows, pull, 0.0)
            drain = np.where(follows[has_floor], drain, 0.0)
            settles_s = np.where(follows[has_floor], settles_s, 0.0)
        order = np.argsort(settles_s, kind="stable")
        # Summed from the end, so that nothing is left over by cancellation once all have settled.
        followers = np.cumsum(pull[has_floor][order][::-1])[::-1]
        unsettled = float(pull[~has_floor].sum())
        return cls(
            settles_s=settles_s[order],
            hurried=np.append(followers, 0.0) + unsettled,
            settled=np.append(0.0, np.cumsum(floor_cost[order])),
            unit=unit,
            static=None if drain is None else np.append(np.cumsum(drain[order][::-1])[::-1], 0.0),
        )

    def energy_cost(self, finish_s: float) -> float:
        """Return eta_1 times the energy if all are done by this time, but for what every cycle takes."""
        count = self._num_settled(finish_s)
        pace = self.unit / finish_s
        cost = 0.5 * self.unit * (float(self.hurried[count]) * pace**2 + float(self.settled[count]))
        return cost if self.static is None else cost + float(self.static[count]) * finish_s

    def hurry(self, finish_s: float) -> float:
        """Return how fast that cost falls as T grows: eta_1 sum (iota w^3 / T^3 - P_0) of followers."""
        count = self._num_settled(finish_s)
        hurry = float(self.hurried[count]) * (self.unit / finish_s) ** 3
        # No term is negative: who follows is above nu*. Rounding must not make the sum so.
        return hurry if self.static is None else max(hurry - float(self.static[count]), 0.0)

    def _num_settled(self, finish_s: float) -> int:
        return int(self.settles_s.searchsorted(finish_s)) if self.settles_s.size else 0

    def best_finish_s(self, delay_weight: float) -> float:
        """Return the time at which a second is worth what it saves: (sum eta_1 iota w^3 / c)^(1/3).

        c = eta_2 + sum eta_1 P_0. Both sums run over the devices above their floor there. ``hurry`` never
        rises with T, so the best time is in the first segment at whose end it is no more than eta_2, or where
        that segment begins. 0 if energy is free, infinite if time is and somebody has no floor.
        """
        if self.hurried[0] == 0.0:
            return 0.0
        if delay_weight == 0.0:
            return float(self.settles_s[-1]) if self.hurried[-1] == 0.0 else math.inf
        price = delay_weight if self.static is None else delay_weight + self.static
        wished = self.unit * np.cbrt(self.hurried / price)
        # The first count whose wish comes before the next device settles; before that, a wish that lies
        # left of its own segment means: stop where the last device settled.
        count = int(np.argmax(np.append(wished[:-1] <= self.settles_s, True)))
        start = float(self.settles_s[count - 1]) if count else 0.0
        return max(float(wished[count]), start)
