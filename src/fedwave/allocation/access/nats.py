"""The two functions of v = ln(1 + SNR) that every access needs, and their inverses, for many devices at once.

An upload of s nats over an area of q hertz seconds has v = s / q. It takes s (e^v - 1) / v units of transmit
energy, and one more hertz second saves m(v) = (v - 1) e^v + 1 of them, which is Lemma 6 again. Both rise with
v. The inverses start from a table and end with Newton's method on logarithms.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from fedwave.units import FloatArray

MOST_NATS = 690.0  # e^v stays finite, with room for a factor
LEAST_NATS = 1e-14
_FEW_NATS = 0.002  # below, the plain formulas cancel, and these terms of their series are exact
_SAVING_TERMS = tuple((k - 1) / math.factorial(k) for k in range(6, 1, -1))  # of m(v) / v^2, highest first
_EXCESS_TERMS = tuple(1.0 / math.factorial(k) for k in range(6, 1, -1))  # of ((e^v - 1) / v - 1) / v
_POINTS = 32768  # a step of 0.12 % in v: then one step of Newton's method leaves an error of 1e-13
_TINY = 1e-300


def saving(nats: FloatArray, growth: FloatArray | None = None) -> FloatArray:
    """Return m(v) = (v - 1) e^v + 1: what a hertz second more saves, in units of energy; Lemma 6.

    ``growth`` is e^v where it is known. The sum v e^v - (e^v - 1) keeps more digits of a small v.
    """
    value = np.asarray(nats * (np.exp(nats) if growth is None else growth) - np.expm1(nats))
    few = nats < _FEW_NATS
    if few.any():
        value[few] = _series(_SAVING_TERMS, nats[few]) * nats[few] ** 2
    return value


def energy(nats: FloatArray) -> FloatArray:
    """Return (e^v - 1) / v: the transmit energy of an upload, in units of s (I + B N0) / (B h); from 1 on."""
    return np.asarray(np.expm1(nats) / nats)


def nats_of_saving(value: FloatArray) -> FloatArray:
    """Return the v with m(v) = value, cut to LEAST_NATS..MOST_NATS.

    What is maximised there is level, so a relative error of 1e-10 leaves the maximum exact.
    """
    log_value, log_nats = _saving_table()
    wished = np.minimum(np.maximum(np.log(np.maximum(value, _TINY)), log_value[0]), log_value[-1])
    nats = np.exp(np.interp(wished, log_value, log_nats))
    growth = np.exp(nats)
    reached = saving(nats, growth)
    steep = nats * nats * growth / reached  # elasticity of m, at least 2
    nats = nats * np.exp((wished - np.log(reached)) / steep)
    return np.asarray(np.minimum(np.maximum(nats, LEAST_NATS), MOST_NATS))


def nats_of_energy(value: FloatArray) -> FloatArray:
    """Return the v with (e^v - 1) / v = value; 0 where value <= 1, at most MOST_NATS."""
    log_excess, log_nats = _energy_table()
    excess = np.maximum(value - 1.0, 0.0)
    wished = np.minimum(np.maximum(np.log(np.maximum(excess, _TINY)), log_excess[0]), log_excess[-1])
    nats = np.exp(np.interp(wished, log_excess, log_nats))
    growth = np.expm1(nats)
    reached = _excess(nats, growth)
    steep = (growth - reached) / reached  # elasticity of the excess: from 1 on
    nats = nats * np.exp((wished - np.log(reached)) / steep)
    return np.where(excess > 0.0, np.minimum(np.maximum(nats, LEAST_NATS), MOST_NATS), 0.0)


def _excess(nats: FloatArray, growth: FloatArray) -> FloatArray:
    """Return (e^v - 1) / v - 1, e^v - 1 being given."""
    value = np.asarray((growth - nats) / nats)
    few = nats < _FEW_NATS
    if few.any():
        value[few] = _series(_EXCESS_TERMS, nats[few]) * nats[few]
    return value


def _series(terms: tuple[float, ...], nats: FloatArray) -> FloatArray:
    value = np.full(nats.shape, terms[0])
    for term in terms[1:]:
        value = value * nats + term
    return value


def _grid() -> FloatArray:
    return np.exp(np.linspace(np.log(LEAST_NATS), np.log(MOST_NATS), _POINTS))


@cache
def _saving_table() -> tuple[FloatArray, FloatArray]:
    nats = _grid()
    return np.log(saving(nats)), np.log(nats)


@cache
def _energy_table() -> tuple[FloatArray, FloatArray]:
    nats = _grid()
    return np.log(_excess(nats, np.expm1(nats))), np.log(nats)
