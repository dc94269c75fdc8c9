"""From an experiment's settings to the simulation they describe."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from fedwave.data import Dataset, DeviceData, load_dataset, partition, split_heldout
from fedwave.errors import ConfigError, did_you_mean
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schema import Experiment
from fedwave.learning import Model, build_model
from fedwave.learning.quantise import message_bits
from fedwave.rng import Stream, generator
from fedwave.selection import POLICIES, require_enough_devices
from fedwave.simulation.cell_scheduler import CellScheduler
from fedwave.simulation.contribution_scale import ContributionScale
from fedwave.simulation.device_pool import DevicePool, Standardiser
from fedwave.simulation.scheduler import PolicyScheduler, Scheduler
from fedwave.simulation.simulation import Simulation, Testing, Training
from fedwave.units import IntArray
from fedwave.wireless.cell import Cell

# A chunk of devices computes on about this many input values at once: enough to keep a core busy, few enough
# to stay in its cache. On 28x28 images it makes 64 samples, the flat part of the measured curve.
VALUES_PER_CHUNK = 50_000


def build_simulation(
    experiment: Experiment, *, data_dir: Path | None = None, dataset: Dataset | None = None
) -> Simulation:
    """Return the simulation of an experiment; ``dataset`` replaces the one it names."""
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    devices = partition_devices(experiment, data)
    rng = generator(experiment.seed, Stream.PARTITION, 1)
    train_ids, heldout_ids = split_heldout(
        len(devices), heldout_fraction=experiment.partition.heldout_fraction, rng=rng
    )
    torch_device = choose_device(experiment.execution.device)
    standardiser = Standardiser.fit(data, experiment.data.standardise)

    def pool(ids: IntArray) -> DevicePool:
        return DevicePool(data, standardiser, tuple(devices[i] for i in ids), ids, torch_device)

    train, heldout = pool(train_ids), pool(heldout_ids)
    algorithm, evaluation = experiment.algorithm, experiment.evaluation
    assert algorithm.gradient is not None
    shape = data.input_shape
    model = build_model(
        experiment.model.kind,
        shape,
        data.num_classes,
        channels=experiment.model.channels,
        hidden=experiment.model.hidden,
    )
    scheduler, warnings = build_scheduler(experiment, train, model)
    return Simulation(
        model=model,
        train=train,
        heldout=heldout,
        scheduler=scheduler,
        training=Training(
            gradient=algorithm.gradient,
            inner_lr=algorithm.inner_lr,
            meta_lr=algorithm.meta_lr,
            num_local_steps=algorithm.num_local_steps,
            similarity_penalty=algorithm.similarity_penalty,
            variance_penalty=algorithm.variance_penalty,
            query_batch_size=algorithm.query_batch_size,
        ),
        testing=Testing(
            every=evaluation.every,
            num_steps=evaluation.num_steps,
            inner_lr=algorithm.inner_lr if evaluation.inner_lr is None else evaluation.inner_lr,
        ),
        num_rounds=experiment.num_rounds,
        seed=experiment.seed,
        chunk_samples=experiment.execution.chunk_samples
        or min(max(VALUES_PER_CHUNK // math.prod(shape), 16), 1024),
        bits_per_parameter=experiment.cell.bits_per_parameter if experiment.cell else 32,
        warnings=warnings,
    )


def build_scheduler(
    experiment: Experiment, train: DevicePool, model: Model
) -> tuple[Scheduler, tuple[str, ...]]:
    """Return who decides on the uploads, and warnings about its settings."""
    if experiment.cell is not None:
        return build_cell_scheduler(experiment, experiment.cell, train, model)
    algorithm = experiment.algorithm
    selection = str(algorithm.selection)
    if selection not in POLICIES:
        raise ConfigError(
            f'algorithm.selection must be a known policy, got "{selection}". '
            + did_you_mean(selection, POLICIES)
        )
    require_enough_devices(algorithm.num_selected, len(train))
    policy = POLICIES[selection](algorithm.num_selected)
    return PolicyScheduler(policy, len(train), algorithm.num_selected, experiment.seed), ()


def build_cell_scheduler(
    experiment: Experiment, section: CellSection, train: DevicePool, model: Model
) -> tuple[CellScheduler, tuple[str, ...]]:
    """Return the scheduler of a radio cell whose devices are the training devices, in order."""
    cell = Cell.build(section.radio, num_devices=len(train), seed=experiment.seed)
    if cell.gains_file is not None:
        cell.gains_file.round_gain(experiment.num_rounds - 1)  # too few rounds: say so before training
    scheduler = CellScheduler(
        cell=cell,
        num_samples=train.num_samples,
        num_local_steps=experiment.algorithm.num_local_steps,
        model_bits=model_bits(section, model, normalised=cell.config.normalised),
        method=str(section.method),
        selection=str(section.selection),
        energy_weight=section.energy_weight,
        delay_weight=section.delay_weight,
        scale=ContributionScale(section.contribution_scale, section.contribution_constant),
        seed=experiment.seed,
        max_delay_s=section.max_delay_s,
        max_energy_j=section.max_energy_j,
        report_bits=section.report_bits,
        idle_power_w=section.idle_power_w,
        everyone_computes=section.everyone_computes,
    )
    return scheduler, cell.warnings


def model_bits(section: CellSection, model: Model, *, normalised: bool) -> float:
    """Return S: as given, or from the model; the paper's normalised cell counts a float32 model as 1."""
    if section.model_bits is not None:
        return section.model_bits
    if normalised:
        return section.bits_per_parameter / 32
    parameters = model.initial_parameters(generator(0, Stream.MODEL_INIT))
    return float(message_bits(parameters, section.bits_per_parameter))


def load_experiment_dataset(experiment: Experiment, *, data_dir: Path | None = None) -> Dataset:
    """Return the dataset that the experiment names."""
    data = experiment.data
    options = {
        "path": data.path,
        "image_size": tuple(data.image_size) if isinstance(data.image_size, list) else data.image_size,
        "images_per_class": data.images_per_class,
        "num_samples": data.num_samples,
        "num_classes": data.num_classes,
        "shape": None if data.shape is None else tuple(data.shape),
    }
    given = {name: value for name, value in options.items() if value is not None}
    return load_dataset(data.dataset, data_dir=data_dir, seed=experiment.seed, split=data.split, **given)


def partition_devices(experiment: Experiment, dataset: Dataset) -> tuple[DeviceData, ...]:
    """Return each device's samples."""
    section = experiment.partition
    options = section.model_dump(
        exclude_none=True, exclude={"kind", "num_devices", "heldout_fraction", "shots"}
    )
    return partition(
        dataset.labels,
        kind=section.kind,
        num_devices=section.num_devices,
        num_classes=dataset.num_classes,
        shots=section.shots,
        rng=generator(experiment.seed, Stream.PARTITION, 0),
        **options,
    )


def choose_device(name: str) -> torch.device:
    """Return the torch device of that name; ``auto`` takes a GPU where torch has one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f'execution.device: torch cannot use "{name}" ({reason}). Use "auto", "cpu" or "cuda".'
        ) from error
    return device
