"""What a node's app asks of its device, and what the device tells. One of your own needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedwave.flower.messages import BadReply, Grant, NamedArrays
from fedwave.units import FloatArray

MAX_CONTRIBUTION = 1e30  # float32 norms whose squares are larger would not have been finite
MAX_RADIO = 1e18  # of any limit or gain in SI units: larger ones would overflow in the plan
_LIMITS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")


@dataclass(frozen=True, kw_only=True, eq=False)
class RadioFacts:
    """What a device in a radio cell says of itself, and the channel that it measured for the round."""

    channel_gain: FloatArray  # h of each block, or one for all
    max_power_w: float
    max_frequency_hz: float
    capacitance: float
    cycles_per_sample: float  # c; the workload is tau c D

    def to_metrics(self) -> dict[str, Any]:
        """Return the numbers as a message carries them."""
        return {**vars(self), "channel_gain": [float(gain) for gain in self.channel_gain]}

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, Any]) -> RadioFacts | None:
        """Return what a message says of a radio, checked; None if it says nothing."""
        if "channel_gain" not in metrics:
            return None
        limits = {name: _number(metrics, name) for name in _LIMITS}
        if min(limits["max_power_w"], limits["max_frequency_hz"]) <= 0 or min(limits.values()) < 0:
            raise BadReply(f"the device's limits must be positive, got {short(limits)}")
        gain = _numbers(metrics, "channel_gain")
        if max(*limits.values(), float(gain.max())) > MAX_RADIO:
            raise BadReply(f"the device's radio is absurd: {short(limits)}, gains up to {gain.max():g}")
        return cls(channel_gain=gain, **limits)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceReport:
    """What a device tells of its local update, Alg. 1 lines 3-11: a few numbers."""

    contribution: float  # u_i, Eq. (21)
    loss: float
    num_samples: int  # D_i
    gradient_norms: FloatArray  # (tau,)
    radio: RadioFacts | None = None  # None where there is no cell

    def to_metrics(self) -> dict[str, Any]:
        """Return the numbers as a message carries them."""
        return {
            "contribution": self.contribution,
            "loss": self.loss,
            "num_samples": self.num_samples,
            "gradient_norms": [float(norm) for norm in self.gradient_norms],
            **({} if self.radio is None else self.radio.to_metrics()),
        }

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, Any], *, num_local_steps: int) -> DeviceReport:
        """Return what a message reports, checked."""
        norms = _numbers(metrics, "gradient_norms")
        if len(norms) != num_local_steps:
            raise BadReply(
                f"gradient_norms has {len(norms)} entries, one for each of {num_local_steps} steps"
            )
        contribution = _number(metrics, "contribution")
        if abs(contribution) > MAX_CONTRIBUTION or norms.max() > math.sqrt(MAX_CONTRIBUTION):
            raise BadReply(f"contribution {contribution:g} is absurd")
        return cls(
            contribution=contribution,
            loss=_number(metrics, "loss"),
            num_samples=num_samples_of(metrics),
            gradient_norms=norms,
            radio=RadioFacts.from_metrics(metrics),
        )


class Device(Protocol):
    """A device as its node's app asks it."""

    @property
    def num_samples(self) -> int:
        """D_i, its number of local samples."""
        ...

    def update(
        self, round_index: int, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[NamedArrays, DeviceReport]:
        """Return its update of the global model, theta_i by the global model's names, and its report."""
        ...

    def granted(self, grant: Grant) -> None:
        """Called before the upload, with the block, power and frequency to use for it."""
        ...

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, float]:
        """Return figures of the global model after adaptation to this device."""
        ...


def num_samples_of(metrics: Mapping[str, Any]) -> int:
    """Return a device's number of samples, checked."""
    value = metrics.get("num_samples")
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**53:
        raise BadReply(f"num_samples must be a whole number >= 1, got {short(value)}")
    return value


def short(value: object) -> str:
    """Return what a node sent, as a line of a log can show it."""
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else text[:117] + "..."


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadReply(f"{name} must be a number, got {short(value)}")
    if not math.isfinite(value):
        raise BadReply(f"{name} is {value}")
    return float(value)


def _numbers(metrics: Mapping[str, Any], name: str) -> FloatArray:
    values = metrics.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(v, int | float) for v in values):
        raise BadReply(f"{name} must be a list of numbers, got {short(values)}")
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all() or array.min() < 0:
        raise BadReply(f"{name} must be finite and not negative, got {short(values)}")
    return array
