"""What a policy may look at when it chooses: what devices reported, and what happened to them before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """What the server remembers of each device. Axis 0 is the device."""

    times_selected: IntArray
    last_selected: IntArray  # round; -1: never
    last_contribution: FloatArray  # as last reported; NaN: never reported
    last_loss: FloatArray

    @classmethod
    def empty(cls, num_devices: int) -> History:
        """Return the memory before the first round."""
        return cls(
            times_selected=np.zeros(num_devices, dtype=np.int64),
            last_selected=np.full(num_devices, -1, dtype=np.int64),
            last_contribution=np.full(num_devices, np.nan),
            last_loss=np.full(num_devices, np.nan),
        )

    def of(self, device_index: IntArray) -> History:
        """Return the memory of some devices, in the order given."""
        return History(
            times_selected=self.times_selected[device_index],
            last_selected=self.last_selected[device_index],
            last_contribution=self.last_contribution[device_index],
            last_loss=self.last_loss[device_index],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """The devices to choose from. All arrays follow ``device_index``, which is sorted."""

    device_index: IntArray
    num_samples: IntArray  # D_i
    history: History
    contribution: FloatArray | None = None  # u_i; None before the devices have computed
    loss: FloatArray | None = None
    round_index: int = 0
    state: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # the policy's own, of all devices

    def __len__(self) -> int:
        return len(self.device_index)

    def among(self, device_index: IntArray) -> Candidates:
        """Return those candidates that are also in ``device_index``."""
        if np.array_equal(self.device_index, device_index):  # as a rule everybody: nothing to look up
            return self
        keep = np.flatnonzero(np.isin(self.device_index, device_index))
        return replace(
            self,
            device_index=self.device_index[keep],
            num_samples=self.num_samples[keep],
            history=self.history.of(keep),
            contribution=None if self.contribution is None else self.contribution[keep],
            loss=None if self.loss is None else self.loss[keep],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundResult:
    """What became of a round, as a policy with a state of its own hears it."""

    round_index: int
    reported: Candidates  # who computed, and what they reported; with the policy's state before the round
    selected: IntArray  # who was to upload
    received: IntArray  # whose upload arrived
    busy_time_s: FloatArray | None = None  # (n,), seconds each device computed and sent; None: not counted
    energy_j: FloatArray | None = None  # (n,), joules of each device; None: not counted
    delay_s: float | None = None  # of the whole round; None: not counted

    @property
    def state(self) -> Mapping[str, NDArray[Any]]:
        """The policy's own state before the round."""
        return self.reported.state


def reported(values: FloatArray | None, what: str, policy: str) -> FloatArray:
    """Return a reported column, or raise if the devices have not computed yet."""
    if values is None:
        raise ProblemError(
            f'policy "{policy}" compares each device\'s {what}, got none. Let the devices compute first.'
        )
    return values
