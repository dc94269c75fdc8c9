"""An experiment as data: what a TOML file or preset may say, with its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fedwave.experiments.cell_section import CellSection

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A group of settings: immutable, strictly typed, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataSection(Section):
    """Which samples there are."""

    dataset: str = Field("digits", description="A name that `fedwave datasets` lists.")
    split: Literal["all", "train", "test"] = Field("all", description="Which published files to pool.")
    path: str | None = Field(None, description="File or folder, for the datasets arrays and image-folder.")
    image_size: PositiveInt | list[PositiveInt] | None = Field(
        None, description="Resize image-folder pictures to this side, or [height, width]."
    )
    images_per_class: PositiveInt | None = Field(
        None, description="tiny-imagenet: read only so many of a class."
    )
    standardise: Literal["pixel", "none"] = Field(
        "pixel",
        description="pixel: (x - mean) / (std + 0.001) of each pixel over the dataset; none: x / 255.",
    )
    num_samples: PositiveInt | None = Field(None, description="Synthetic data: how many samples.")
    num_classes: PositiveInt | None = Field(None, description="Synthetic data: how many classes.")
    shape: list[PositiveInt] | None = Field(None, description="Synthetic data: shape of one sample.")

    @field_validator("path")
    @classmethod
    def _found_from_anywhere(cls, path: str | None) -> str | None:
        return None if path is None else str(Path(path).absolute())


class PartitionSection(Section):
    """How the samples are shared out among the devices."""

    kind: str = Field("paper", description="paper, dirichlet or iid.")
    num_devices: PositiveInt = Field(100, description="All devices, training and held out together.")
    heldout_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.5, description="Share of the devices that only test."
    )
    shots: PositiveInt = Field(1, description="Support samples of each class on a device.")
    classes_per_device: PositiveInt | None = Field(None, description="paper: classes on a device (2).")
    mean_samples_per_class: PositiveFloat | None = Field(None, description="paper: mean of the Gaussian (5).")
    std_samples_per_class: NonNegativeFloat | None = Field(None, description="paper: its deviation (5).")
    max_samples_per_class: PositiveInt | None = Field(None, description="paper: upper truncation.")
    concentration: PositiveFloat | None = Field(None, description="dirichlet: small is more unequal.")
    samples_per_device: PositiveInt | None = Field(None, description="dirichlet and iid: samples a device.")


class ModelSection(Section):
    """What the devices train."""

    kind: str = Field("cnn", description="cnn, mlp, softmax, or package.module:factory for your own module.")
    channels: list[PositiveInt] = Field([32, 64, 128], description="cnn: channels of the layers.")
    hidden: list[PositiveInt] = Field([64], description="mlp: widths of the hidden layers.")


Gradient = Literal["exact", "first-order", "hessian-free", "plain"]


class AlgorithmSection(Section):
    """How they train, and who uploads."""

    name: Literal["fedavg", "per-fedavg", "nufm"] = Field(
        "nufm", description="Fills in gradient and selection where those are not given."
    )
    gradient: Gradient | None = Field(
        None,
        description="exact, first-order, hessian-free meta-gradient; plain is FedAvg's ordinary gradient.",
    )
    selection: str | None = Field(
        None, description="uniform or top-contribution; over a cell, cell.selection decides."
    )
    num_selected: PositiveInt = Field(
        20, description="n_k, devices that upload in a round; over a cell, the allocation decides."
    )
    num_local_steps: PositiveInt = Field(1, description="tau, local steps in a round.")
    inner_lr: NonNegativeFloat = Field(0.001, description="alpha, step size of the adaptation.")
    meta_lr: PositiveFloat = Field(0.001, description="beta, meta-learning rate.")
    similarity_penalty: NonNegativeFloat = Field(1.0, description="lambda_1 of the contribution.")
    variance_penalty: NonNegativeFloat = Field(1.0, description="lambda_2 of the contribution.")
    query_batch_size: PositiveInt | None = Field(
        None, description="Draw this many query samples afresh for each local step; default all of them."
    )

    @model_validator(mode="after")
    def _fill_in_from_name(self) -> AlgorithmSection:
        gradient, selection = ALGORITHMS[self.name]
        if self.gradient is None:
            object.__setattr__(self, "gradient", gradient)
        if self.selection is None:
            object.__setattr__(self, "selection", selection)
        return self


# name: (gradient, selection)
ALGORITHMS: dict[str, tuple[Gradient, str]] = {
    "fedavg": ("plain", "uniform"),
    "per-fedavg": ("exact", "uniform"),
    "nufm": ("exact", "top-contribution"),
}


class EvaluationSection(Section):
    """How the global model is tested on the held-out devices."""

    every: PositiveInt = Field(1, description="Evaluate after every so many rounds, and after the last.")
    num_steps: NonNegativeInt = Field(1, description="Adaptation steps on the support set.")
    inner_lr: NonNegativeFloat | None = Field(
        None, description="Their step size; default algorithm.inner_lr."
    )


class ExecutionSection(Section):
    """How it is computed. Only chunk_samples moves last bits of the results."""

    workers: NonNegativeInt = Field(0, description="Threads; 0 takes one for each core.")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N.")
    chunk_samples: NonNegativeInt = Field(0, description="Samples computed together; 0 chooses.")
    checkpoint_every: PositiveInt = Field(1, description="Rounds between checkpoints.")
    tensorboard: bool = Field(False, description="Also log to TensorBoard in the run folder.")


class Experiment(Section):
    """Everything that defines a run."""

    name: str = Field("experiment", description="What tables and plots call the run.")
    seed: NonNegativeInt = Field(0, description="The one seed.")
    num_rounds: PositiveInt = Field(50, description="K, rounds of training.")
    data: DataSection = DataSection()
    partition: PartitionSection = PartitionSection()
    model: ModelSection = ModelSection()
    algorithm: AlgorithmSection = AlgorithmSection()
    evaluation: EvaluationSection = EvaluationSection()
    execution: ExecutionSection = ExecutionSection()
    cell: CellSection | None = Field(
        None, description="Train over a radio cell, which then decides on the uploads; absent: ideal network."
    )
