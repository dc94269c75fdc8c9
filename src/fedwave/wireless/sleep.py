"""What a device's radio draws while it neither listens nor sends: sleep states and ramp-ups. Numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True)
class SleepState:
    """A state of rest. Entering and leaving it takes a time, which is part of the rest, and an energy."""

    power_w: float
    ramp_energy_j: float = 0.0  # of entering and leaving together, beside the power
    min_time_s: float = 0.0  # a shorter rest cannot use it


@dataclass(frozen=True)
class Waiting:
    """The states that a radio may rest in; the server tells when it is needed, so it takes the cheapest."""

    states: tuple[SleepState, ...] = ()

    @property
    def deepest(self) -> SleepState:
        """The state of a rest without an end."""
        return min(self.states, key=lambda state: state.power_w)

    def rest_energy_j(self, time_s: FloatArray) -> FloatArray:
        """Return what rests of these lengths drain with the ramp-up that ends them, each in its best one."""
        energy_j = np.full(np.shape(time_s), np.inf)
        for state in self.states:
            own_j = state.power_w * time_s + state.ramp_energy_j
            energy_j = np.where(time_s >= state.min_time_s, np.minimum(energy_j, own_j), energy_j)
        return energy_j

    def energy_j(
        self,
        *,
        listen_time_s: FloatArray,
        sending: tuple[tuple[FloatArray, FloatArray], ...],
        end_s: float,
    ) -> FloatArray:
        """Return what each device's radio drains at rest in a round of ``end_s``; 0 if it has no states.

        A device listens from the beginning on for ``listen_time_s``, for which it has woken from its deepest
        state. Then it sends at times ``(start, duration)``, one pair for each phase in order, with a duration
        of 0 where it does not; before each it rests and ramps up. From its last activity on, or for the whole
        round without any, it is in its deepest state: that ramp-up belongs to the round that it wakes in.
        """
        if not self.states:
            return np.zeros(np.shape(listen_time_s))
        energy_j = np.where(listen_time_s > 0, self.deepest.ramp_energy_j, 0.0)
        awake_until_s = np.asarray(listen_time_s, dtype=np.float64)
        for start_s, duration_s in sending:
            is_sent = duration_s > 0
            rest_s = np.maximum(start_s - awake_until_s, 0.0)
            energy_j = energy_j + np.where(is_sent, self.rest_energy_j(rest_s), 0.0)
            awake_until_s = np.where(is_sent, start_s + duration_s, awake_until_s)
        return energy_j + self.deepest.power_w * np.maximum(end_s - awake_until_s, 0.0)


NEVER_ASLEEP = Waiting()
