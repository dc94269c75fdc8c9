"""An experiment as data: what a TOML file or preset may say, with its defaults."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from fedwave.data import DATASETS, PARTITIONS, dataset_options, partition_options
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.part_options import require_part_options
from fedwave.experiments.schemes import scheme_of
from fedwave.selection import POLICIES
from fedwave.settings import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Section
from fedwave.settings.options import options_of, require_known
from fedwave.settings.section import file_name

PASSED = "passed-from-python"  # the dataset of a run that was given arrays instead of a name
GIVEN = "given"  # the partition that the data or the user brings along

MAX_ROUNDS = 10**9  # nobody waits for more

Options = dict[str, Any]  # by name; types are those of the part's signature
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


class DataSection(Section):
    """Which samples there are."""

    place: ClassVar[str] = "data"
    choice: ClassVar[str | None] = "dataset"

    dataset: str = Field("digits", description="A name that `fedwave datasets` lists.")
    split: Literal["all", "train", "test"] = Field("all", description="Which published files to pool.")
    path: AbsolutePath | None = Field(
        None, description="File or folder, for the datasets arrays and image-folder."
    )
    image_size: PositiveInt | list[PositiveInt] | None = Field(
        None, description="Resize image-folder pictures to this side, or [height, width]."
    )
    images_per_class: PositiveInt | None = Field(
        None, description="tiny-imagenet: read only so many of a class."
    )
    standardise: Literal["pixel", "none"] = Field(
        "pixel",
        description="pixel: (x - mean) / (std + 0.001) of each pixel over the dataset; none: x / 255. "
        "Token ids stay as they are.",
    )
    num_samples: PositiveInt | None = Field(None, description="Synthetic data: how many samples.")
    num_classes: PositiveInt | None = Field(None, description="Synthetic data: how many classes.")
    shape: list[PositiveInt] | None = Field(None, description="Synthetic data: shape of one sample.")
    num_devices: PositiveInt | None = Field(None, description="sinusoids: how many devices.")
    samples_per_device: PositiveInt | None = Field(None, description="sinusoids: samples of each.")

    @classmethod
    def choices(cls) -> Iterable[str]:
        """Return the datasets that there are."""
        return DATASETS

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options of a dataset; their defaults are its loader's."""
        return dict.fromkeys(dataset_options(value)) if value in DATASETS else {}

    @model_validator(mode="after")
    def _known(self) -> DataSection:
        require_known(self.dataset, {**DATASETS, PASSED: None}, key="data.dataset")
        return self


class PartitionSection(Section):
    """How the samples are shared out among the devices."""

    place: ClassVar[str] = "partition"
    choice: ClassVar[str | None] = "kind"

    kind: str = Field("paper", description=", ".join(PARTITIONS) + ", or given: the data or path says who.")
    num_devices: PositiveInt | None = Field(
        None, description="All devices, training and held out together (100)."
    )
    heldout_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.5,
        description="Share of the devices that do not train: the model is evaluated there.",
    )
    shots: PositiveInt = Field(1, description="Support samples of each class on a device.")
    classes_per_device: PositiveInt | None = Field(None, description="paper: classes on a device (2).")
    mean_samples_per_class: PositiveFloat | None = Field(None, description="paper: mean of the Gaussian (5).")
    std_samples_per_class: NonNegativeFloat | None = Field(None, description="paper: its deviation (5).")
    max_samples_per_class: PositiveInt | None = Field(None, description="paper: upper truncation.")
    concentration: PositiveFloat | None = Field(None, description="dirichlet: small is more unequal (0.5).")
    samples_per_device: PositiveInt | None = Field(None, description="dirichlet and iid: samples a device.")
    path: AbsolutePath | None = Field(None, description="given: CSV or NPZ with a row for each sample.")
    device_column: str | None = Field(None, description='given: its column of owners ("device").')
    heldout_column: str | None = Field(None, description="given: its column of held-out devices (0 or 1).")
    support_column: str | None = Field(None, description="given: its column of support samples (0 or 1).")

    @classmethod
    def choices(cls) -> Iterable[str]:
        """Return the kinds that there are."""
        return (*PARTITIONS, GIVEN)

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options of a kind with their defaults."""
        if value == GIVEN:
            return {"path": None, "device_column": None, "heldout_column": None, "support_column": None}
        if value not in PARTITIONS:
            return {}
        parameters = inspect.signature(PARTITIONS[value]).parameters
        defaults = {name: parameters[name].default for name in partition_options(value)}
        return {"num_devices": 100, **defaults}

    @model_validator(mode="after")
    def _known(self) -> PartitionSection:
        require_known(self.kind, {**PARTITIONS, GIVEN: None}, key="partition.kind")
        return self


class ModelSection(Section):
    """What the devices train."""

    place: ClassVar[str] = "model"
    choice: ClassVar[str | None] = "kind"

    kind: str = Field("cnn", description="cnn, mlp, softmax, or package.module:factory for your own module.")
    channels: list[PositiveInt] | None = Field(
        None, description="cnn: channels of the layers ([32, 64, 128]).", min_length=1
    )
    hidden: list[PositiveInt] | None = Field(None, description="mlp: widths of the hidden layers ([64]).")
    weight_std: PositiveFloat | None = Field(
        None, description="cnn and mlp: standard deviation of the first weights (0.1)."
    )
    path: AbsolutePath | None = Field(
        None, description="Start from this model (.safetensors, as a run leaves it) instead of a random one."
    )

    @classmethod
    def choices(cls) -> Iterable[str]:
        """Return the kinds with options."""
        return ("cnn", "mlp")

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options of a kind with their defaults."""
        options = {
            "cnn": {"channels": [32, 64, 128], "weight_std": 0.1},
            "mlp": {"hidden": [64], "weight_std": 0.1},
        }
        return options.get(value, {})


