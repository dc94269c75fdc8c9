"""The settings of data, model, algorithm, selection, evaluation and execution, and what each is to do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.errors import FedwaveError
from fedwave.learning.precision import require_precision
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment
from fedwave.selection import contribution
from tests.experiments.built import Built
from tests.experiments.setting_cases import SettingCase, case, first_weights
from tests.runs.small_runs import StopAfter

UNSET = {"similarity_penalty": 1.0, "variance_penalty": 1.0}
CELL = {"preset": "paper", "num_blocks": 3, "method": "greedy"}
IID = {"kind": "iid", "num_devices": 16}
EQUAL = {"std_samples_per_class": 0.0}  # five samples of each of two classes
RAY = {"engine": "ray"}
IMAGES = {"dataset": {"shape": [1, 8, 8]}}
SINES = {"dataset": {"kind": "sinusoids", "num_devices": 20, "samples_per_device": 9}}
DIRICHLET = {"kind": "dirichlet", "num_devices": 16, "samples_per_device": 24}


def bfloat16_here() -> str:
    """What is seen of it: the precision, or why this machine refuses it."""
    try:
        require_precision("bfloat16", torch.device("cpu"))
    except FedwaveError as error:
        return f"refused: {error}"
    return "bfloat16"


def loader_case(name: str, value: Any, dataset: str, expected: Any = None) -> SettingCase:
    """An option that the dataset's loader is to be told."""
    look = lambda built: built.told("dataset").get(name)  # noqa: E731
    path = f"data.dataset[{dataset}].{name}"
    return case(path, value, look, value if expected is None else expected, partition=IID)


def run_of(built: Built) -> RunFolder:
    """The folder of a whole run."""
    return RunFolder(run_experiment(built.experiment, built.folder / "run").path)


def killed_after_four(built: Built) -> int:
    """The round of the checkpoint when a run is killed after its fourth round."""
    with pytest.raises(KeyboardInterrupt):
        run_experiment(built.experiment, built.folder / "run", observers=[StopAfter(4)])
    saved = RunFolder(built.folder / "run").load_checkpoint()
    assert saved is not None
    return saved.next_round


def asking_cases(policy: str) -> tuple[SettingCase, ...]:
    """What a policy that compares reports is told of whom to ask, and what becomes of it."""
    few = {"kind": policy, "num_candidates": 5}
    alone, drawing, remembering = (
        {"policy": one, "num_selected": 2} for one in (policy, few, {**few, "remembers": True})
    )
    path = f"selection.policy[{policy}]"
    return (
        case(f"{path}.num_candidates", 5, num_computed, 5, selection=alone),
        case(f"{path}.remembers", True, state_names, ["last_reported"], selection=drawing),
        case(f"{path}.ageing", 0.5, lambda built: policy_of(built).ageing, 0.5, selection=remembering),
        case(f"{path}.exploration", 0.5, lambda b: policy_of(b).exploration, 0.5, selection=remembering),
    )


def penalty_cases(kind: str) -> tuple[SettingCase, ...]:
    """What estimated penalties are told, and what becomes of it."""

    def rule_of(name: str) -> Any:
        return lambda built: getattr(built.sim.federation.penalties.rule, name)

    path = f"selection.penalties[{kind}]"
    given = {"every": 1, "smoothing": 0.25, "as_printed": True, "num_devices": 4}
    given |= {"num_iterations": 5, "num_probes": 2}
    return tuple(
        case(f"{path}.{name}", value, rule_of(name), value, selection=UNSET) for name, value in given.items()
    )


def num_computed(built: Built) -> Any:
    """How many devices computed in the first round."""
    return built.record.columns["num_computed"]


def policy_of(built: Built) -> Any:
    """The policy of a run on an ideal network."""
    planner: Any = built.sim.federation.planner
    return planner.runner.policy


def state_names(built: Built) -> list[str]:
    """The names of what the policy keeps."""
    return sorted(policy_of(built).initial_state(3))


def seeds(built: Built) -> set[int]:
    """Of everything that draws: data, local batches and first model, selection, losses, the cell."""
    parts = (built.local, built.planner.runner, built.world, built.cell)
    return {built.told("dataset")["seed"], *(part.seed for part in parts)}


def is_raw(built: Built) -> list[bool]:
    """Whether training and held-out devices get the inputs as they are in the dataset."""
    answer = []
    for pool in (built.sim.train, built.sim.heldout):
        raw = pool.dataset.inputs[pool.devices[0].support]
        answer.append(bool(np.array_equal(pool.support(np.array([0])).inputs[0].numpy(), raw)))
    return answer


