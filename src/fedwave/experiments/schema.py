"""An experiment as data: what a TOML file or preset may say, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from fedwave.data import PARTITIONS
from fedwave.data.faults import FaultKind
from fedwave.errors import ConfigError
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schemes import scheme_of
from fedwave.selection import POLICIES
from fedwave.settings import (
    NonNegativeFloat,
    NonNegativeFloat32,
    NonNegativeInt,
    Part,
    PositiveFloat,
    PositiveFloat32,
    PositiveInt,
    Probability,
    Section,
)
from fedwave.settings.section import file_name

PASSED = "passed-from-python"  # the dataset of a run that was given arrays instead of a name
GIVEN = "given"  # the partition that the data or the user brings along

MAX_ROUNDS = 10**9  # nobody waits for more

AbsolutePath = Annotated[str, AfterValidator(lambda path: str(file_name(path).absolute()))]  # found anywhere


def _one_line(text: str) -> str:
    """Return a name, or refuse one that would spoil a table or a terminal."""
    if not text.isprintable():
        raise ValueError(f"it must be one line of printable text, got {text!r}. Leave out the rest")
    return text


def _cluster_address(text: str) -> str:
    """Return the address of a Ray cluster; refuse what is none, which Ray would wait for."""
    host, _, port = text.rpartition(":")
    if text != "auto" and not (host and "/" not in host and port.isdecimal() and int(port) < 2**16):
        raise ValueError(
            f'it must be HOST:PORT as `ray start --head` prints it, or "auto", got "{text}". Run fedwave on '
            "a machine of the cluster; ray:// is not supported"
        )
    return text


class DatasetPart(Part):
    """Which dataset."""

    of: ClassVar[str] = "fedwave.data:DATASET"
    stand_ins: ClassVar[tuple[str, ...]] = (PASSED,)

    kind: str = "digits"


class DataSection(Section):
    """Which samples there are."""

    place: ClassVar[str] = "data"

    dataset: DatasetPart = Field(
        DatasetPart(),
        description="A name that `fedwave datasets` lists, with options e.g. "
        '{ kind = "synthetic", shape = [20] }.',
    )
    split: Literal["all", "train", "test"] = Field("all", description="Which published files to pool.")
    standardise: Literal["pixel", "none"] = Field(
        "pixel",
        description="pixel: (x - mean) / (std + 0.001) of each pixel over the dataset; none: x / 255. "
        "Token ids stay as they are.",
    )


class PartitionSection(Part):
    """How the samples are shared out among the devices, with the options of its kind."""

    place: ClassVar[str] = "partition"
    of: ClassVar[str] = "fedwave.data:PARTITION"

    kind: str = Field("paper", description=", ".join(PARTITIONS) + " (the data or path says who).")
    heldout_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.5,
        description="Share of the devices that do not train: the model is evaluated there.",
    )
    shots: PositiveInt = Field(1, description="Support samples of each class on a device.")


class ModelSection(Part):
    """What the devices train, with the options of its kind."""

    place: ClassVar[str] = "model"
    of: ClassVar[str] = "fedwave.learning.models:MODEL"
    checked_when_created: ClassVar[bool] = True
    reaches_models: ClassVar[bool] = True

    kind: str = Field("cnn", description="cnn, mlp, softmax, or package.module:factory for your own module.")
    path: AbsolutePath | None = Field(
        None, description="Start from this model (.safetensors, as a run leaves it) instead of a random one."
    )
    seed: NonNegativeInt | None = Field(
        None, description="Draw the first model from this seed: the same in runs of all seeds. Default: seed."
    )


class TaskPart(Part):
    """What is learnt."""

    of: ClassVar[str] = "fedwave.learning.tasks:TASK"
    checked_when_created: ClassVar[bool] = True
    reaches_models: ClassVar[bool] = True
    stand_ins: ClassVar[tuple[str, ...]] = ("auto",)

    kind: str = "auto"


class RulePart(Part):
    """How a device moves its model."""

    of: ClassVar[str] = "fedwave.learning.rules:RULE"
    checked_when_created: ClassVar[bool] = True
    reaches_models: ClassVar[bool] = True

    kind: str = "exact"


class ServerStepPart(Part):
    """What the server makes of the models."""

    of: ClassVar[str] = "fedwave.learning.server_steps:SERVER_STEP"
    checked_when_created: ClassVar[bool] = True
    reaches_models: ClassVar[bool] = True

    kind: str = "mean"


class PlannerPart(Part):
    """Who decides on a round."""

    of: ClassVar[str] = "fedwave.server:PLANNER"

    kind: str = "auto"


class LocalStepsPart(Part):
    """Who chooses the number of local steps."""

    of: ClassVar[str] = "fedwave.server:STEPS"
    reaches_models: ClassVar[bool] = True

    kind: str = "adaptive"


class AlgorithmSection(Section):
    """How the devices train, and what the server makes of their models."""

    place: ClassVar[str] = "algorithm"

    task: TaskPart = Field(
        TaskPart(),
        description="classification or regression; auto: as the dataset has classes or real targets.",
    )
    rule: RulePart = Field(
        RulePart(),
        description="exact, exact-query (the Hessian on the query set, D'' = D'), first-order, hessian-free "
        "meta-gradient; plain is FedAvg's ordinary gradient, fedprox keeps it near the global model.",
    )
    num_local_steps: PositiveInt = Field(1, description="tau, local steps in a round.")
    local_steps: LocalStepsPart | None = Field(
        None,
        description="Who chooses tau of every round after the first: adaptive, under the budgets of stop, "
        'e.g. { kind = "adaptive", phi = 5e-5 }; absent: it is always num_local_steps.',
    )
    inner_lr: NonNegativeFloat32 = Field(0.001, description="alpha, step size of the adaptation.")
    meta_lr: PositiveFloat32 = Field(0.001, description="beta, meta-learning rate.")
    query_batch_size: PositiveInt | None = Field(
        None, description="Draw this many query samples afresh for each local step; default all of them."
    )
    server_step: ServerStepPart = Field(
        ServerStepPart(),
        description="What the server does with the models: mean, Eq. (6), momentum (FedAvgM), "
        'e.g. { kind = "momentum", momentum = 0.9, server_lr = 1.0 }, or one that withstands devices which '
        "send what they like: clip-norm, trimmed-mean, median.",
    )
    planner: PlannerPart = Field(
        PlannerPart(),
        description="Who decides on a round. auto: a planner as [selection] and [cell] describe it; "
        "sample-weights: the same, but models weigh by their devices' samples; one of your own is given that "
        "one as its keyword planner.",
    )


class PolicyPart(Part):
    """Who uploads."""

    of: ClassVar[str] = "fedwave.selection:POLICY"

    kind: str = "top-contribution"


class PenaltiesPart(Part):
    """Where the penalties of the contribution come from."""

    of: ClassVar[str] = "fedwave.selection:PENALTY"

    kind: str = "fixed"


class SelectionSection(Section):
    """Who computes and who uploads; over a cell, the allocation method has the last word."""

    place: ClassVar[str] = "selection"

    policy: PolicyPart = Field(
        PolicyPart(),
        description=", ".join(POLICIES) + ', e.g. { kind = "power-of-choice", num_candidates = 40 }.',
    )
    num_selected: PositiveInt | Literal["auto"] = Field(
        "auto",
        description="n_k, devices that upload in a round. auto: 20; over a cell, as many as blocks, and with "
        "top-contribution and a method that chooses by itself, no limit (problem (P) decides).",
    )
    everyone_computes: bool = Field(
        False, description="Let the devices that are not chosen compute too, as Eq. (30) counts."
    )
    similarity_penalty: NonNegativeFloat = Field(1.0, description="lambda_1 of the contribution, Eq. (21).")
    variance_penalty: NonNegativeFloat = Field(1.0, description="lambda_2 of the contribution, Eq. (21).")
    penalties: PenaltiesPart = Field(
        PenaltiesPart(),
        description="fixed: the two above; estimated: the least ones of Corollary 1, by constants that are "
        "measured as the run goes on; calibrated: those, scaled so that a share of the devices is above the "
        "turning point, see docs/theory.md.",
    )

    @model_validator(mode="after")
    def _penalties_have_one_source(self) -> SelectionSection:
        if self.penalties.kind != "fixed" and (self.similarity_penalty, self.variance_penalty) != (1.0, 1.0):
            raise ConfigError(
                f'selection.penalties = "{self.penalties.kind}" takes the place of similarity_penalty and '
                f"variance_penalty, got {self.similarity_penalty}, {self.variance_penalty}. Leave those out."
            )
        return self


class EvaluationSection(Section):
    """How the global model is evaluated on the held-out devices, and on the training devices if wished."""

    place: ClassVar[str] = "evaluation"

    every: PositiveInt = Field(1, description="Evaluate after every so many rounds, and after the last.")
    training_devices: bool = Field(
        False, description="Evaluate on all training devices too, in the same way: columns training_*."
    )
    num_steps: NonNegativeInt = Field(1, description="Adaptation steps on the support set.")
    inner_lr: NonNegativeFloat32 | None = Field(
        None, description="Their step size; default algorithm.inner_lr."
    )


class FaultsSection(Section):
    """Training devices that are not as they should be, drawn from the seed; the held-out ones are."""

    place: ClassVar[str] = "faults"

    num_devices: NonNegativeInt = Field(0, description="How many training devices are at fault.")
    kind: FaultKind = Field(
        "random-labels",
        description="random-labels: every label drawn from all classes; upside-down: images turned over; "
        "liars: reported gradient norms times factor.",
    )
    factor: PositiveFloat = Field(10.0, description="liars: how many times as large their norms are said.")


class ExecutionSection(Section):
    """How it is computed. Only chunk_samples, device, batching and precision move the bits of the results."""

    place: ClassVar[str] = "execution"
    choice: ClassVar[str | None] = "engine"

    engine: Literal["threads", "ray"] = Field(
        "threads", description="threads of this machine, or ray: a cluster of machines, see docs/cluster.md."
    )
    workers: NonNegativeInt = Field(
        0, description="Threads, or tasks of a cluster at a time; 0 takes one for each core."
    )
    address: Annotated[str, AfterValidator(_cluster_address)] | None = Field(
        None, description="ray: HOST:PORT of a cluster, or auto; absent: one on this machine, for the run."
    )
    cpus_per_task: PositiveFloat | None = Field(None, description="ray: cores that a task counts for (1).")
    wait_s: PositiveFloat | None = Field(None, description="ray: seconds to wait for a free core (60).")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N.")
    chunk_samples: NonNegativeInt = Field(0, description="Samples computed together; 0 chooses.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Of products in training; bfloat16 needs a CPU or GPU that has it, and sums in float32.",
    )
    batching: Literal["auto", "vmap", "loop"] = Field(
        "auto",
        description="Your own module with many devices at once (vmap) or one by one (loop); auto measures.",
    )
    checkpoint_every: PositiveInt = Field(1, description="Rounds between checkpoints.")
    tensorboard: bool = Field(False, description="Also log to TensorBoard in the run folder.")
    mlflow: bool = Field(
        False, description="Also log to MLflow, in the run folder unless MLFLOW_TRACKING_URI is set."
    )
    wandb: bool = Field(
        False, description="Also log to Weights & Biases, offline in the run folder unless WANDB_MODE is set."
    )

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options of an executor with their defaults."""
        return {"address": None, "cpus_per_task": 1.0, "wait_s": 60.0} if value == "ray" else {}


