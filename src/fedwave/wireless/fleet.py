"""The devices' hardware: limits of transmit power and CPU frequency, work per sample, energy of computing."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray, real_array


@dataclass(frozen=True, eq=False)
class Fleet:
    """One value per device, each array of shape (n,)."""

    max_power_w: FloatArray  # p^max
    max_frequency_hz: FloatArray  # nu^max
    capacitance: FloatArray  # iota; the energy uses iota / 2, Eq. (23)
    cycles_per_sample: FloatArray  # c
    min_frequency_hz: FloatArray = field(default_factory=lambda: np.zeros(0))  # nu^min; 0 where not given
    static_power_w: FloatArray = field(default_factory=lambda: np.zeros(0))  # P_0 while computing, likewise
    joules_per_cycle: FloatArray = field(default_factory=lambda: np.zeros(0))  # at any frequency, likewise

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, real_array(getattr(self, one.name), f"fleet.{one.name}"))
        for name in ("min_frequency_hz", "static_power_w", "joules_per_cycle"):
            if getattr(self, name).size == 0:
                object.__setattr__(self, name, np.zeros(len(self.max_power_w)))
        _require(self.max_power_w > 0, self.max_power_w, "max_power_w must be > 0", "It could never upload")
        _require(
            self.max_frequency_hz > 0,
            self.max_frequency_hz,
            "max_frequency_hz must be > 0",
            "It could never finish its local update",
        )
        for name in ("capacitance", "static_power_w", "joules_per_cycle"):
            energy = getattr(self, name)
            _require(energy >= 0, energy, f"{name} must be >= 0", "Energy is not gained")
        _require(
            self.cycles_per_sample >= 0,
            self.cycles_per_sample,
            "cycles_per_sample must be >= 0",
            "Work cannot be negative",
        )

        _require(
            (self.min_frequency_hz >= 0) & (self.min_frequency_hz <= self.max_frequency_hz),
            self.min_frequency_hz,
            "min_frequency_hz must lie in 0 to max_frequency_hz",
            "No frequency is left",
        )

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return len(self.max_power_w)


def _require(is_valid: BoolArray, values: FloatArray, rule: str, why: str) -> None:
    is_valid = is_valid & np.isfinite(values)
    if not is_valid.all():
        device_index = int(np.argmin(is_valid))
        raise ProblemError(
            f"fleet.{rule} for every device, got {values[device_index]:g} at device {device_index}. "
            f"{why}; leave that device out or correct the value."
        )
