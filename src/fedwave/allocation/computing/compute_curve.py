"""SP1 as a curve: what it costs to have all CPUs done by a given time, and how that cost rises in a hurry.

By a time T each device runs at max(w / T, nu_min): slower is cheaper, and whoever would be below its least
frequency is done early. So the energy is (1/2) sum iota w max(w / T, nu_min)^2, convex and falling in T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputeCurve:
    """The weighted energy of computing as a function of the time T by which all are done.

    Devices are sorted by the time w / nu_min at which they reach their least frequency; the sums have one
    entry more than there are devices, the k-th for the first k of them being at that frequency.
    """

    settles_s: FloatArray  # w / nu_min, sorted; devices without a least frequency are left out
    hurried: FloatArray  # eta_1 sum of iota w^3 / unit^3 over the devices that still follow T
    settled: FloatArray  # eta_1 sum of iota w nu_min^2 / unit over the devices at their least frequency
    unit: float  # the largest w, so that w^3 cannot overflow

    @classmethod
    def of(cls, problem: AllocationProblem) -> ComputeCurve:
        """Return the curve of a problem."""
        workload = problem.workload_cycles
        unit = float(workload.max(initial=0.0)) or 1.0
        relative = workload / unit
        price = problem.energy_weight * problem.capacitance * relative
        pull = price * relative**2
        total = float(pull.sum())
        if problem.min_frequency_hz is None:
            return cls(settles_s=np.zeros(0), hurried=np.array([total]), settled=np.zeros(1), unit=unit)
        least = np.asarray(problem.min_frequency_hz)
        has_floor = (least > 0) & (workload > 0)
        settles_s = workload[has_floor] / least[has_floor]
        order = np.argsort(settles_s, kind="stable")
        floor_cost = price[has_floor] * least[has_floor] ** 2
        # Summed from the end, so that nothing is left over by cancellation once all have settled.
        followers = np.cumsum(pull[has_floor][order][::-1])[::-1]
        unsettled = float(pull[~has_floor].sum())
        return cls(
            settles_s=settles_s[order],
            hurried=np.append(followers, 0.0) + unsettled,
            settled=np.append(0.0, np.cumsum(floor_cost[order])),
            unit=unit,
        )

    def energy_cost(self, finish_s: float) -> float:
        """Return eta_1 times the energy if all are done by this time."""
        count = self._num_settled(finish_s)
        pace = self.unit / finish_s
        return 0.5 * self.unit * (float(self.hurried[count]) * pace**2 + float(self.settled[count]))

    def hurry(self, finish_s: float) -> float:
        """Return how fast that cost falls as T grows: eta_1 sum iota w^3 / T^3 over those that follow."""
        pace = self.unit / finish_s
        return float(self.hurried[self._num_settled(finish_s)]) * pace**3

    def _num_settled(self, finish_s: float) -> int:
        return int(self.settles_s.searchsorted(finish_s)) if self.settles_s.size else 0

    def best_finish_s(self, delay_weight: float) -> float:
        """Return the time at which a second is worth what it saves: (eta_1 sum iota w^3 / eta_2)^(1/3).

        The sum runs over the devices above their least frequency there, so it is found by bisection over
        the sorted times at which devices reach theirs. 0 if energy is free, infinite if time is.
        """
        if self.hurried[0] == 0.0:
            return 0.0
        if delay_weight == 0.0:
            return float(self.settles_s[-1]) if self.hurried[-1] == 0.0 else math.inf
        wished = self.unit * np.cbrt(self.hurried / delay_weight)  # falls as more devices settle
        # The first count whose wish comes before the next device settles; before that, a wish that lies
        # left of its own segment means: stop where the last device settled.
        count = int(np.argmax(np.append(wished[:-1] <= self.settles_s, True)))
        start = float(self.settles_s[count - 1]) if count else 0.0
        return max(float(wished[count]), start)
