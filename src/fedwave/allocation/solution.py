"""What a solver returns, and the same numbers recomputed from the definitions alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import LIMIT_TOLERANCE, exceeds
from fedwave.errors import ProblemError, require_type, shown
from fedwave.shown_facts import ShownFacts
from fedwave.units import BoolArray, FloatArray, IntArray, linear_to_db
from fedwave.wireless.delivery import success_probability
from fedwave.wireless.link import compute_delay_s, compute_energy_j, rate_bps_at, upload_delay_s


class Status(Enum):
    """How a solver ended. ``Allocation.reason`` says more where there is more to say."""

    OPTIMAL = "optimal"  # proven, up to rounding
    GAP_REACHED = "gap reached"  # proven within the relative gap asked for
    LIMIT = "limit"  # stopped at the limit of matchings or iterations; the proven gap is in ``gap``
    CONVERGED = "converged"  # a fixed point, e.g. of IVES; nothing is proven
    FEASIBLE = "feasible"  # a heuristic's answer that meets every constraint
    LOST = "uploads lost"  # a heuristic's answer, some of it lost to what it does not plan for
    INFEASIBLE = "infeasible"  # a hard limit cannot be met; the devices concerned do not upload


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Allocation(ShownFacts):
    """Decisions for one round, their cost, and how sure we are of them."""

    method: str
    block_of_device: IntArray  # (n,), -1 = no block; one entry a device, Eq. (26)
    transmit_power_w: FloatArray  # (n,)
    cpu_frequency_hz: FloatArray  # (n,)
    contribution: float  # U, Eq. (32); with packet errors, what arrives on average
    energy_j: float  # E, Eq. (30): all devices' computing and the selected devices' upload
    compute_delay_s: float  # first term of T, Eq. (31)
    upload_delay_s: float  # second term of T, Eq. (31)
    objective: float  # U - eta_1 E - eta_2 T, problem (P)
    status: Status
    reason: str = ""
    iterations: int = 0  # matchings solved
    upper_bound: float = math.inf  # no feasible point of (P) is better; infinite if nothing is proven
    trace: FloatArray = field(default_factory=lambda: np.zeros(0))  # objective of (P) after each iteration
    account: DeviceCosts | None = None  # each device's share, as counted when it was made; None: by hand
    bandwidth_of_device_hz: FloatArray | None = None  # (n,), what each holds from its block on; None: B each
    offer_of_device: IntArray | None = None  # (n,), 0: the first, -1: no upload; None: one offer each

    @property
    def selected(self) -> IntArray:
        """Return the sorted indices of the devices that upload."""
        return np.flatnonzero(self.block_of_device >= 0)

    @property
    def num_selected(self) -> int:
        """Return how many devices upload."""
        return int(np.count_nonzero(self.block_of_device >= 0))

    @property
    def device_of_block(self) -> dict[int, int]:
        """Return the device on each block in use, in the order of the blocks."""
        device = self.selected
        block = self.block_of_device[device]
        return {int(block[k]): int(device[k]) for k in np.argsort(block)}

    @property
    def delay_s(self) -> float:
        """Return the round's wall-clock time T, Eq. (31)."""
        return self.compute_delay_s + self.upload_delay_s

    @property
    def gap(self) -> float:
        """Return (upper_bound - objective) / |objective|; infinite if nothing is proven."""
        if self.upper_bound <= self.objective:
            return 0.0
        return (self.upper_bound - self.objective) / abs(self.objective) if self.objective else math.inf

    def _facts(self) -> dict[str, object]:
        """Return what is shown of it: sums over the round, not the arrays."""
        proven = f"{self.gap:.2g}" if math.isfinite(self.upper_bound) else "not proven"
        return {
            "method": self.method,
            "status": self.status.value,
            "uploads": f"{self.num_selected} of {len(self.block_of_device)} devices",
            "objective": self.objective,
            "gap": proven,
            "contribution": self.contribution,
            "energy_j": self.energy_j,
            "delay_s": self.delay_s,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceCosts:
    """Each device's share of the round, (n,) arrays; the sums and maxima of Eq. (30)-(32) come from these."""

    compute_energy_j: FloatArray
    compute_delay_s: FloatArray
    upload_energy_j: FloatArray  # 0 without a block
    upload_delay_s: FloatArray  # 0 without a block
    upload_start_s: FloatArray  # after all have computed; 0 unless they take turns, in the order of indices
    is_selected: BoolArray
    success_probability: FloatArray  # that the upload arrives; 0 without a block, in an outage or if late
    sinr: FloatArray  # p h / (I + B N0), linear; NaN without a block
    rate_bps: FloatArray  # Eq. (25); NaN without a block
    required_sinr: float  # below it nothing arrives: threshold with margin, or the modem's floor; 0: none

    @property
    def energy_j(self) -> FloatArray:
        """Return what the round drains from each battery: computing and upload."""
        return self.compute_energy_j + self.upload_energy_j

    @property
    def sinr_db(self) -> FloatArray:
        """Return each upload's SINR in dB; NaN without a block."""
        return linear_to_db(self.sinr)

    @property
    def margin_db(self) -> FloatArray:
        """Return how far each upload is above what it needs, in dB; infinite without a threshold."""
        return self.sinr_db - linear_to_db(self.required_sinr)

    @property
    def upload_end_s(self) -> FloatArray:
        """Return when each upload is done, counted from the first one's start."""
        return self.upload_start_s + self.upload_delay_s


def account(problem: AllocationProblem, allocation: Allocation) -> DeviceCosts:
    """Return each device's energies and delays, Eq. (23)-(29), from the decisions alone."""
    found = misfits(problem, allocation)
    if found:
        raise ProblemError(
            f"The allocation is of another problem: {found[0]}. Give the problem that it solves."
        )
    return _account(
        problem.taking(allocation.offer_of_device),
        allocation.block_of_device,
        allocation.transmit_power_w,
        allocation.cpu_frequency_hz,
        allocation.bandwidth_of_device_hz,
    )


def misfits(problem: AllocationProblem, allocation: Allocation) -> tuple[str, ...]:
    """Return why the decisions cannot be of this problem: their shapes, type or blocks; empty if none."""
    require_type(problem, AllocationProblem, name="problem", fix="The problem comes first.")
    require_type(allocation, Allocation, name="allocation", fix="Give what allocate(problem) returned.")
    found = []
    for name in ("block_of_device", "transmit_power_w", "cpu_frequency_hz"):
        shape = np.shape(getattr(allocation, name))
        if shape != (problem.num_devices,):
            found.append(f"{name} has the shape {shape}, but there are {problem.num_devices} devices")
    width = allocation.bandwidth_of_device_hz
    if (width is None) != (problem.access == "one-block"):
        held = "none is given" if width is None else "shares are given"
        found.append(f'the access is "{problem.access}", but {held} in bandwidth_of_device_hz')
    elif width is not None and np.shape(width) != (problem.num_devices,):
        found.append(
            f"bandwidth_of_device_hz has the shape {np.shape(width)}, but there are "
            f"{problem.num_devices} devices"
        )
    block = np.asarray(allocation.block_of_device)
    if not np.issubdtype(block.dtype, np.integer):
        found.append(f"block_of_device must hold whole numbers, got {block.dtype}")
    elif block.shape == (problem.num_devices,):
        for device in np.flatnonzero((block < -1) | (block >= problem.num_blocks)):
            found.append(f"device {device} has block {block[device]}, outside -1..{problem.num_blocks - 1}")
    found.extend(_wrong_offers(problem, allocation.offer_of_device, block >= 0))
    return tuple(found)


def _wrong_offers(problem: AllocationProblem, offer: IntArray | None, uploads: BoolArray) -> list[str]:
    """Return why these cannot be the offers that are taken."""
    if (offer is None) == problem.has_offers:
        held = "none is given" if offer is None else "some are given"
        return [f"the problem has {'' if problem.has_offers else 'no '}offers, but {held} in offer_of_device"]
    if offer is None or problem.offer_bits is None:
        return []
    if np.shape(offer) != (problem.num_devices,) or not np.issubdtype(np.asarray(offer).dtype, np.integer):
        return [f"offer_of_device must be one whole number for each device, got {shown(offer)}"]
    last = problem.offer_bits.shape[1]
    wrong = (offer < -1) | (offer > last)
    if uploads.shape == offer.shape:
        wrong |= uploads & (offer < 0)
    return [f"device {i} takes offer {offer[i]}, outside 0..{last}" for i in np.flatnonzero(wrong)]


def total_cost(problem: AllocationProblem, allocation: Allocation) -> float:
    """Return U - eta_1 E - eta_2 T, problem (P), recomputed from the decisions by Eq. (23)-(32)."""
    costs = account(problem, allocation)
    problem = problem.taking(allocation.offer_of_device)
    return net_worth(problem, costs, expected_contribution(problem, costs))


def net_worth(problem: AllocationProblem, costs: DeviceCosts, contribution: float) -> float:
    """Return U - eta_1 E - eta_2 T of an account and of the contribution U that it buys, problem (P)."""
    if problem.has_prices:
        energy_cost = problem.energy_cost(costs.compute_energy_j + costs.upload_energy_j)
    else:
        energy = float(costs.compute_energy_j.sum() + costs.upload_energy_j.sum())
        energy_cost = weighted(float(problem.energy_weight), energy)
    delay = _maximum(costs.compute_delay_s) + _maximum(costs.upload_end_s)
    return contribution - energy_cost - weighted(problem.delay_weight, delay)


def expected_contribution(problem: AllocationProblem, costs: DeviceCosts) -> float:
    """Return U, Eq. (32): the sum over the selected, each times the probability that its upload arrives."""
    contribution = problem.contribution[costs.is_selected]
    if problem.has_risks:
        contribution = contribution * costs.success_probability[costs.is_selected]
    return float(contribution.sum())


def weighted(weight: float, value: float) -> float:
    """Return weight times value; a weight of 0 ignores even an endless delay."""
    return weight * value if weight else 0.0


def build_allocation(
    problem: AllocationProblem,
    *,
    method: str,
    device: IntArray,
    block: IntArray,
    power_w: FloatArray,
    cpu_frequency_hz: FloatArray,
    status: Status,
    reason: str = "",
    iterations: int = 0,
    upload_upper_bound: float = math.inf,
    free_compute_cost: float | None = None,
    trace: FloatArray | None = None,
    bandwidth_hz: FloatArray | None = None,
) -> Allocation:
    """Return the allocation of the given (device, block, power) triples, its cost taken from the definitions.

    ``upload_upper_bound`` and ``trace`` are values of (SP2); the cost of computing, (SP1), is taken off
    here, or ``free_compute_cost``, if they count what hurries the CPUs themselves. ``bandwidth_hz`` is what
    each holds, in other accesses than one-block.
    """
    block_of_device = np.full(problem.num_devices, -1, dtype=np.int64)
    block_of_device[device] = block
    transmit_power_w = np.zeros(problem.num_devices)
    transmit_power_w[device] = power_w
    width = None
    if bandwidth_hz is not None:
        width = np.zeros(problem.num_devices)
        width[device] = bandwidth_hz
    costs = _account(problem, block_of_device, transmit_power_w, cpu_frequency_hz, width)
    compute_energy, compute_delay = float(costs.compute_energy_j.sum()), _maximum(costs.compute_delay_s)
    upload_energy, upload_delay = float(costs.upload_energy_j.sum()), _maximum(costs.upload_end_s)
    contribution = float(problem.contribution[device].sum())
    if problem.has_risks:
        contribution = expected_contribution(problem, costs)
    delay_weight = problem.delay_weight
    compute_cost = problem.energy_cost(costs.compute_energy_j) + weighted(delay_weight, compute_delay)
    upload_cost = problem.energy_cost(costs.upload_energy_j) + weighted(delay_weight, upload_delay)
    objective = contribution - upload_cost - compute_cost
    free_cost = compute_cost if free_compute_cost is None else free_compute_cost
    upper_bound = objective if compute_cost == math.inf else upload_upper_bound - free_cost
    return Allocation(
        method=method,
        block_of_device=block_of_device,
        transmit_power_w=transmit_power_w,
        cpu_frequency_hz=cpu_frequency_hz,
        contribution=contribution,
        energy_j=compute_energy + upload_energy,
        compute_delay_s=compute_delay,
        upload_delay_s=upload_delay,
        objective=objective,
        status=status,
        reason=reason,
        iterations=iterations,
        upper_bound=max(upper_bound, objective),
        trace=np.zeros(0) if trace is None else trace - free_cost,
        account=costs,
        bandwidth_of_device_hz=width,
    )


def _account(
    problem: AllocationProblem,
    block_of_device: IntArray,
    power_w: FloatArray,
    frequency_hz: FloatArray,
    width_hz: FloatArray | None = None,
) -> DeviceCosts:
    is_selected = block_of_device >= 0
    device = np.flatnonzero(is_selected)
    block = block_of_device[device]
    upload_delay = np.zeros(problem.num_devices)
    upload_start = np.zeros(problem.num_devices)
    upload_energy = np.zeros(problem.num_devices)
    sinr, rate = np.full((2, problem.num_devices), np.nan)
    sinr[device] = snr = upload_snr(problem, device, block, power_w[device], width_hz)
    rate[device] = upload_bps = _rate_bps(problem, device, snr, width_hz)
    upload_delay[device] = upload_delay_s(upload_bps, model_bits=problem.bits_of(device))
    if problem.access == "tdma":
        upload_start[device] = np.cumsum(upload_delay[device]) - upload_delay[device]
    sends = device[power_w[device] > 0]  # without power there is no energy, however long it lasts
    upload_energy[sends] = problem.upload_energy_j(sends, power_w[sends], upload_delay[sends])
    compute_delay = compute_delay_s(frequency_hz, workload_cycles=problem.workload_cycles)
    return DeviceCosts(
        compute_energy_j=compute_energy_j(
            frequency_hz,
            workload_cycles=problem.workload_cycles,
            capacitance=problem.capacitance,
            static_power_w=problem.static_power_w,
            joules_per_cycle=problem.joules_per_cycle,
        ),
        compute_delay_s=compute_delay,
        upload_energy_j=upload_energy,
        upload_delay_s=upload_delay,
        upload_start_s=upload_start,
        is_selected=is_selected,
        success_probability=_success(
            problem,
            sinr,
            is_selected,
            compute_s=_maximum(compute_delay),
            upload_s=upload_start + upload_delay,
        ),
        sinr=sinr,
        rate_bps=rate,
        required_sinr=max(problem.min_snr, problem.rate.min_snr),
    )


def upload_snr(
    problem: AllocationProblem,
    device: IntArray,
    block: IntArray,
    power_w: FloatArray,
    width_hz: FloatArray | None,
) -> FloatArray:
    """Return the SNR of each upload; over a share b of the band p h / (b N), N being the noise per hertz."""
    if width_hz is None:
        return problem.snr_of(device, block, power_w)
    held = np.asarray(width_hz)[device]
    share = np.divide(problem.bandwidth_hz, held, out=np.zeros(held.shape), where=held > 0.0)
    return problem.snr_of(device, block, power_w) * share


def upload_rate_bps(
    problem: AllocationProblem,
    device: IntArray,
    block: IntArray,
    power_w: FloatArray,
    width_hz: FloatArray | None,
) -> FloatArray:
    """Return the rate of each upload, Eq. (25); over a share b of the band b log2(1 + p h / (b N))."""
    return _rate_bps(problem, device, upload_snr(problem, device, block, power_w, width_hz), width_hz)


def _rate_bps(
    problem: AllocationProblem, device: IntArray, snr: FloatArray, width_hz: FloatArray | None
) -> FloatArray:
    if width_hz is None:
        return rate_bps_at(snr, bandwidth_hz=problem.bandwidth_hz, rate_model=problem.rate)
    return np.asarray(width_hz)[device] * problem.rate.spectral_efficiency(snr)


def _success(
    problem: AllocationProblem,
    sinr: FloatArray,
    is_selected: BoolArray,
    *,
    compute_s: float,
    upload_s: FloatArray,
) -> FloatArray:
    """Return with what probability each device's upload arrives: never in an outage or after the round."""
    if not problem.has_risks:
        return (sinr >= 0.0).astype(np.float64)
    success = np.zeros(problem.num_devices)
    device = np.flatnonzero(is_selected)
    snr = sinr[device]
    arrives = snr >= problem.min_snr * (1.0 - LIMIT_TOLERANCE)
    if problem.max_round_delay_s is not None:
        end_s = compute_s + problem.fixed_delay_s + upload_s[device]
        arrives &= ~exceeds(end_s, problem.max_round_delay_s)
    success[device] = np.where(arrives, success_probability(snr, waterfall=problem.waterfall), 0.0)
    return success


def _maximum(values: FloatArray) -> float:
    return float(values.max()) if values.size else 0.0
