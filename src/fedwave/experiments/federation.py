"""Who decides and who answers in an experiment: its planner, its world and its server step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedwave.allocation import find_method
from fedwave.devices import DevicePool
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schema import Experiment
from fedwave.learning import Model, Task
from fedwave.learning.operations import sample_operations
from fedwave.learning.quantise import message_bits
from fedwave.learning.rules import LocalRule
from fedwave.learning.server_steps import ServerStep
from fedwave.parts import is_import_name
from fedwave.rng import Stream, generator
from fedwave.selection import SelectionPolicy, require_enough_devices
from fedwave.server import CellPlanner, ContributionScale, PolicyPlanner, PolicyRunner, RoundAims, Work
from fedwave.simulation.cell_world import CellWorld
from fedwave.simulation.power import Power
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.battery import draw_batteries
from fedwave.wireless.settings.fleet import PAPER_CNN_OPERATIONS

DEFAULT_NUM_SELECTED = 20  # n_k of the paper


def build_federation(
    experiment: Experiment, train: DevicePool, model: Model, task: Task, rule: LocalRule
) -> tuple[Federation, tuple[str, ...]]:
    """Return the server and the world of the experiment, and warnings about their settings."""
    if experiment.cell is not None:
        operations = operations_per_sample(experiment.cell, train, model, task, rule)
        return _over_a_cell(experiment, experiment.cell, train, model, operations)
    wanted = experiment.selection.num_selected
    num_selected = min(DEFAULT_NUM_SELECTED, len(train)) if wanted == "auto" else wanted
    require_enough_devices(num_selected, len(train))
    planner = PolicyPlanner(build_runner(experiment, train, num_selected))
    step = build_server_step(experiment, num_selected)
    return Federation(planner=planner, world=IdealWorld(), server_step=step), ()


def build_server_step(experiment: Experiment, max_models: int) -> ServerStep:
    """Return what the server does with the models of a round, of which our planners know a limit."""
    algorithm = experiment.algorithm
    step: ServerStep = algorithm.server_step.create(
        "algorithm.server_step", max_models=None if is_import_name(algorithm.planner.kind) else max_models
    )
    return step


def build_runner(experiment: Experiment, train: DevicePool, num_selected: int) -> PolicyRunner:
    """Return the selection policy with the run's random numbers."""
    section = experiment.selection
    policy: SelectionPolicy = section.policy.create("selection.policy", num_selected=num_selected)
    return PolicyRunner(policy, train.num_samples, experiment.seed, section.everyone_computes)


def operations_per_sample(
    section: CellSection, train: DevicePool, model: Model, task: Task, rule: LocalRule
) -> float:
    """Return the multiply-adds that a sample costs on average, where the cell's cycles follow from them."""
    if not section.fleet.counts_operations:
        return PAPER_CNN_OPERATIONS  # not asked for: the settings or a file give the cycles
    first = train.query(np.array([0]))
    counted = sample_operations(
        model, task, rule, sample=first.inputs[0, 0].cpu(), target=first.targets[0, 0].cpu()
    )
    num_query = int(train.num_query.sum())
    return counted.mean(int(train.num_samples.sum()) - num_query, num_query)


def _over_a_cell(
    experiment: Experiment,
    section: CellSection,
    train: DevicePool,
    model: Model,
    operations: float,
) -> tuple[Federation, tuple[str, ...]]:
    """Return a federation whose training devices, in order, are the devices of a radio cell."""
    cell = Cell.build(section, num_devices=len(train), seed=experiment.seed, operations_per_sample=operations)
    if section.samples_counted is not None:
        # Work is c_i D_i: as many cycles for each of the samples as make it c_i times the samples counted.
        cycles = cell.fleet.cycles_per_sample * section.samples_counted / train.num_samples
        cell = replace(cell, fleet=replace(cell.fleet, cycles_per_sample=cycles))
    cell.check_rounds(experiment.num_rounds)  # a gains file with too few rounds: say so before training
    num_selected, warnings = _num_selected_over_a_cell(experiment, section, len(train))
    terms = replace(cell.terms, report_bits=section.report_bits)
    work = Work(
        model_bits=model_bits(section, model),
        num_local_steps=experiment.algorithm.num_local_steps,
        num_samples=train.num_samples,
    )
    estimation = section.estimation.create("cell.estimation", num_devices=len(train))
    planner = CellPlanner(
        runner=build_runner(experiment, train, num_selected),
        fleet=cell.fleet,
        terms=terms,
        aims=RoundAims(
            energy_weight=section.energy_weight,
            delay_weight=section.delay_weight,
            scale=ContributionScale(
                section.contribution_scale, section.contribution_constant, section.contribution_size
            ),
            max_delay_s=section.max_delay_s,
            max_energy_j=section.max_energy_j,
        ),
        work=work,
        method=section.method.kind,
        method_options=section.method.checked_options("cell.method"),
        estimation=estimation,
    )
    world = CellWorld(
        cell=cell,
        terms=terms,
        work=work,
        seed=experiment.seed,
        idle_power_w=section.idle_power_w,
        max_upload_s=section.max_delay_s,
        max_upload_j=section.max_energy_j,
        shows_regret=not estimation.is_exact,
    )
    federation = Federation(
        planner=planner,
        world=world,
        server_step=build_server_step(experiment, min(num_selected, most_uploads(section, len(train)))),
        bits_per_parameter=section.bits_per_parameter,
        power=_power(section, train, experiment.seed),
        shows_regret=world.shows_regret,
        shows_shares=section.access != "one-block",
    )
    return federation, (*cell.warnings, *warnings)


def _power(section: CellSection, train: DevicePool, seed: int) -> Power | None:
    """Return what the devices live on; None where they never run out."""
    if section.battery is None:
        return None
    batteries = draw_batteries(section.battery, num_devices=len(train), seed=seed)
    return Power(batteries=batteries, num_samples=train.num_samples)


def _num_selected_over_a_cell(
    experiment: Experiment, section: CellSection, num_devices: int
) -> tuple[int, tuple[str, ...]]:
    """Return n_k: as many as can upload at most, or no limit where problem (P) itself decides."""
    most = most_uploads(section, num_devices)
    wanted, policy = experiment.selection.num_selected, experiment.selection.policy.kind
    serves_given_devices = find_method(section.method.kind).serves_given_devices
    if wanted == "auto":
        decides = policy == "top-contribution" and not serves_given_devices
        asked = experiment.selection.policy.options.get("num_candidates", num_devices)
        return (min(asked, num_devices) if decides else most), ()
    require_enough_devices(wanted, num_devices)
    if not serves_given_devices or wanted <= most:
        return wanted, ()
    limits = f"{most} blocks" if section.max_uploads is None else f"max_uploads = {most}"
    warning = f"selection.num_selected is {wanted}, but the cell has {limits}: {most} devices upload at most."
    return most, (warning,)


def most_uploads(section: CellSection, num_devices: int) -> int:
    """Return how many devices can upload in a round: one a block, unless they share the band or its time."""
    most = num_devices if section.access in ("shared-band", "tdma") else min(section.num_blocks, num_devices)
    return most if section.max_uploads is None else min(most, section.max_uploads)


def model_bits(section: CellSection, model: Model) -> float:
    """Return S: as given, or from the model; the paper's normalised cell counts a float32 model as 1."""
    if section.model_bits is not None:
        return section.model_bits
    if section.normalised:
        return section.bits_per_parameter / 32
    parameters = model.initial_parameters(generator(0, Stream.MODEL_INIT))
    return float(message_bits(parameters, section.bits_per_parameter))
