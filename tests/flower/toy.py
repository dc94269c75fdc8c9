"""Devices whose every number can be worked out by hand: f_i(w) = |w - a_i|^2 / 2, one plain step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import Context
from numpy.typing import NDArray

from fedwave.flower import DeviceReport, Grant, RadioFacts, client_app

META_LR, PENALTIES = 0.5, {"similarity_penalty": 1.0, "variance_penalty": 1.0}
SIZE = 6


def target_of(position: int) -> NDArray[np.float32]:
    """a_i: devices far out have large gradients."""
    return np.random.default_rng(position).normal(size=SIZE).astype(np.float32) * np.float32(1 + position)


def samples_of(position: int) -> int:
    return 10 + position


def contribution_of(norm: float, num_samples: int) -> float:
    """Eq. (21) with both penalties 1, written out."""
    return norm**2 - 2.0 * (1.0 + num_samples**-0.5) * norm


@dataclass
class Quadratic:
    position: int
    grants: list[tuple[int, Grant]] = field(default_factory=list)

    @property
    def num_samples(self) -> int:
        return samples_of(self.position)

    def update(
        self, round_index: int, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, NDArray[Any]], DeviceReport]:
        gradient = arrays["w"] - target_of(self.position)
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        report = DeviceReport(
            contribution=contribution_of(norm, self.num_samples),
            loss=0.5 * norm**2,
            num_samples=self.num_samples,
            gradient_norms=np.array([norm]),
            radio=self.radio,
        )
        return {"w": arrays["w"] - np.float32(META_LR) * gradient}, report

    @property
    def radio(self) -> RadioFacts | None:
        return None

    def granted(self, grant: Grant) -> None:
        self.grants.append((self.position, grant))

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, float]:
        return {"loss": 0.5 * float(np.sum((arrays["w"] - target_of(self.position)) ** 2))}


def device_of(context: Context) -> Quadratic:
    return Quadratic(int(context.node_config["partition-id"]))


app = client_app(device_of)


def rounds_by_hand(
    first: NDArray[np.float32],
    num_rounds: int,
    num_selected: int,
    *,
    present: Mapping[int, list[int]] | list[int],
    lost: Mapping[int, list[int]] | None = None,
    liars: Mapping[int, float] | None = None,
) -> tuple[NDArray[np.float32], list[list[int]]]:
    """NUFM as a plain loop: who is there, whose upload is lost, whose report is made up, by round."""
    w, chosen = first, []
    for k in range(num_rounds):
        here = present[k] if isinstance(present, Mapping) else present
        score = {}
        for i in here:
            norm = float(np.linalg.norm((w - target_of(i)).astype(np.float64)))
            score[i] = contribution_of((liars or {}).get(i, 1.0) * norm, samples_of(i))
        best = sorted(sorted(score), key=lambda i: -score[i])[:num_selected]
        chosen.append(sorted(best))
        arrived = [i for i in sorted(best) if i not in (lost or {}).get(k, [])]
        if arrived:
            models = [w - np.float32(META_LR) * (w - target_of(i)) for i in arrived]
            w = np.mean([m.astype(np.float64) for m in models], axis=0).astype(np.float32)
    return w, chosen