def class_counts(built: Built) -> np.ndarray:
    """How many samples of each of the four classes each training device has."""
    labels = built.sim.train.dataset.labels
    own = [[*device.support, *device.query] for device in built.sim.train.devices]
    return np.array([np.bincount(labels[samples], minlength=4) for samples in own])


def turning_points(built: Built) -> list[list[float]]:
    """Where Eq. (21) turns, by what devices report and by what the record counts with."""
    samples = built.sim.train.num_samples
    reported = built.local.reports(np.arange(8), np.ones((8, 1)), np.ones(8)).contribution
    by_hand = contribution(
        np.ones((8, 1)),
        samples,
        similarity_penalty=built.sim.local.similarity_penalty,
        variance_penalty=built.sim.local.variance_penalty,
    )
    return [((1.0 - u) / 2.0).round(12).tolist() for u in (reported, by_hand)]  # u = 1 - 2 point at norm 1


def points_by_hand(built: Built, similarity: float, variance: float) -> list[list[float]]:
    points = [round(similarity + variance / math.sqrt(n), 12) for n in built.sim.train.num_samples.tolist()]
    return [points, points]


def owns(sample: int) -> Any:
    """Whether the first training device has this sample."""

    def look(built: Built) -> bool:
        device = built.sim.train.devices[0]
        return sample in [*device.support.tolist(), *device.query.tolist()]

    return look


def num_support(built: Built) -> set[int]:
    return {len(device.support) for device in built.sim.train.devices}


def largest_weight(built: Built) -> float:
    """The largest of the first layer's first weights."""
    parameters = built.sim.initial_state().parameters
    return float(next(v for name, v in parameters.items() if name.endswith("weight")).abs().max())


def rates(built: Built) -> tuple[float, float]:
    """The step size of the adaptation while training and when evaluated."""
    return built.local.rule.inner_lr, built.evaluation.inner_lr


class Patient:
    """A planner of the user's own, around the one that the settings describe."""

    def __init__(self, planner: Any, patience: int) -> None:
        self.inner, self.patience = planner, patience

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def own_planner(planner: Any, *, patience: int = 1) -> Patient:
    return Patient(planner, patience)


def changed_labels(built: Built) -> list[int]:
    """The training devices whose labels are not those of the dataset."""
    train, labels = built.sim.train, built.sim.heldout.dataset.labels
    own = [[*device.support, *device.query] for device in train.devices]
    return [at for at, rows in enumerate(own) if (train.dataset.labels[rows] != labels[rows]).any()]


def lies(built: Built) -> list[float]:
    """How many times as large as they are the norms are reported, in order."""
    norms = built.local.reports(np.arange(8), np.ones((8, 1)), np.ones(8)).gradient_norms
    return sorted(norms[:, 0].tolist())


