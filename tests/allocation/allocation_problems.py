"""Allocation problems for the tests: Table III, small hand-made ones, random ones, hypothesis strategies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fedwave.allocation import AllocationProblem
from fedwave.wireless.rate import RadioPower, RateModel

FEATURES = (
    "circuit",
    "errors",
    "outage",
    "rate",
    "round",
    "energy",
    "floors",
    "delay",
    "static",
    "prices",
)
ALL_FEATURES = (*FEATURES, "own_delay", "own_circuit")  # also those of each device's own


def paper_problem(
    seed: int, *, num_devices: int = 100, num_blocks: int = 20, exponential: bool = False, **changes: Any
) -> AllocationProblem:
    """Return a draw of Table III with u ~ U(0, 10), or Exp(10)."""
    rng = np.random.default_rng(seed)
    n = num_devices
    values: dict[str, Any] = {
        "contribution": rng.exponential(10, n) if exponential else rng.uniform(0, 10, n),
        "channel_gain": rng.uniform(0.1, 1, n),
        "interference_w": rng.uniform(0, 0.8, num_blocks),
        "max_power_w": rng.uniform(0, 1, n),
        "workload_cycles": rng.uniform(0, 0.25, n) * rng.integers(2, 20, n),
        "max_frequency_hz": rng.uniform(0, 2, n),
        "capacitance": rng.uniform(0, 1, n),
        "model_bits": 1,
        "bandwidth_hz": 1,
        "noise_psd_w_per_hz": 1,
        "energy_weight": 1,
        "delay_weight": 1,
    }
    return AllocationProblem(**(values | changes))


def small_problem(**changes: Any) -> AllocationProblem:
    """Return three devices and two blocks in round numbers."""
    values: dict[str, Any] = {
        "contribution": [5.0, 3.0, 4.0],
        "channel_gain": [1.0, 0.5, 0.25],
        "interference_w": [0.0, 1.0],
        "max_power_w": [1.0, 2.0, 3.0],
        "workload_cycles": [1.0, 2.0, 0.5],
        "max_frequency_hz": [2.0, 1.0, 1.5],
        "capacitance": [0.5, 1.0, 0.25],
        "model_bits": 1.0,
        "bandwidth_hz": 1.0,
        "noise_psd_w_per_hz": 1.0,
        "energy_weight": 0.25,
        "delay_weight": 0.5,
    }
    return AllocationProblem(**(values | changes))


def link_terms(rng: np.random.Generator, features: Collection[str], num_devices: int) -> dict[str, Any]:
    """Return terms of the link that matter at SNRs around 1, one or two for each feature."""

    def scale(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    terms: dict[str, Any] = {}
    if "circuit" in features:
        efficiency = float(rng.uniform(0.2, 1))
        terms["radio"] = RadioPower(amplifier_efficiency=efficiency, circuit_power_w=scale(-2, 1))
    if "errors" in features:
        terms["packet_error_waterfall"] = scale(-2, 1)
    if "outage" in features:
        terms["min_snr"] = scale(-1.5, 0.7)
    if "rate" in features:
        terms["rate"] = RateModel(
            efficiency=float(rng.uniform(0.3, 1)),
            max_spectral_efficiency=float(rng.uniform(0.3, 3)) if rng.random() < 0.7 else None,
            min_snr=float(rng.choice([0.0, 0.05, 0.1])),
        )
    if "round" in features:
        terms["max_round_delay_s"] = scale(0.1, 1.5)
        terms["fixed_delay_s"] = float(rng.choice([0.0, 0.5]))
    if "energy" in features:
        terms["max_energy_j"] = rng.uniform(0.5, 6, num_devices) * (1 if rng.random() < 0.5 else 2)
    if "floors" in features:
        terms["min_frequency_hz"] = rng.uniform(0, 0.8, num_devices) * (rng.random(num_devices) > 0.3)
    if "delay" in features:
        terms["max_delay_s"] = scale(-0.3, 1.3)
    if "own_delay" in features:
        own_s = 10.0 ** rng.uniform(-0.3, 1.3, num_devices)
        terms["max_delay_s"] = np.where(rng.random(num_devices) < 0.2, np.inf, own_s)
    if "own_circuit" in features:
        circuit_w = 10.0 ** rng.uniform(-2, 1, num_devices) * (rng.random(num_devices) > 0.2)
        efficiency = float(rng.uniform(0.2, 1))
        terms["radio"] = RadioPower(amplifier_efficiency=efficiency, circuit_power_w=circuit_w)
    if "static" in features:
        terms["static_power_w"] = 10.0 ** rng.uniform(-2, 1, num_devices) * (rng.random(num_devices) > 0.3)
        terms["joules_per_cycle"] = float(rng.choice([0.0, 0.2]))
    return terms


def link_problem(
    rng: np.random.Generator, features: Collection[str], *, max_devices: int = 3, max_blocks: int = 2
) -> AllocationProblem:
    """Return a small problem with the given features of the link, at SNRs around 1."""
    n, num_blocks = int(rng.integers(1, max_devices + 1)), int(rng.integers(1, max_blocks + 1))
    is_free = "round" in features and rng.random() < 0.15
    return AllocationProblem(
        contribution=rng.uniform(-1, 10, n) if rng.random() < 0.5 else rng.uniform(5, 40, n),
        channel_gain=rng.uniform(0.1, 2, (n, num_blocks) if rng.random() < 0.4 else n),
        interference_w=rng.uniform(0, 0.8, num_blocks),
        max_power_w=rng.uniform(0.1, 6, n),
        workload_cycles=rng.uniform(0, 2, n) * (rng.random(n) > 0.2),
        max_frequency_hz=rng.uniform(0.8, 2, n),
        capacitance=rng.uniform(0, 1, n),
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=prices(rng, n)
        if "prices" in features
        else float(rng.choice([0.0, 0.05, 0.3, 1.0, 1.0])),
        delay_weight=0.0 if is_free else float(rng.choice([0.01, 0.1, 1.0])),
        **link_terms(rng, features, n),
    )


def prices(rng: np.random.Generator, num_devices: int) -> np.ndarray:
    """Return a price of each device's joules, over four decades; some are free."""
    return 10.0 ** rng.uniform(-3, 1, num_devices) * (rng.random(num_devices) > 0.15)


