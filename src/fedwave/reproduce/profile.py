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
    reading_datasets: tuple[str, ...]
    cell_dataset: str  # of Figures 4 to 7
    num_selected: tuple[int, ...]  # n_k
    num_local_steps: tuple[int, ...]  # tau
    num_blocks: tuple[int, ...]  # M
    usual_num_blocks: int
    max_gains: tuple[float, ...]  # h_max
    weights: tuple[float, ...]  # eta_1, eta_2
    weight_stds: tuple[float, ...]  # other scales of the first weights
    similarity_penalties: tuple[float, ...]  # lambda_1 that move the turning point
    seeds: Mapping[str, int]  # by dataset, for Table II and Figure 2
    other_seeds: int  # for everything else
    settings: tuple[str, ...] = ()  # of every run, over those of its preset

    @property
    def few_selected(self) -> int:
        """The usual n_k: the smallest."""
        return self.num_selected[0]


PAPER = Profile(
    family="paper",
    num_rounds=50,
    datasets=("fashion-mnist", "cifar-10", "cifar-100", "tiny-imagenet"),
    step_datasets=("fashion-mnist", "cifar-100"),
    reading_datasets=("fashion-mnist", "cifar-100"),
    cell_dataset="fashion-mnist",
    num_selected=(20, 30, 40),
    num_local_steps=tuple(range(1, 11)),
    num_blocks=(1, 5, 10, 20, 30, 40, 50),
    usual_num_blocks=20,
    max_gains=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0),
    weights=(0.5, 1.0, 1.5, 2.0, 2.5),
    weight_stds=(0.05, 0.2),
    similarity_penalties=(10.0, 20.0, 40.0),
    seeds={"fashion-mnist": 10, "cifar-100": 10, "cifar-10": 5, "tiny-imagenet": 3},
    other_seeds=5,
)

# The digits have 30 training devices: n_k and M are smaller, and 20 rounds reach the paper's round 19.
QUICK = Profile(
    family="digits",
    num_rounds=20,
    datasets=("digits",),
    step_datasets=("digits",),
    reading_datasets=("digits",),
    cell_dataset="digits",
    num_selected=(6, 10, 15),
    num_local_steps=(1, 2, 4),
    num_blocks=(1, 5, 10, 30),
    usual_num_blocks=10,
    max_gains=(0.25, 1.0, 2.0),
    weights=(0.5, 1.0, 2.5),
    weight_stds=(0.05,),
    similarity_penalties=(2.0, 5.0),
    seeds={"digits": 3},
    other_seeds=3,
)