class StopSection(Section):
    """Ends a run before its last round, after the first round at which one of these is reached."""

    place: ClassVar[str] = "stop"

    energy_j: PositiveFloat | None = Field(None, description="Joules of all devices so far; over a cell.")
    time_s: PositiveFloat | None = Field(
        None, description="Seconds on the cell's clock; with a battery the pauses between rounds count."
    )
    accuracy: Probability | None = Field(None, description="Accuracy of the held-out devices.")
    dead_share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Share of devices without charge for the next round; with cell.battery."
    )


class Experiment(Section):
    """Everything that defines a run."""

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        "experiment", description="What tables and plots call the run."
    )
    seed: NonNegativeInt = Field(0, description="The one seed.")
    num_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = Field(50, description="K, rounds of training.")
    data: DataSection = DataSection()
    partition: PartitionSection = PartitionSection()
    model: ModelSection = ModelSection()
    algorithm: AlgorithmSection = AlgorithmSection()
    selection: SelectionSection = SelectionSection()
    evaluation: EvaluationSection = EvaluationSection()
    faults: FaultsSection = FaultsSection()
    execution: ExecutionSection = ExecutionSection()
    cell: CellSection | None = Field(
        None, description="Train over a radio cell, which then decides on the uploads; absent: ideal network."
    )

    stop: StopSection | None = Field(None, description="Ends the run by a budget; absent: by num_rounds.")

    @model_validator(mode="after")
    def _stop_is_counted(self) -> Experiment:
        stop, cell = self.stop or StopSection(), self.cell
        if cell is None and (stop.energy_j is not None or stop.time_s is not None):
            raise ConfigError(
                "stop.energy_j and stop.time_s need a cell, which counts joules and seconds, got none. Set "
                "cell.preset, or leave them out."
            )
        if stop.dead_share is not None and (cell is None or cell.battery is None):
            raise ConfigError(
                "stop.dead_share needs cell.battery, got none. Without one no device ever runs out."
            )
        return self

    @property
    def scheme_parts(self) -> tuple[str, str, str | None]:
        """The local rule, the selection policy and the allocation method, which exists only over a cell."""
        method = self.cell.method.kind if self.cell else None
        return self.algorithm.rule.kind, self.selection.policy.kind, method

    @property
    def scheme(self) -> str | None:
        """The paper's name for this rule, policy and method, if it has one."""
        return scheme_of(*self.scheme_parts)
