"""How an SNR becomes a rate, and a transmit power a drain on the battery. Needs numpy alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray, real_array

_FEW_BITS = 1e-2  # bit/s/Hz; below, 2^b - 1 would lose digits


@dataclass(frozen=True, kw_only=True)
class RateModel:
    """Shannon's rate, Eq. (25), attenuated and capped as real modems are; by default as it is.

    A share ``efficiency`` of log2(1 + SNR) is reached, never more than ``max_spectral_efficiency``, and
    nothing at all below ``min_snr``.
    """

    efficiency: float = 1.0
    max_spectral_efficiency: float | None = None  # bit/s/Hz, after the efficiency; None: no cap
    min_snr: float = 0.0  # linear

    def __post_init__(self) -> None:
        if not 0.0 < self.efficiency <= 1.0:
            raise ProblemError(
                f"efficiency must lie in 0 to 1, got {self.efficiency:g}. Modems reach 0.65 of Shannon."
            )
        if self.max_spectral_efficiency is not None and not 0.0 < self.max_spectral_efficiency < math.inf:
            raise ProblemError(
                f"max_spectral_efficiency must be > 0, got {self.max_spectral_efficiency:g}. None: no cap."
            )
        if not 0.0 <= self.min_snr < math.inf:
            raise ProblemError(f"min_snr must be >= 0, got {self.min_snr:g}. Give a ratio, not decibels.")
        if self.min_snr >= self.max_snr:
            raise ProblemError(
                f"min_snr = {self.min_snr:g} must lie below {self.max_snr:g}, where the rate is capped. "
                "Lower it, or raise max_spectral_efficiency."
            )

    @property
    def max_snr(self) -> float:
        """The SNR at which the cap is reached: more power buys nothing; infinite without a cap."""
        if self.max_spectral_efficiency is None:
            return math.inf
        exponent = self.max_spectral_efficiency / self.efficiency
        if exponent < _FEW_BITS:
            return math.expm1(exponent * math.log(2.0))
        return math.inf if exponent > 1000.0 else 2.0**exponent - 1.0

    def spectral_efficiency(self, snr: FloatArray) -> FloatArray:
        """Return the rate of each upload in bit/s/Hz. ``log1p`` keeps tiny ratios exact."""
        rate = np.log1p(snr) / np.log(2.0)
        if self.efficiency != 1.0:
            rate = self.efficiency * rate
        if self.max_spectral_efficiency is not None:
            rate = np.minimum(rate, self.max_spectral_efficiency)
        return np.where(snr < self.min_snr, 0.0, rate) if self.min_snr > 0.0 else np.asarray(rate)


@dataclass(frozen=True, kw_only=True, eq=False)
class RadioPower:
    """What sending drains from the battery: p / xi + P_circuit. By default p alone, Eq. (29).

    ``circuit_power_w`` may be an array with one value for each device of an ``AllocationProblem``.
    """

    amplifier_efficiency: float = 1.0  # xi
    circuit_power_w: FloatArray | float = 0.0  # drawn for as long as the radio sends

    def __post_init__(self) -> None:
        if not 0.0 < self.amplifier_efficiency <= 1.0:
            raise ProblemError(
                f"amplifier_efficiency must lie in 0 to 1, got {self.amplifier_efficiency:g}. Usual: 0.3."
            )
        if np.ndim(self.circuit_power_w):
            own_w = real_array(self.circuit_power_w, "circuit_power_w").view()
            own_w.flags.writeable = False
            object.__setattr__(self, "circuit_power_w", own_w)
        circuit_w = np.asarray(self.circuit_power_w)
        wrong = circuit_w[~((circuit_w >= 0.0) & (circuit_w < math.inf))]
        if wrong.size:
            raise ProblemError(f"circuit_power_w must be >= 0, got {wrong.flat[0]:g}. Use 0 for none.")

    def __eq__(self, other: object) -> bool:
        """Return whether both drain alike."""
        if not isinstance(other, RadioPower) or self.amplifier_efficiency != other.amplifier_efficiency:
            return False
        return np.array_equal(self.circuit_power_w, other.circuit_power_w)

    def __hash__(self) -> int:
        """Return the same for those that are equal."""
        return hash((self.amplifier_efficiency, np.asarray(self.circuit_power_w, dtype=np.float64).tobytes()))

    @property
    def has_circuit(self) -> bool:
        """Return whether anybody's circuit draws power."""
        circuit_w = self.circuit_power_w
        return bool(circuit_w.any()) if isinstance(circuit_w, np.ndarray) else circuit_w > 0.0

    def of(self, device: IntArray) -> RadioPower:
        """Return what these devices' radios drain."""
        if not isinstance(self.circuit_power_w, np.ndarray):
            return self
        return RadioPower(
            amplifier_efficiency=self.amplifier_efficiency, circuit_power_w=self.circuit_power_w[device]
        )

    def drain_w(self, transmit_power_w: FloatArray) -> FloatArray:
        """Return the power that the battery gives while a device sends; ``of`` makes it that of some."""
        if self.amplifier_efficiency == 1.0 and not self.has_circuit:
            return transmit_power_w
        return transmit_power_w / self.amplifier_efficiency + self.circuit_power_w