class AlgorithmSection(Section):
    """How the devices train, and what the server makes of their models."""

    place: ClassVar[str] = "algorithm"
    option_tables: ClassVar[dict[str, str]] = {"server_step": "server_step_options"}

    task: str = Field(
        "auto", description="classification or regression; auto: as the dataset has classes or real targets."
    )
    gradient: str = Field(
        "exact",
        description="exact, exact-query (the Hessian on the query set, D'' = D'), first-order, hessian-free "
        "meta-gradient; plain is FedAvg's ordinary gradient, fedprox keeps it near the global model.",
    )
    num_local_steps: PositiveInt = Field(1, description="tau, local steps in a round.")
    inner_lr: NonNegativeFloat = Field(0.001, description="alpha, step size of the adaptation.")
    meta_lr: PositiveFloat = Field(0.001, description="beta, meta-learning rate.")
    query_batch_size: PositiveInt | None = Field(
        None, description="Draw this many query samples afresh for each local step; default all of them."
    )
    server_step: str = Field(
        "mean", description="What the server does with the models: mean, Eq. (6), or momentum (FedAvgM)."
    )
    server_step_options: Options = Field(
        {}, description="Options of the server step, e.g. { momentum = 0.9, server_lr = 1.0 }."
    )


class SelectionSection(Section):
    """Who computes and who uploads; over a cell, the allocation method has the last word."""

    place: ClassVar[str] = "selection"
    option_tables: ClassVar[dict[str, str]] = {"policy": "options"}

    policy: str = Field("top-contribution", description=", ".join(POLICIES) + ".")
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
    options: Options = Field({}, description="Options of the policy, e.g. { num_candidates = 40 }.")

    @model_validator(mode="after")
    def _known(self) -> SelectionSection:
        require_known(self.policy, POLICIES, key="selection.policy")
        known = options_of(POLICIES[self.policy], reserved=("num_selected", "needs_reports"))
        require_part_options(
            self.options, POLICIES[self.policy], known, table="selection.options", owner=self.policy
        )
        return self


class EvaluationSection(Section):
    """How the global model is evaluated on the held-out devices."""

    place: ClassVar[str] = "evaluation"

    every: PositiveInt = Field(1, description="Evaluate after every so many rounds, and after the last.")
    num_steps: NonNegativeInt = Field(1, description="Adaptation steps on the support set.")
    inner_lr: NonNegativeFloat | None = Field(
        None, description="Their step size; default algorithm.inner_lr."
    )


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

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options of an executor with their defaults."""
        return {"address": None, "cpus_per_task": 1.0, "wait_s": 60.0} if value == "ray" else {}


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
    execution: ExecutionSection = ExecutionSection()
    cell: CellSection | None = Field(
        None, description="Train over a radio cell, which then decides on the uploads; absent: ideal network."
    )

    @property
    def scheme(self) -> str | None:
        """The paper's name for this gradient, policy and method, if it has one."""
        return scheme_of(
            self.algorithm.gradient, self.selection.policy, self.cell.method if self.cell else None
        )
