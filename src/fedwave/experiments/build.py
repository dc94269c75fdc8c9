"""From an experiment's settings to the simulation they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load

from fedwave.data import (
    Dataset,
    DeviceData,
    UserSplit,
    deal,
    devices_of_split,
    divide,
    heldout_of_split,
    load_dataset,
    split_heldout,
    standardise_warnings,
)
from fedwave.data.faults import faulty_positions, with_faults
from fedwave.devices import DevicePool, Devices, EvaluationWork, LocalWork, Standardiser, thread_devices
from fedwave.devices.batching import choose_batching
from fedwave.devices.ray.connection import ClusterOptions, load_ray
from fedwave.devices.ray.executor import ray_devices
from fedwave.errors import ConfigError, ModelError, require_type, shown
from fedwave.experiments.federation import build_federation
from fedwave.experiments.schema import GIVEN, PASSED, ExecutionSection, Experiment
from fedwave.files import read_bytes
from fedwave.learning import Model, Parameters, Task, build_model
from fedwave.learning.models import UserModel
from fedwave.learning.models.suitability import NUM_EXAMPLES
from fedwave.learning.precision import require_precision
from fedwave.learning.rules import LocalRule
from fedwave.ram import require_memory
from fedwave.rng import Stream, generator
from fedwave.selection import EstimatedPenalties, PenaltyRule
from fedwave.server import LocalSteps, Planner
from fedwave.settings import Part, Section
from fedwave.simulation.penalties import ChangingPenalties
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.stop import NEVER, StopRule
from fedwave.theory.learner import Learner
from fedwave.units import FloatArray, IntArray

AnySection = TypeVar("AnySection", bound=Section)

# A chunk of devices computes on about this many input values at once: few calls, little memory. On 28x28
# images it makes 128 samples, the flat part of the measured curve.
VALUES_PER_CHUNK = 100_000


def build_simulation(
    experiment: Experiment,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    split: UserSplit | None = None,
) -> Simulation:
    """Return the simulation of an experiment; ``dataset`` and ``split`` replace those that it names."""
    require_type(experiment, Experiment, name="experiment", fix="Make one with load_experiment.")
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    algorithm, selection = experiment.algorithm, experiment.selection
    train, heldout = build_pools(experiment, data, split)
    require_memory(
        8 * len(train) * algorithm.num_local_steps,  # a gradient norm for each, in memory and in devices.csv
        what=f"{algorithm.num_local_steps:,} local steps of {len(train):,} devices",
        fix="Use fewer algorithm.num_local_steps.",
    )
    task = build_task(experiment, data)
    require_precision(experiment.execution.precision, train.torch_device)
    model = build_model(
        experiment.model.kind,
        data.input_shape,
        data.num_outputs,
        batching=experiment.execution.batching,
        samples=train.examples(NUM_EXAMPLES),
        **experiment.model.checked_options("model"),
    )
    rule: LocalRule = algorithm.rule.create(
        "algorithm.rule", inner_lr=algorithm.inner_lr, meta_lr=algorithm.meta_lr
    )
    federation, warnings = build_federation(experiment, train, model, task, rule)
    # The planner that the settings describe, or one of the user's around it.
    planner: Planner = algorithm.planner.create("algorithm.planner", planner=federation.planner)
    federation = replace(federation, planner=planner, local_steps=_local_steps(experiment))
    chunk_samples = experiment.execution.chunk_samples or min(
        max(VALUES_PER_CHUNK // math.prod(data.input_shape), 16), 1024
    )
    local = LocalWork(
        model=model,
        task=task,
        rule=rule,
        pool=train,
        num_local_steps=algorithm.num_local_steps,
        similarity_penalty=selection.similarity_penalty,
        variance_penalty=selection.variance_penalty,
        query_batch_size=algorithm.query_batch_size,
        seed=experiment.seed,
        chunk_samples=chunk_samples,
        precision=experiment.execution.precision,
        report_scale=_report_scale(experiment, len(train)),
        measures_curvature=federation.local_steps is not None,
    )
    if experiment.execution.batching != "vmap":
        chunk_samples = choose_batching(local, one_by_one=experiment.execution.chunk_samples or 1)
        local = replace(local, chunk_samples=chunk_samples)
    federation = replace(federation, penalties=_changing_penalties(experiment, local))
    own_lr = experiment.evaluation.inner_lr
    evaluation = EvaluationWork(
        model=model,
        task=task,
        pool=heldout,
        num_steps=experiment.evaluation.num_steps,
        inner_lr=algorithm.inner_lr if own_lr is None else own_lr,
        chunk_samples=chunk_samples,
    )
    return Simulation(
        federation=federation,
        local=local,
        evaluation=evaluation,
        executor=build_executor(experiment.execution, train.torch_device),
        num_rounds=experiment.num_rounds,
        evaluate_every=experiment.evaluation.every,
        stop=_stop_rule(experiment, task, len(train)),
        evaluate_training=experiment.evaluation.training_devices,
        warm_start=warm_start(experiment, model),
        model_seed=experiment.model.seed,
        warnings=(*warnings, *_data_warnings(experiment, data)),
    )


def _changing_penalties(experiment: Experiment, local: LocalWork) -> ChangingPenalties | None:
    """Return what estimates the penalties as the run goes on; None where they are fixed."""
    rule: PenaltyRule = experiment.selection.penalties.create("selection.penalties")
    if not rule.needs_estimates:
        return None
    if not isinstance(rule, EstimatedPenalties):
        raise ConfigError(
            "selection.penalties must derive from fedwave.selection.EstimatedPenalties to need estimates, "
            f"got {shown(rule)}. Derive it."
        )
    if len(local.pool) < 2:
        raise ConfigError(
            f"selection.penalties: how far devices differ needs two of them, got {len(local.pool)}. Use "
            '"fixed", or more training devices.'
        )
    algorithm = experiment.algorithm
    learner = Learner.of(local, inner_lr=algorithm.inner_lr, meta_lr=algorithm.meta_lr)
    return ChangingPenalties(rule=rule, local=local, learner=learner)


def _local_steps(experiment: Experiment) -> LocalSteps | None:
    """Return who chooses the number of local steps; None where it is always the same."""
    algorithm, stop = experiment.algorithm, experiment.stop
    if algorithm.local_steps is None:
        return None
    steps: LocalSteps = algorithm.local_steps.create(
        "algorithm.local_steps",
        num_local_steps=algorithm.num_local_steps,
        step_size=algorithm.meta_lr,
        budget_s=None if stop is None else stop.time_s,
        budget_j=None if stop is None else stop.energy_j,
    )
    return steps


def _stop_rule(experiment: Experiment, task: Task, num_devices: int) -> StopRule:
    """Return when the run ends before its last round."""
    if experiment.stop is None:
        return NEVER
    if experiment.stop.accuracy is not None and task.metric.name != "accuracy":
        raise ConfigError(
            f"stop.accuracy needs a task that is judged by accuracy, got {task.metric.name}. Leave it out."
        )
    return StopRule(**dict(experiment.stop), num_devices=num_devices)


def with_choices(experiment: Experiment, simulation: Simulation) -> Experiment:
    """Return the experiment with all that it runs with written down, so that a resume repeats it.

    That is what was measured at its start, and the defaults of every part's options.
    """
    experiment = with_part_defaults(experiment)
    if not isinstance(simulation.model, UserModel):
        return experiment
    batching = "vmap" if simulation.model.is_vectorised else "loop"
    execution = experiment.execution.model_copy(update={"batching": batching})
    return experiment.model_copy(update={"execution": execution})


def with_part_defaults(section: AnySection) -> AnySection:
    """Return a section in which every part has the defaults of its options written out."""
    found = {name: with_part_defaults(value) for name, value in section if isinstance(value, Section)}
    section = section.model_copy(update=found)
    return section.with_defaults() if isinstance(section, Part) else section


# What there is to learn, and on whose samples --------------------------------------------------------------


def load_experiment_dataset(experiment: Experiment, *, data_dir: Path | None = None) -> Dataset:
    """Return the dataset that the experiment names."""
    section = experiment.data
    if section.dataset.kind == PASSED:
        raise ConfigError(
            f'data.dataset "{PASSED}" stands for arrays that only the Python program has which started the '
            "run. Pass them again: run_experiment(..., dataset=...) or resume_run(..., dataset=...)."
        )
    options = section.dataset.checked_options("data.dataset")
    return load_dataset(
        section.dataset.kind, data_dir=data_dir, seed=experiment.seed, split=section.split, **options
    )


def build_pools(
    experiment: Experiment, data: Dataset, split: UserSplit | None = None
) -> tuple[DevicePool, DevicePool]:
    """Return the training devices and the held-out ones."""
    section = experiment.partition
    deal_rng = generator(experiment.seed, Stream.PARTITION, 0)
    heldout_rng = generator(experiment.seed, Stream.PARTITION, 1)
    devices: tuple[DeviceData, ...]
    if split is not None and section.kind != GIVEN:
        raise ConfigError(
            f'a split of your own needs partition.kind = "{GIVEN}", got "{section.kind}". Set it, or leave '
            "out the split."
        )
    made: IntArray | UserSplit
    if split is not None:
        made = split
    else:
        made = divide(
            data.labels,
            kind=section.kind,
            num_classes=data.num_classes,
            rng=deal_rng,
            shots=section.shots,
            dataset=data,
            **section.checked_options("partition"),
        )
    share = section.heldout_fraction
    if isinstance(made, UserSplit):
        devices = devices_of_split(made, data.labels, shots=section.shots, rng=deal_rng)
        train_ids, heldout_ids = heldout_of_split(made, heldout_fraction=share, rng=heldout_rng)
    else:
        devices = deal(data.labels, made, shots=section.shots, rng=deal_rng)
        train_ids, heldout_ids = split_heldout(len(devices), heldout_fraction=share, rng=heldout_rng)
    torch_device = choose_device(experiment.execution)
    standardiser = Standardiser.fit(data, experiment.data.standardise)

    def pool(ids: IntArray, samples: Dataset) -> DevicePool:
        return DevicePool(samples, standardiser, tuple(devices[i] for i in ids), ids, torch_device)

    faulty = [devices[i] for i in train_ids[faulty_devices(experiment, len(train_ids))]]
    spoilt_rng = generator(experiment.seed, Stream.FAULTS, 1)
    spoilt = with_faults(data, faulty, experiment.faults.kind, rng=spoilt_rng)
    return pool(train_ids, spoilt), pool(heldout_ids, data)


def faulty_devices(experiment: Experiment, num_devices: int) -> IntArray:
    """Return which training devices are at fault, by their positions."""
    rng = generator(experiment.seed, Stream.FAULTS, 0)
    return faulty_positions(num_devices, experiment.faults.num_devices, rng=rng)


def _report_scale(experiment: Experiment, num_devices: int) -> FloatArray | None:
    """Return how many times as large each device says its gradients are; None if all are honest."""
    if experiment.faults.kind != "liars" or experiment.faults.num_devices == 0:
        return None
    scale = np.ones(num_devices)
    scale[faulty_devices(experiment, num_devices)] = experiment.faults.factor
    return scale


def load_split(experiment: Experiment, data: Dataset) -> UserSplit:
    """Return who owns which sample, from the file that the experiment names or from the dataset itself."""
    split: UserSplit = experiment.partition.create("partition", dataset=data)
    return split


def build_task(experiment: Experiment, data: Dataset) -> Task:
    """Return the task: as set, or as the dataset has classes or real targets."""
    fitting = "regression" if data.is_regression else "classification"
    part = experiment.algorithm.task
    if part.kind == "auto":
        part = part.model_copy(update={"kind": fitting})
    if part.kind in ("classification", "regression") and part.kind != fitting:
        raise ConfigError(
            f'algorithm.task = "{part.kind}" does not fit dataset {data.name}, which is for {fitting}. '
            'Use "auto".'
        )
    task: Task = part.create("algorithm.task")
    return task


def _data_warnings(experiment: Experiment, data: Dataset) -> tuple[str, ...]:
    return standardise_warnings(data) if experiment.data.standardise == "pixel" else ()


# What is trained ------------------------------------------------------------------------------------------


def warm_start(experiment: Experiment, model: Model) -> Callable[[], Parameters] | None:
    """Return what reads the model file that the experiment starts from, if it names one."""
    path = experiment.model.path
    return None if path is None else partial(load_parameters, Path(path), model)


def load_parameters(path: Path, model: Model) -> Parameters:
    """Return the parameters in a ``model.safetensors``, which must be those of this model."""
    try:
        state = load(read_bytes(path))
    except FileNotFoundError as error:
        raise ModelError(f"model.path {path} does not exist. Give the model.safetensors of a run.") from error
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"model.path {path} cannot be read as safetensors ({reason}). Give a run's model.safetensors."
        ) from error
    return model.from_state_dict(state)


# Where the devices are computed ----------------------------------------------------------------------------


def build_executor(
    section: ExecutionSection, torch_device: torch.device
) -> Callable[[LocalWork, EvaluationWork], Devices]:
    """Return what starts the threads, or joins the cluster, that compute the devices."""
    if section.engine == "threads":
        return partial(thread_devices, num_workers=1 if torch_device.type == "cuda" else section.workers)
    load_ray(section.address)  # if it is not installed, say so before anything is written
    names = [field.name for field in fields(ClusterOptions)]
    return partial(ray_devices, options=ClusterOptions(**{name: getattr(section, name) for name in names}))


def choose_device(section: ExecutionSection) -> torch.device:
    """Return the torch device that is asked for; ``auto`` takes a GPU where torch has one, but not on Ray."""
    name = section.device
    if name == "auto":
        on_gpu = section.engine == "threads" and torch.cuda.is_available()
        return torch.device("cuda" if on_gpu else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        if device.type == "meta":
            raise RuntimeError("a meta device holds no values")
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f'execution.device: torch cannot use "{name}" ({reason}). Use "auto", "cpu" or "cuda".'
        ) from error
    if section.engine == "ray" and device.type != "cpu":
        raise ConfigError(
            f'execution.device: engine ray computes on CPUs, got "{name}". Use "cpu", or engine threads.'
        )
    return device
