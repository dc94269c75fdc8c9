"""An allocation in plain values: for JSON, and the objective term by term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedwave.allocation.pareto import ParetoFront
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, account, expected_contribution, weighted
from fedwave.json_values import json_value
from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True)
class ObjectiveTerm:
    """One term of the objective of (P): ``worth`` is what it adds, a cost being negative."""

    name: str
    value: float
    unit: str  # "", "J" or "s"
    weight: float  # 1 for the contribution, eta_1 for energies (a mean of prices), eta_2 for delays
    worth: float


def objective_terms(problem: AllocationProblem, allocation: Allocation) -> tuple[ObjectiveTerm, ...]:
    """Return the terms of U - eta_1 E - eta_2 T, Eq. (30)-(32), recomputed; the worths add up to it."""
    costs = account(problem, allocation)
    problem = problem.taking(allocation.offer_of_device)
    num_uploads, num_devices = allocation.num_selected, problem.num_devices
    contribution = expected_contribution(problem, costs)
    name = "expected contribution of the selected" if problem.has_risks else "contribution of the selected"
    priced = (
        _energy_term(problem, f"energy, computing (all {num_devices} devices)", costs.compute_energy_j),
        _energy_term(problem, f"energy, upload ({num_uploads} of {num_devices})", costs.upload_energy_j),
        _delay_term(problem, "delay, computing", costs.compute_delay_s),
        _delay_term(problem, "delay, upload", costs.upload_end_s),
    )
    return (ObjectiveTerm(name=name, value=contribution, unit="", weight=1.0, worth=contribution), *priced)


def _energy_term(problem: AllocationProblem, name: str, energy_j: FloatArray) -> ObjectiveTerm:
    """Return what the joules cost; with prices, the weight is what a joule cost on average."""
    value, cost = float(energy_j.sum()), problem.energy_cost(energy_j)
    weight = problem.energy_weight
    if isinstance(weight, np.ndarray):
        weight = cost / value if value else 0.0
    return ObjectiveTerm(name=name, value=value, unit="J", weight=weight, worth=-cost)


def _delay_term(problem: AllocationProblem, name: str, delay_s: FloatArray) -> ObjectiveTerm:
    value, weight = float(delay_s.max(initial=0.0)), problem.delay_weight
    return ObjectiveTerm(name=name, value=value, unit="s", weight=weight, worth=-weighted(weight, value))


def describe(problem: AllocationProblem, allocation: Allocation) -> dict[str, Any]:
    """Return an allocation as plain values for JSON; numbers that are not finite become None."""
    costs = account(problem, allocation)
    values: dict[str, Any] = {
        "method": allocation.method,
        "status": allocation.status.value,
        "reason": allocation.reason,
        "objective": allocation.objective,
        "upper_bound": allocation.upper_bound,
        "gap": allocation.gap,
        "contribution": allocation.contribution,
        "energy_j": allocation.energy_j,
        "compute_delay_s": allocation.compute_delay_s,
        "upload_delay_s": allocation.upload_delay_s,
        "iterations": allocation.iterations,
        "block_of_device": allocation.block_of_device,
        "transmit_power_w": allocation.transmit_power_w,
        "cpu_frequency_hz": allocation.cpu_frequency_hz,
        "device_sinr_db": costs.sinr_db,
        "device_margin_db": costs.margin_db,
        "device_rate_bps": costs.rate_bps,
        "device_upload_delay_s": costs.upload_delay_s,
        "device_upload_energy_j": costs.upload_energy_j,
        "device_compute_energy_j": costs.compute_energy_j,
        "device_success_probability": costs.success_probability,
        "trace": allocation.trace,
    }
    if allocation.bandwidth_of_device_hz is not None:
        values["access"] = problem.access
        values["bandwidth_of_device_hz"] = allocation.bandwidth_of_device_hz
        values["device_upload_start_s"] = costs.upload_start_s
        values["device_upload_end_s"] = costs.upload_end_s
    if problem.has_own_bits:
        taken = problem.taking(allocation.offer_of_device)
        values["offer_of_device"] = allocation.offer_of_device
        bits = taken.bits_of(np.arange(problem.num_devices))
        values["device_upload_bits"] = np.where(costs.is_selected, bits, 0.0)
    plain: dict[str, Any] = json_value(values)
    return plain


def describe_front(front: ParetoFront) -> dict[str, list[Any]]:
    """Return a Pareto front as plain values for JSON, one entry per pair of weights."""
    names = ("energy_weight", "delay_weight", "energy_j", "delay_s", "contribution", "num_selected")
    return {name: json_value(getattr(front, name)) for name in names}
