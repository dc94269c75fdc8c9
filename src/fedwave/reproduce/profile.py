"""How large a reproduction is: the paper's own settings, or small ones on the embedded digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROUND_OF_THE_PAPER = 19  # Fig. 2 and 3 are read there: "in round 19"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What the figures vary, and over how many seeds."""

    family: str  # of the presets
    num_rounds: int
    datasets: tuple[str, ...]  # of Table II and Figure 2
    step_datasets: tuple[str, ...]  # of Figure 3
    reading_datasets: tuple[str, ...]  # of the readings and the rates
    arm_datasets: tuple[str, ...]  # of the steps
    cell_dataset: str  # of Figures 4 to 7, of the scales and of what goes beyond the paper
    num_training: int  # devices that train
    num_selected: tuple[int, ...]  # n_k
    num_local_steps: tuple[int, ...]  # tau
    num_blocks: tuple[int, ...]  # M
    usual_num_blocks: int
    max_gains: tuple[float, ...]  # h_max
    weights: tuple[float, ...]  # eta_1, eta_2
    weight_stds: tuple[float, ...]  # other scales of the first weights
    combined_stds: tuple[float, ...]  # those that are combined with other readings
    meta_lrs: tuple[float, ...]  # beta
    usual_meta_lr: float
    contribution_sizes: tuple[float, ...]  # mean |u| in problem (P)
    samples_counted: tuple[int, ...]  # other D_i in Eq. (23) and (24)
    num_faulty: int  # devices at fault among those that train
    similarity_penalties: tuple[float, ...]  # lambda_1 that move the turning point
    seeds: Mapping[str, Mapping[str, int]]  # by item and dataset
    other_seeds: int  # for everything else
    settings: tuple[str, ...] = ()  # of every run, over those of its preset

    @property
    def few_selected(self) -> int:
        """The usual n_k: the smallest."""
        return self.num_selected[0]

    @property
    def is_quick(self) -> bool:
        """Whether it is small, on the embedded digits."""
        return self.family == "digits"

    def command(self, *words: str) -> str:
        """Return the command that makes all of it, or an item."""
        return " ".join(("fedwave reproduce", *words, *(["--quick"] if self.is_quick else [])))

    def num_seeds(self, item: str, dataset: str) -> int:
        """Return over how many seeds an item's runs on a dataset are made."""
        return self.seeds.get(item, {}).get(dataset, self.other_seeds)


_TABLE_2_SEEDS = {"fashion-mnist": 20, "cifar-10": 10, "cifar-100": 10, "tiny-imagenet": 5}

PAPER = Profile(
    family="paper",
    num_rounds=50,
    datasets=("fashion-mnist", "cifar-10", "cifar-100", "tiny-imagenet"),
    step_datasets=("fashion-mnist", "cifar-100"),
    reading_datasets=("fashion-mnist", "cifar-100"),
    arm_datasets=("fashion-mnist", "cifar-100", "cifar-10", "tiny-imagenet"),
    cell_dataset="fashion-mnist",
    num_training=50,
    num_selected=(20, 30, 40),
    num_local_steps=tuple(range(1, 11)),
    num_blocks=(1, 5, 10, 20, 30, 40, 50),
    usual_num_blocks=20,
    max_gains=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0),
    weights=(0.5, 1.0, 1.5, 2.0, 2.5),
    weight_stds=(0.05, 0.15, 0.2, 0.3),
    combined_stds=(0.15, 0.2),
    meta_lrs=(0.0003, 0.0005, 0.001, 0.002, 0.003, 0.006, 0.012, 0.024),
    usual_meta_lr=0.001,
    contribution_sizes=(1.0, 10.0, 100.0),
    samples_counted=(2, 5),
    num_faulty=5,
    similarity_penalties=(10.0, 20.0, 40.0),
    seeds={
        "table-2": _TABLE_2_SEEDS,
        "fig-2": _TABLE_2_SEEDS,
        "fig-4": {"fashion-mnist": 10},
        "fig-5": {"fashion-mnist": 10},
        "fig-6": {"fashion-mnist": 30},
        "fig-7": {"fashion-mnist": 30},
        "rates": {"fashion-mnist": 10},
        "steps": {"fashion-mnist": 10, "cifar-100": 10, "cifar-10": 5, "tiny-imagenet": 3},
        "robust": {"fashion-mnist": 10},
        "scales": {"fashion-mnist": 10},
    },
    other_seeds=5,
)

# The digits have 30 training devices: n_k and M are smaller, and 20 rounds reach the paper's round 19.
QUICK = Profile(
    family="digits",
    num_rounds=20,
    datasets=("digits",),
    step_datasets=("digits",),
    reading_datasets=("digits",),
    arm_datasets=("digits",),
    cell_dataset="digits",
    num_training=30,
    num_selected=(6, 10, 15),
    num_local_steps=(1, 2, 4),
    num_blocks=(1, 5, 10, 30),
    usual_num_blocks=10,
    max_gains=(0.25, 1.0, 2.0),
    weights=(0.5, 1.0, 2.5),
    weight_stds=(0.05,),
    combined_stds=(0.05,),
    meta_lrs=(0.01, 0.1),
    usual_meta_lr=0.01,
    contribution_sizes=(1.0, 10.0),
    samples_counted=(2,),
    num_faulty=3,
    similarity_penalties=(2.0, 5.0),
    seeds={},
    other_seeds=3,
)