LEARNING_CASES = [
    case("name", "other", lambda built: run_of(built).read_json("summary.json")["name"], "other"),
    case("seed", 6, seeds, {6}, cell=CELL),
    case("num_rounds", 2, lambda built: len(run_of(built).table()["round"]), 2),
    # Data
    case("data.dataset", "digits", lambda built: built.told("dataset")["name"], "digits"),
    case(
        "data.split",
        "test",
        lambda built: built.told("dataset")["split"],
        "test",
        data={"dataset": "fashion-mnist"},
        partition=IID,
    ),
    case("data.standardise", "none", is_raw, [True, True]),
    loader_case("path", "/somewhere", "arrays", Path("/somewhere")),
    loader_case("num_classes", 5, "arrays"),
    loader_case("path", "/somewhere", "image-folder", Path("/somewhere")),
    loader_case("image_size", [3, 4], "image-folder"),
    loader_case("images_per_class", 3, "tiny-imagenet"),
    loader_case("num_samples", 480, "synthetic"),
    loader_case("num_classes", 5, "synthetic"),
    loader_case("shape", [2, 3], "synthetic"),
    *(
        case(
            f"data.dataset[sinusoids].{name}", value, look, expected, data=SINES, partition={"kind": "given"}
        )
        for name, value, look, expected in (
            ("num_devices", 12, lambda built: built.sizes, [9] * 12),
            ("samples_per_device", 7, lambda built: built.sizes, [7] * 20),
        )
    ),
    # Partition
    case("partition.kind", "iid", lambda built: built.sizes, [25] * 16),
    *(
        case(f"partition[{kind}].num_devices", 20, lambda built: len(built.sizes), 20, partition=partition)
        for kind, partition in {"paper": EQUAL, "iid": IID, "dirichlet": {**IID, "kind": "dirichlet"}}.items()
    ),
    case("partition.heldout_fraction", 0.25, lambda built: len(built.sim.heldout), 4),
    case("partition.shots", 2, num_support, {4}, partition=EQUAL),
    case(
        "partition[paper].classes_per_device",
        3,
        lambda built: (class_counts(built) > 0).sum(1).tolist(),
        [3] * 8,
        partition=EQUAL,
    ),
    case(
        "partition[paper].mean_samples_per_class", 8.0, lambda built: set(built.sizes), {16}, partition=EQUAL
    ),
    case("partition[paper].std_samples_per_class", 0.0, lambda built: set(built.sizes), {10}),
    case("partition[paper].max_samples_per_class", 3, lambda built: max(built.sizes), 6),
    case(
        "partition[dirichlet].concentration",
        1e4,  # about six of each class on every device
        lambda built: bool(class_counts(built).min() >= 2),
        True,
        partition=DIRICHLET,
    ),
    case("partition[iid].samples_per_device", 11, lambda built: set(built.sizes), {11}, partition=IID),
    case("partition[dirichlet].samples_per_device", 11, lambda built: set(built.sizes), {11}),
    case(
        "partition[given].path",
        "other_split.csv",
        owns(399),
        True,
        partition={"kind": "given", "path": "split.csv", "heldout_column": "is_out"},
    ),
    *(
        case(
            f"partition[given].{name}",
            value,
            look,
            expected,
            partition={"kind": "given", "path": "split.csv"},
        )
        for name, value, look, expected in (
            ("device_column", "writer", lambda built: set(built.sizes), {20}),
            (
                "heldout_column",
                "is_out",
                lambda built: built.sim.heldout.device_ids.tolist(),
                [*range(35, 40)],
            ),
            ("support_column", "is_first", num_support, {4}),
        )
    ),
    # Model
    case("model.kind", "mlp", lambda built: built.shapes.get("linear2.weight"), (64, 4)),
    case(
        "model[cnn].channels",
        [3, 5],
        lambda built: (built.shapes["conv1.bias"], built.shapes["conv2.bias"]),
        ((3,), (5,)),
        data=IMAGES,
        model={"kind": "cnn"},
    ),
    case(
        "model[mlp].hidden", [9], lambda built: built.shapes["linear1.weight"], (6, 9), model={"kind": "mlp"}
    ),
    *(
        case(
            f"model[{kind}].weight_std",
            0.001,
            lambda built: largest_weight(built) < 0.0021,
            True,
            data=IMAGES,
            model={"kind": kind},
        )
        for kind in ("cnn", "mlp")
    ),
    case(
        "model.path",
        "m.safetensors",
        lambda built: built.sim.initial_state().parameters["linear1.weight"].flatten().tolist(),
        first_weights(77),
    ),
    case(
        "model.seed",
        9,
        lambda built: built.sim.initial_state().parameters["linear1.weight"].flatten().tolist(),
        first_weights(9),
    ),
    # Faults
    case(
        "faults.num_devices",
        2,
        lambda built: len(changed_labels(built)),
        2,
        partition=EQUAL,
    ),
    case(
        "faults.kind",
        "liars",
        lambda built: (len(changed_labels(built)), lies(built)),
        (0, [1.0] * 6 + [10.0] * 2),
        faults={"num_devices": 2},
    ),
    case("faults.factor", 3.0, lies, [1.0] * 6 + [3.0] * 2, faults={"num_devices": 2, "kind": "liars"}),
    # Algorithm
    case(
        "algorithm.task",
        "regression",
        lambda built: built.sim and "built",
        'refused: algorithm.task = "regression" does not fit dataset synthetic, which is for classification. '
        'Use "auto".',
    ),
    case("algorithm.rule", "first-order", lambda built: built.local.rule.method, "first-order"),
    case("algorithm.rule[fedprox].mu", 0.3, lambda built: built.local.rule.mu, 0.3),
    case(
        "algorithm.num_local_steps",
        3,
        lambda built: (
            built.both("work", "num_local_steps"),
            "gradient_norm_2" in built.record.device_columns,
        ),
        ((3, 3), True),
        cell=CELL,
    ),
    case("algorithm.inner_lr", 0.3, rates, (0.3, 0.3)),
    case("algorithm.meta_lr", 0.3, lambda built: built.local.rule.meta_lr, 0.3),
    case("algorithm.query_batch_size", 2, lambda built: built.local.query_batch_size, 2),
    case(
        "algorithm.server_step",
        "momentum",
        lambda built: type(built.sim.federation.server_step).__name__,
        "ServerMomentum",
    ),
    *(
        case(
            f"algorithm.server_step[momentum].{name}",
            value,
            lambda built: vars(built.sim.federation.server_step),
            expected,
        )
        for name, value, expected in (
            ("momentum", 0.3, {"momentum": 0.3, "server_lr": 1.0}),
            ("server_lr", 0.4, {"momentum": 0.9, "server_lr": 0.4}),
        )
    ),
    case(
        "algorithm.server_step[clip-norm].max_norm",
        0.3,
        lambda built: vars(built.sim.federation.server_step),
        {"max_norm": 0.3},
    ),
    case(
        "algorithm.server_step[trimmed-mean].num_trimmed",
        2,
        lambda built: built.sim.federation.server_step.num_trimmed,
        2,
    ),
    case(
        "algorithm.planner",
        {"kind": "tests.experiments.learning_setting_cases:own_planner", "patience": 3},
        lambda built: getattr(built.sim.federation.planner, "patience", None),
        3,
    ),
    # Selection
    case("selection.policy", "uniform", lambda built: built.record.columns["num_computed"], 3, cell=CELL),
    case("selection.num_selected", 2, lambda built: built.record.columns["num_selected"], 2),
    case(
        "selection.everyone_computes",
        True,
        lambda built: built.record.columns["num_computed"],
        8,
        selection={"policy": "uniform", "num_selected": 3},
    ),
    case(
        "selection.similarity_penalty",
        3.0,
        lambda built: turning_points(built) == points_by_hand(built, 3.0, 0.1),
        True,
    ),
    case(
        "selection.variance_penalty",
        3.0,
        lambda built: turning_points(built) == points_by_hand(built, 0.1, 3.0),
        True,
    ),
    case(
        "selection.penalties",
        "calibrated",
        lambda built: built.record.columns["share_below_turning_point"],
        0.5,
        selection=UNSET,
    ),
    *penalty_cases("estimated"),
    *penalty_cases("calibrated"),
    case(
        "selection.penalties[calibrated].share_above",
        0.25,
        lambda built: built.record.columns["share_below_turning_point"],
        0.75,
        selection=UNSET,
    ),
    *asking_cases("power-of-choice"),
    *asking_cases("top-contribution"),
    # Evaluation
    case("evaluation.every", 2, lambda built: sorted({*run_of(built).table("heldout.csv")["round"]}), [1, 2]),
    case(
        "evaluation.training_devices",
        True,
        lambda built: bool(np.isfinite(run_of(built).table()["training_loss"]).all()),
        True,
    ),
    case("evaluation.num_steps", 4, lambda built: built.evaluation.num_steps, 4),
    case("evaluation.inner_lr", 0.7, rates, (0.05, 0.7)),
    # Execution
    case("execution.engine", "ray", lambda built: built.told("cluster") is not None, True),
    case("execution.workers", 3, lambda built: built.told("num_workers"), 3),
    case("execution.address", "h:1", lambda built: built.told("cluster").address, "h:1", execution=RAY),
    case("execution.cpus_per_task", 0.5, lambda b: b.told("cluster").cpus_per_task, 0.5, execution=RAY),
    case("execution.wait_s", 7.0, lambda built: built.told("cluster").wait_s, 7.0, execution=RAY),
    case(
        "execution.device",
        "cpu:0",
        lambda built: [str(pool.torch_device) for pool in (built.sim.train, built.sim.heldout)],
        ["cpu:0", "cpu:0"],
    ),
    case(
        "execution.chunk_samples",
        33,
        lambda built: (built.local.chunk_samples, built.evaluation.chunk_samples),
        (33, 33),
    ),
    case("execution.precision", "bfloat16", lambda built: built.local.precision, bfloat16_here()),
    case(
        "execution.batching",
        "vmap",
        lambda built: built.sim.model.is_vectorised,
        'refused: execution.batching cannot be "vmap" with model.kind '
        "tests.learning.models.user_modules:DataDependentNet: torch.func.vmap cannot map it. "
        'Use "auto" or "loop".',
        model={"kind": "tests.learning.models.user_modules:DataDependentNet"},
    ),
    case("execution.checkpoint_every", 3, killed_after_four, 3, num_rounds=5),
    case(
        "execution.tensorboard",
        True,
        lambda built: (Path(run_of(built).path) / "tensorboard").is_dir(),
        True,
        num_rounds=1,
    ),
    case(
        "execution.mlflow",
        True,
        lambda built: (Path(run_of(built).path) / "mlflow" / "run.json").is_file(),
        True,
        num_rounds=1,
    ),
    case(
        "execution.wandb",
        True,
        lambda built: (Path(run_of(built).path) / "wandb" / "run.json").is_file(),
        True,
        num_rounds=1,
    ),
]
