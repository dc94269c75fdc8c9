"""What a node's app asks of its device, and what the device tells. One of your own needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from fedwave.flower.messages import Grant, NamedArrays
from fedwave.units import FloatArray


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
