"""An experiment as it is built: what a setting has become, seen from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.data import load_dataset
from fedwave.devices import EvaluationWork, LocalWork
from fedwave.experiments import Experiment, build, experiment_from
from fedwave.server import CellPlanner
from fedwave.simulation.cell_world import CellWorld
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import Simulation
from fedwave.wireless.cell import Cell


class Built:
    """Builds an experiment in a folder of its own, and notes what the parts were told."""

    def __init__(self, settings: dict[str, Any], folder: Path) -> None:
        self.folder = folder
        self.experiment: Experiment = experiment_from(settings)
        self._told: dict[str, Any] = {}

    @cached_property
    def sim(self) -> Simulation:
        """The simulation."""
        with self._eavesdropping():
            sim = build.build_simulation(self.experiment)
            sim.open_devices().close()
        return sim

    @cached_property
    def cell_as_drawn(self) -> Cell:
        """The cell, before any setting beside its own changes it."""
        assert self.experiment.cell is not None
        return Cell.build(self.experiment.cell, num_devices=len(self.sim.train), seed=self.experiment.seed)

    @contextmanager
    def _eavesdropping(self) -> Iterator[None]:
        """Listen to what the dataset's loader and the devices are told."""
        open_devices = build.thread_devices

        def load(name: str, **options: Any) -> Any:
            self._told["dataset"] = {"name": name, **options}
            is_here = name in ("digits", "synthetic", "sinusoids")
            return load_dataset(name, **options) if is_here else load_dataset("digits")

        def devices(local: LocalWork, evaluation: EvaluationWork, *, num_workers: int) -> Any:
            self._told |= {"local": local, "evaluation": evaluation, "num_workers": num_workers}
            return open_devices(local, evaluation, num_workers=num_workers)

        def on_a_cluster(local: LocalWork, evaluation: EvaluationWork, *, options: Any) -> Any:
            self._told["cluster"] = options
            return devices(local, evaluation, num_workers=options.workers)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "load_dataset", load)
            patch.setattr(build, "thread_devices", devices)
            patch.setattr(build, "ray_devices", on_a_cluster)
            patch.setattr(build, "load_ray", lambda address: None)  # it need not be installed
            yield

    def told(self, part: str) -> Any:
        """What a part was told: the dataset's loader, the devices' local or evaluation work, num_workers.

        The cluster was told its options; None if there is none.
        """
        assert self.sim is not None  # listens while it is built
        return self._told.get(part)

    @property
    def local(self) -> LocalWork:
        """How the devices train."""
        return self.told("local")

    @property
    def evaluation(self) -> EvaluationWork:
        """How the model is evaluated."""
        return self.told("evaluation")

    @cached_property
    def record(self) -> RoundRecord:
        """The record of the first round."""
        with closing(self.sim.open_devices()) as devices:
            return self.sim.run_round(self.sim.initial_state(), devices)[1]

    @property
    def planner(self) -> CellPlanner:
        """The server's planner over a cell."""
        assert isinstance(self.sim.federation.planner, CellPlanner)
        return self.sim.federation.planner

    @property
    def world(self) -> CellWorld:
        """The cell as a world."""
        assert isinstance(self.sim.federation.world, CellWorld)
        return self.sim.federation.world

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.world.cell

    @property
    def gain(self) -> np.ndarray:
        """The gains of the first round."""
        return self.cell.draw(0).channel_gain

    def both(self, part: str, name: str) -> tuple[Any, Any]:
        """What planner and world each have been told, in their ``terms`` or their ``work``."""
        planned, true = getattr(self.planner, part), getattr(self.world, part)
        return getattr(planned, name), getattr(true, name)

    @property
    def sizes(self) -> list[int]:
        """Samples of every device, training and held out."""
        return [*self.sim.train.num_samples.tolist(), *self.sim.heldout.num_samples.tolist()]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's parameters."""
        return {name: tuple(v.shape) for name, v in self.sim.initial_state().parameters.items()}
