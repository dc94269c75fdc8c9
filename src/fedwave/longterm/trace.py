"""What a run met, round by round: contributions as recorded, the cell that it was in, and replays of both.

Contributions are endogenous: who uploads changes the model, and with it what others will contribute. A trace
holds them fixed, so that all that is said of it is said of this trace and of no other training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedwave.errors import ProblemError, RunError
from fedwave.experiments.build import build_simulation
from fedwave.experiments.schema import PlannerPart
from fedwave.runs.folder import RunFolder
from fedwave.runs.tables import DEVICES
from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, Planner, PolicyRunner, Reports, RoundAims, Work
from fedwave.server.aims import RAW
from fedwave.simulation.cell_world import CellWorld
from fedwave.units import FloatArray
from fedwave.wireless.cell import Cell


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """R rounds of a cell; ``planner`` plans one of them by itself, and knows terms, aims and work."""

    world: CellWorld
    planner: CellPlanner
    contribution: FloatArray  # (R, n), on the scale of the aims

    def __post_init__(self) -> None:
        risks = self.world.terms.risks
        if risks.dropout_probability or risks.packet_error_waterfall is not None:
            raise ProblemError(
                "a trace needs uploads that arrive for certain, got a cell with dropouts or packet errors. A "
                "policy that knew the luck would beat any bound; leave them out."
            )
        if self.world.terms.access != "one-block" or self.world.terms.work_conserving:
            handed_on = " and work_conserving" if self.world.terms.work_conserving else ""
            raise ProblemError(
                "a trace is bounded with one block each, got a cell with access = "
                f'"{self.world.terms.access}"{handed_on}. Use one-block, and leave work_conserving out.'
            )
        if self.contribution.ndim != 2 or not np.isfinite(self.contribution).all():
            raise ProblemError(
                "a trace needs the contribution of every device in every round, got some that are missing. "
                "Record a run in which everybody computes: no battery, selection.everyone_computes = true."
            )
        # Contributions are on the scale of the aims already: nobody scales them again.
        aims = replace(self.planner.aims, scale=RAW)
        object.__setattr__(self, "planner", replace(self.planner, aims=aims))

    @property
    def num_rounds(self) -> int:
        """R."""
        return int(self.contribution.shape[0])

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return int(self.contribution.shape[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """What a policy made of a trace."""

    utility: FloatArray  # (R,): U - eta_1 E - eta_2 T of what arrived, as the world counts
    energy_j: FloatArray  # (R, n): all that each device spent
    num_asked: FloatArray  # (R,)
    num_received: FloatArray  # (R,)

    @property
    def mean_utility(self) -> float:
        """Utility of a round."""
        return float(self.utility.mean())

    @property
    def worst_energy_j(self) -> float:
        """Joules of a round, of the device that spent most."""
        return float(self.energy_j.mean(axis=0).max())


def replay(trace: Trace, make: Callable[[CellPlanner], Planner] = lambda planner: planner) -> Replay:
    """Return what the planner that ``make`` puts around the trace's own makes of it, without any training."""
    planner, world, aims = make(trace.planner), trace.world, trace.planner.aims
    state = planner.initial_state()
    samples, steps = trace.planner.work.num_samples, trace.planner.work.num_local_steps
    rows = []
    for k in range(trace.num_rounds):
        asked = planner.ask(k, state)
        reports = Reports(
            device_index=asked,
            contribution=trace.contribution[k, asked],
            loss=np.zeros(len(asked)),
            num_samples=samples[asked],
            gradient_norms=np.zeros((len(asked), steps)),
        )
        channel = world.channel(k)
        plan = planner.plan(k, asked, reports, channel, state)
        outcome = world.answer(k, plan, reports, channel)
        state = planner.after(k, reports, plan, outcome, state)
        assert outcome.costs is not None
        gained = float(trace.contribution[k, outcome.received].sum())
        paid = aims.energy_weight * outcome.costs.energy_j + aims.delay_weight * outcome.costs.delay_s
        rows.append((gained - paid, outcome.costs.device_energy_j, len(asked), len(outcome.received)))
    utility, energy_j, num_asked, num_received = zip(*rows, strict=True)
    return Replay(
        utility=np.array(utility),
        energy_j=np.array(energy_j),
        num_asked=np.array(num_asked, dtype=np.float64),
        num_received=np.array(num_received, dtype=np.float64),
    )


def trace_of_cell(
    cell: Cell,
    contribution: FloatArray,
    *,
    energy_weight: float,
    delay_weight: float,
    model_bits: float,
    num_samples: int,
    seed: int = 0,
) -> Trace:
    """Return a trace of given contributions (R, n) in a cell, without any training; everybody is asked."""
    samples = np.full(contribution.shape[1], num_samples)
    work = Work(model_bits=model_bits, num_local_steps=1, num_samples=samples)
    planner = CellPlanner(
        runner=PolicyRunner(TopContribution(len(samples)), samples, seed),
        fleet=cell.fleet,
        terms=cell.terms,
        aims=RoundAims(energy_weight=energy_weight, delay_weight=delay_weight),
        work=work,
    )
    world = CellWorld(cell=cell, terms=cell.terms, work=work, seed=seed)
    return Trace(world=world, planner=planner, contribution=contribution)


def trace_of_run(path: Path | str, *, data_dir: Path | None = None) -> Trace:
    """Return the trace that a run left: its table of devices, and its cell built again from its settings."""
    folder = RunFolder.open(Path(path))
    experiment = folder.experiment()
    if experiment.cell is None:
        raise RunError(f"{folder.path} has no radio cell, so no joules. Give a run over a cell.")
    if experiment.algorithm.local_steps is not None:
        raise RunError(
            f"{folder.path} chose its local steps round by round (algorithm.local_steps), but a trace has "
            "the same work in all rounds. Give a run with algorithm.num_local_steps alone."
        )
    algorithm = experiment.algorithm.model_copy(update={"planner": PlannerPart()})
    cell = experiment.cell.model_copy(update={"battery": None})
    plain = experiment.model_copy(update={"algorithm": algorithm, "cell": cell, "stop": None})
    simulation = build_simulation(plain, data_dir=data_dir)
    world, planner = simulation.federation.world, simulation.federation.planner
    assert isinstance(world, CellWorld)
    assert isinstance(planner, CellPlanner)
    table, num_devices = folder.table(DEVICES), len(simulation.train)
    reported, scaled = table["contribution"], table["scaled_contribution"]
    num_rounds = len(scaled) // num_devices
    contribution = np.where(np.isfinite(reported), scaled, np.nan)[: num_rounds * num_devices]
    return Trace(world=world, planner=planner, contribution=contribution.reshape(num_rounds, num_devices))