UNITS = ("contribution", "energy", "time", "bits", "cycles", "received")


def in_other_units(problem: AllocationProblem, **per_unit: float) -> AllocationProblem:
    """Return the same problem with its numbers in other units: each is multiplied by the factor of its unit.

    ``received`` is the unit of power at the base station, so that gains and noise may have any size. The
    objective is multiplied by the factor of contributions; blocks, SNRs and shares are the same.
    """
    of = dict.fromkeys(UNITS, 1.0) | per_unit
    worth, joule, second, bit, cycle, received = (of[name] for name in UNITS)
    watt, hertz = joule / second, bit / second
    units = {
        "contribution": worth,
        "channel_gain": received / watt,
        "interference_w": received,
        "max_power_w": watt,
        "workload_cycles": cycle,
        "max_frequency_hz": cycle / second,
        "min_frequency_hz": cycle / second,
        "capacitance": joule / cycle / (cycle / second) ** 2,
        "static_power_w": watt,
        "joules_per_cycle": joule / cycle,
        "model_bits": bit,
        "bandwidth_hz": hertz,
        "noise_psd_w_per_hz": received / hertz,
        "energy_weight": worth / joule,
        "delay_weight": worth / second,
        "max_delay_s": second,
        "max_compute_delay_s": second,
        "max_round_delay_s": second,
        "fixed_delay_s": second,
        "max_energy_j": joule,
    }
    values = {name: getattr(problem, name) for name in units}
    changed = {name: value * units[name] for name, value in values.items() if value is not None}
    radio = replace(problem.radio, circuit_power_w=problem.radio.circuit_power_w * watt)
    return replace(problem, **changed, radio=radio)


def at_other_snr(problem: AllocationProblem, factor: float) -> AllocationProblem:
    """Return a problem much like this one, whose SNRs are larger by the factor.

    Below 0 dB the delay is about s / x, so the model shrinks with the SNR and everything costs about as much.
    """
    scaled, faint = problem.rate, min(factor, 1.0)
    if scaled.max_spectral_efficiency is not None:
        cap = scaled.max_spectral_efficiency * faint
        scaled = replace(scaled, max_spectral_efficiency=cap, min_snr=0.0)
    waterfall = problem.packet_error_waterfall
    return replace(
        problem,
        channel_gain=problem.channel_gain * factor,
        model_bits=problem.model_bits * faint,
        rate=replace(scaled, min_snr=min(problem.rate.min_snr * factor, 0.9 * scaled.max_snr)),
        min_snr=problem.min_snr * factor,
        packet_error_waterfall=None if waterfall is None else waterfall * factor,
    )


def random_problem(seed: int) -> AllocationProblem:
    """Return a problem of up to eight devices and four blocks, each feature of the link by chance."""
    rng = np.random.default_rng(seed)
    features = [name for name in ALL_FEATURES if rng.random() < 0.3]
    return link_problem(rng, features, max_devices=8, max_blocks=4)


@st.composite
def problems(draw: st.DrawFn, *, max_devices: int = 4, max_blocks: int = 3) -> AllocationProblem:
    """Draw problems with zeros, ties and scales from 1e-20 to 1e3 W, gains down to 1e-15."""

    def quantity(low: float, high: float, *, may_be_zero: bool = True) -> st.SearchStrategy[float]:
        nice = st.sampled_from([0.5, 1.0, 2.0])
        wide = st.floats(low, high).map(lambda exponent: 10.0**exponent)
        return st.one_of(nice, wide, st.just(0.0)) if may_be_zero else st.one_of(nice, wide)

    n, num_blocks = draw(st.integers(1, max_devices)), draw(st.integers(1, max_blocks))
    gains = st.lists(quantity(-15, 1), min_size=n, max_size=n)
    if draw(st.booleans()):
        gain = np.array([draw(gains) for _ in range(num_blocks)]).T
    else:
        gain = np.array(draw(gains))

    def per_device(strategy: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(strategy, min_size=n, max_size=n))

    contribution = st.one_of(quantity(-3, 4), st.floats(-10, 0).map(lambda value: round(value, 3)))
    return AllocationProblem(
        contribution=per_device(contribution),
        channel_gain=gain,
        interference_w=draw(st.lists(quantity(-20, 3), min_size=num_blocks, max_size=num_blocks)),
        max_power_w=per_device(quantity(-20, 3)),
        workload_cycles=per_device(quantity(-3, 9)),
        max_frequency_hz=per_device(quantity(-1, 9, may_be_zero=False)),
        capacitance=per_device(quantity(-28, 0)),
        model_bits=draw(quantity(0, 8, may_be_zero=False)),
        bandwidth_hz=draw(quantity(0, 8, may_be_zero=False)),
        noise_psd_w_per_hz=draw(quantity(-21, 0, may_be_zero=False)),
        energy_weight=draw(quantity(-6, 6)),
        delay_weight=draw(quantity(-6, 6, may_be_zero=False)),
        max_delay_s=draw(st.none() | quantity(-3, 4, may_be_zero=False)),
        max_energy_j=draw(st.none() | quantity(-3, 4)),
    )
