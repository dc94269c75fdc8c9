"""Simple rules for the accesses: who uploads by a ranking, everybody as fast as full power allows, one delay.

These are the opponents of the certified optimum. A set of devices is served as a practitioner would:

- over shares all end together at full power, so the weak hold more hertz, as Shi et al. (IEEE TWC 2021) do;
- over whole blocks each has one, and what is left goes to whoever would end last;
- over slots each takes the power that FEDL's formula gives it, or full power where a deadline asks for it.

Then the delay is lengthened as long as the energy saved is worth it, shares and blocks being as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.access.alike import nats_of_model
from fedwave.allocation.access.band import Band, shared_band, slots
from fedwave.allocation.access.block_options import block_options
from fedwave.allocation.access.block_search import BlockSearch
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.nats import LEAST_NATS, energy
from fedwave.allocation.access.solve import finish
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.units import FloatArray, IntArray

_HALVINGS = 100
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_GOLDEN_STEPS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Served:
    """A set of devices with their hertz and seconds, and what the uploads are worth together."""

    device: IntArray
    width_hz: FloatArray
    sending_s: FloatArray
    delay_s: float
    value: float  # of (SP2)


NOBODY = Served(
    device=np.zeros(0, dtype=np.int64), width_hz=np.zeros(0), sending_s=np.zeros(0), delay_s=0.0, value=0.0
)


def serve(problem: AllocationProblem, ranked: IntArray) -> Served:
    """Return these devices served by the rule of the problem's access, the first coming first.

    Who cannot upload within the limits is left out, from the last on where a deadline is too short for all.
    """
    most = problem.num_devices if problem.max_uploads is None else problem.max_uploads
    if problem.access == "blocks":
        most = min(most, problem.num_blocks)
    if problem.num_blocks == 0:
        return NOBODY
    serves = {"blocks": _on_blocks, "shared-band": _in_shares, "tdma": _in_turn}[problem.access]
    return serves(problem, ranked[:most])


def allocation_of(problem: AllocationProblem, served: Served, *, method: str) -> Allocation:
    """Return the allocation of devices that are served; CPU frequencies are those of (SP1)."""
    return finish(
        problem,
        solve_cpu_frequencies(problem),
        device=served.device,
        width_hz=served.width_hz,
        sending_s=served.sending_s,
        delay_s=served.delay_s,
        method=method,
    )


def best_prefix(problem: AllocationProblem, ranked: IntArray, num_sizes: int) -> Served:
    """Return the best of so many prefixes of a ranking; nobody where all are worth less than nothing."""
    sizes = np.unique(np.linspace(1, ranked.size, num_sizes).round().astype(np.int64))
    tried = [serve(problem, ranked[:size]) for size in sizes] if ranked.size else []
    return max([NOBODY, *tried], key=lambda one: one.value)


def equal_split(problem: AllocationProblem, device: IntArray) -> Served:
    """Return these devices with equal shares at full power, or one after another over the whole band."""
    count = min(device.size, problem.num_blocks) if problem.access == "blocks" else device.size
    if count == 0 or problem.num_blocks == 0:
        return NOBODY
    if problem.access == "tdma":
        return _in_turn(problem, device, is_at_full_power=True)
    each = problem.num_blocks // count if problem.access == "blocks" else problem.num_blocks / count
    wide = replace(
        problem,
        access="blocks",
        max_uploads=None,
        bandwidth_hz=problem.bandwidth_hz * each,
        interference_w=problem.interference_w[:1] * each,
    )
    options = block_options(wide, device[:count])
    first_s = options.first_s[:, 0]
    can = np.isfinite(first_s) & (first_s <= DelayPrice.of(problem).deadline_s)
    return Served(
        device=device[:count][can],
        width_hz=np.full(int(can.sum()), wide.bandwidth_hz),
        sending_s=first_s[can],
        delay_s=float(first_s[can].max(initial=0.0)),
        value=0.0,
    )


def _in_shares(problem: AllocationProblem, ranked: IntArray) -> Served:
    band, delay = shared_band(problem, ranked), DelayPrice.of(problem)
    deadline_s = delay.deadline_s
    band = band.only((band.most_nats >= band.least_nats) & (band.first_delay_s() <= deadline_s))
    while band.size:
        first_s = _shortest_s(band, deadline_s)
        if first_s <= deadline_s:
            break
        band = band.only(np.arange(band.size - 1))
    if band.size == 0:
        return NOBODY
    share = 1.0 / band.at(first_s).most_nats
    share = share / share.sum()

    def nats_at(delay_s: float) -> FloatArray:
        moment = band.at(delay_s)
        nats: FloatArray = 1.0 / (share * moment.supply)
        return np.asarray(np.minimum(np.maximum(nats, moment.least_nats), moment.most_nats))

    def value(delay_s: float) -> float:
        cost = band.energy_price * energy(nats_at(delay_s)) + band.circuit_price * delay_s
        return float((band.contribution - cost).sum()) - delay.cost(delay_s)

    last_s = min(deadline_s, 1e3 * first_s)
    best_s = max(_golden(value, first_s, last_s), first_s, key=value)
    area = nats_of_model(problem) / nats_at(best_s)
    return Served(
        device=band.device,
        width_hz=area / best_s,
        sending_s=np.full(band.size, best_s),
        delay_s=best_s,
        value=value(best_s),
    )


def _shortest_s(band: Band, deadline_s: float) -> float:
    """Return the delay after which all are done at full power, ending together; infinite: too late."""

    def fits(delay_s: float) -> bool:
        moment = band.at(delay_s)
        return bool(moment.can.all()) and float((1.0 / moment.most_nats).sum()) <= moment.supply

    low = float(band.first_delay_s().max()) or LEAST_NATS
    high = low
    while not fits(high):
        if high > deadline_s or high > 1e280:
            return math.inf
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
        if high <= low * (1.0 + 1e-14):
            break
    return high


def _on_blocks(problem: AllocationProblem, ranked: IntArray) -> Served:
    options, delay = block_options(problem, ranked), DelayPrice.of(problem)
    alone_s = options.first_s[:, 0]
    counts = (np.isfinite(alone_s) & (alone_s <= delay.deadline_s)).astype(np.int64)
    row = np.flatnonzero(counts)
    for _ in range(problem.num_blocks - int(counts.sum()) if row.size else 0):
        ends_s = options.first_s[row, counts[row] - 1]
        last = int(row[np.argmax(ends_s)])
        if counts[last] == problem.num_blocks or not options.first_s[last, counts[last]] < ends_s.max():
            break
        counts[last] += 1
    search = BlockSearch(options, delay, num_blocks=problem.num_blocks, max_uploads=None)
    best_s = search.best_delay_s(counts, math.nan)
    if best_s is None or row.size == 0:
        return NOBODY
    chosen = options.only(row, counts[row])
    sending_s = chosen.sending_s(best_s)
    return Served(
        device=ranked[row],
        width_hz=counts[row].astype(np.float64) * problem.bandwidth_hz,
        sending_s=sending_s[:, 0],
        delay_s=best_s,
        value=float(chosen.worth(sending_s)[0].sum()) - delay.cost(best_s),
    )


def _in_turn(problem: AllocationProblem, ranked: IntArray, *, is_at_full_power: bool = False) -> Served:
    band, delay = slots(problem, ranked), DelayPrice.of(problem)
    band = band.only(band.most_nats >= band.least_nats)
    if band.size == 0:
        return NOBODY
    priced = band.at(1.0).nats(delay.weight / band.width_per_s)
    nats = band.most_nats if is_at_full_power else priced
    if float((1.0 / nats).sum()) > delay.deadline_s * band.width_per_s:
        nats = band.most_nats
        fits = np.cumsum(1.0 / nats) <= delay.deadline_s * band.width_per_s
        band, nats = band.only(fits), nats[fits]
    delay_s = float((1.0 / nats).sum()) / band.width_per_s
    cost = band.energy_price * energy(nats) + band.hold_price / nats
    area = nats_of_model(problem) / nats
    band_hz = problem.num_blocks * problem.bandwidth_hz
    return Served(
        device=band.device,
        width_hz=np.full(band.size, band_hz),
        sending_s=area / band_hz,
        delay_s=delay_s,
        value=float((band.contribution - cost).sum()) - delay.cost(delay_s),
    )


def _golden(value: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one peak is largest, by golden section on the logarithm."""
    left, right = math.log(low), math.log(high)
    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    at_inner, at_outer = value(math.exp(inner)), value(math.exp(outer))
    for _ in range(_GOLDEN_STEPS):
        if at_inner >= at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = right - _GOLDEN * (right - left)
            at_inner = value(math.exp(inner))
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + _GOLDEN * (right - left)
            at_outer = value(math.exp(outer))
    return math.exp(0.5 * (left + right))
