"""A server by hand: policies and server steps as lists and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from examples.plain_nufm import Theta


@dataclass
class PlainServer:
    """Selection and server step of a run, by hand. ``history`` is who was selected in each round."""

    policy: str
    num_selected: int
    seed: int
    num_samples: Any
    momentum: float | None = None

    def __post_init__(self) -> None:
        self.history: list[list[int]] = []
        self.velocity: Theta = {}

    def asked(self, round_index: int) -> list[int]:
        everyone = list(range(len(self.num_samples)))
        luck = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2, round_index)))
        if self.policy == "uniform":
            return sorted(luck.choice(len(everyone), self.num_selected, replace=False).tolist())
        if self.policy == "power-of-choice":
            share = np.array(self.num_samples) / sum(self.num_samples)
            drawn = luck.choice(len(everyone), 2 * self.num_selected, replace=False, p=share)
            return sorted(drawn.tolist())
        if self.policy == "round-robin":
            # A list of who is next; whoever had a turn goes to its end, lower indices first.
            waiting = everyone
            for chosen in self.history:
                waiting = [i for i in waiting if i not in chosen] + sorted(chosen)
            return sorted(waiting[: self.num_selected])
        return everyone

    def select(self, asked: list[int], contribution: list[float], loss: list[float]) -> list[int]:
        score = {"top-contribution": contribution, "power-of-choice": loss}.get(self.policy)
        order = range(len(asked))
        ranked = order if score is None else sorted(order, key=lambda i: -score[i])
        self.history.append(sorted(asked[i] for i in list(ranked)[: self.num_selected]))
        return self.history[-1]

    def step(self, theta: Theta, models: list[Theta]) -> Theta:
        mean = {name: sum(model[name] for model in models) / len(models) for name in theta}
        if self.momentum is None:
            return mean
        self.velocity = {
            name: self.momentum * self.velocity.get(name, torch.zeros_like(value)) + (value - mean[name])
            for name, value in theta.items()
        }
        return {name: value - self.velocity[name] for name, value in theta.items()}
