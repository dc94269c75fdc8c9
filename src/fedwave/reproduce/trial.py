"""One run from its settings to its result, without a run folder: what is kept is small."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.data import Dataset
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation, load_experiment_dataset
from fedwave.experiments.schema import DataSection
from fedwave.reproduce.figures import COLUMNS, ROUND_OF_THE_PAPER, figures_of
from fedwave.reproduce.point import key_of, learning_key
from fedwave.reproduce.probe import probe
from fedwave.reproduce.remember import Memory, remembering
from fedwave.reproduce.result import CURVES, Result
from fedwave.runs.provenance import processor, versions
from fedwave.server import Plan, Planner, PlannerState, Reports
from fedwave.simulation.simulation import Simulation
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw

DRAWN = ("synthetic", "sinusoids")  # datasets that depend on the seed
FALL = 1e-9  # relative fall of an objective that rounding may cause


@dataclass(frozen=True)
class WatchedPlanner:
    """A planner whose allocations are looked at: how many iterations, and whether the objective ever fell."""

    inner: Planner
    iterations: list[float] = field(default_factory=list)
    falls: list[float] = field(default_factory=list)

    def initial_state(self) -> PlannerState:
        """Return the planner's first state."""
        return self.inner.initial_state()

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return whom the planner asks."""
        return self.inner.ask(round_index, state)

    def plan(
        self, round_index: int, reports: Reports, channel: ChannelDraw | None, state: PlannerState
    ) -> tuple[Plan, PlannerState]:
        """Return the plan, and note how its allocation came about."""
        plan, after = self.inner.plan(round_index, reports, channel, state)
        if plan.allocation is not None:
            trace = plan.allocation.trace
            self.iterations.append(float(len(trace)))
            falls = np.diff(trace) < -FALL * np.maximum(1.0, np.abs(trace[:-1]))
            self.falls.append(float(falls.sum()))
        return plan, after

    @property
    def max_models(self) -> int:
        """The planner's own."""
        return self.inner.max_models


def run_trial(
    experiment: Experiment,
    *,
    command: str = "",
    is_probed: bool = False,
    memory: Memory | None = None,
    data_dir: Path | None = None,
    round_done: Callable[[int], None] | None = None,
) -> Result:
    """Return the result of a run; a ``memory`` shared with other runs saves what they have in common."""
    start = time.perf_counter()
    memory = memory if memory is not None else Memory()
    hits_before = memory.hits
    seed = experiment.seed if experiment.data.dataset in DRAWN else 0
    data = _dataset(experiment.data.model_dump_json(exclude_none=True), seed, data_dir)
    simulation = build_simulation(experiment, dataset=data)
    watched = WatchedPlanner(simulation.federation.planner)
    simulation = replace(simulation, federation=replace(simulation.federation, planner=watched))
    simulation = remembering(simulation, memory, learning_key(experiment))
    columns, probes = _play(simulation, experiment.num_rounds, is_probed=is_probed, round_done=round_done)
    if watched.iterations:
        columns |= {"iterations": np.array(watched.iterations), "falls": np.array(watched.falls)}
    num_remembered = memory.hits - hits_before
    return Result(
        key=key_of(experiment),
        command=command,
        made_with={**versions(), "processor": processor()},
        num_rounds=experiment.num_rounds,
        seconds=time.perf_counter() - start,
        num_remembered=num_remembered,
        figures=figures_of(columns, is_timed=num_remembered == 0),
        curves={name: columns[name].tolist() for name in CURVES if name in columns},
        probes=probes,
    )


def _play(
    simulation: Simulation,
    num_rounds: int,
    *,
    is_probed: bool,
    round_done: Callable[[int], None] | None,
) -> tuple[dict[str, FloatArray], dict[str, dict[str, dict[str, float]]]]:
    """Return the numbers of all rounds by column, and what the probes found."""
    rows: list[dict[str, Any]] = []
    probes = {}
    state = simulation.initial_state()
    with closing(simulation.open_devices()) as devices:
        while state.next_round < num_rounds:
            start = time.process_time()  # of this process alone: other runs and other people's do not count
            state, record = simulation.run_round(state, devices)
            rows.append({**record.columns, "cpu_time_s": time.process_time() - start})
            if is_probed and state.next_round in (ROUND_OF_THE_PAPER, num_rounds):
                probes[str(state.next_round)] = probe(simulation, state.parameters)
            if round_done is not None:
                round_done(state.next_round)
    columns = {
        name: np.array([row[name] for row in rows], dtype=np.float64)
        for name in (*COLUMNS, "cpu_time_s")
        if name in rows[0]
    }
    return columns, probes


@lru_cache(maxsize=2)
def _dataset(section: str, seed: int, data_dir: Path | None) -> Dataset:
    """Return a dataset; the last ones are kept, as reading one can take longer than a run."""
    experiment = Experiment(seed=seed, data=DataSection.model_validate_json(section))
    return load_experiment_dataset(experiment, data_dir=data_dir)
