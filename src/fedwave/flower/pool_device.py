"""A training device of an experiment on a node of its own: same samples, random numbers, mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError
from fedwave.flower.device import DeviceReport, RadioFacts
from fedwave.flower.messages import Grant, NamedArrays
from fedwave.flower.parameters import from_parameters, to_parameters
from fedwave.learning.parameters import unstack
from fedwave.simulation.simulation import Simulation


@dataclass(frozen=True, eq=False)
class PoolDevice:
    """One training device of a simulation; the node's radio is that of the simulated cell."""

    simulation: Simulation
    position: int

    def __post_init__(self) -> None:
        n = len(self.simulation.train)
        if not 0 <= self.position < n:
            raise ConfigError(
                f"the experiment has training devices 0 to {n - 1}, got partition-id {self.position}. Start "
                "as many nodes as it has."
            )

    @property
    def num_samples(self) -> int:
        """D_i."""
        return int(self.simulation.train.num_samples[self.position])

    def update(
        self, round_index: int, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[NamedArrays, DeviceReport]:
        """Return the local update, computed as a chunk of one device, and what it reports."""
        local, at = self.simulation.local, np.array([self.position])
        chunk = local.compute(round_index, to_parameters(arrays), at)
        row = local.reports(at, chunk.gradient_norms, chunk.loss)
        report = DeviceReport(
            contribution=float(row.contribution[0]),
            loss=float(row.loss[0]),
            num_samples=self.num_samples,
            gradient_norms=chunk.gradient_norms[0],
            radio=self._radio(round_index),
        )
        return from_parameters(unstack(chunk.parameters, 0)), report

    def _radio(self, round_index: int) -> RadioFacts | None:
        """Return what the experiment's world has for this device; None where there is no radio."""
        world = self.simulation.federation.world
        fleet, channel = world.fleet, world.channel(round_index)
        if fleet is None or channel is None:
            return None
        return RadioFacts(
            channel_gain=np.atleast_1d(channel.channel_gain[self.position]),
            max_power_w=float(fleet.max_power_w[self.position]),
            max_frequency_hz=float(fleet.max_frequency_hz[self.position]),
            capacitance=float(fleet.capacitance[self.position]),
            cycles_per_sample=float(fleet.cycles_per_sample[self.position]),
        )

    def granted(self, grant: Grant) -> None:
        """Do nothing: there is no radio to tune."""

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, float]:
        """Return loss and metric on the device's query samples after adaptation to its support samples."""
        local, evaluation = self.simulation.local, self.simulation.evaluation
        loss, metric = evaluation.on(local.pool).compute(to_parameters(arrays), np.array([self.position]))
        return {"loss": float(loss[0]), local.task.metric.name: float(metric[0])}
