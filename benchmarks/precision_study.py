"""What do products in bfloat16 do to accuracy, and to who is selected? Paired runs over seeds.

    python benchmarks/precision_study.py [--seeds 5] [--rounds 50] [--datasets fashion-mnist cifar-100]

Each seed is run twice from the same start, data and streams: in float32 and in bfloat16. Printed for each
dataset: the final held-out accuracies, the mean of their differences with its 95 % interval (Student's t),
and the share of uploads that both runs give to the same devices, in round 0 (the same model: only rounding
decides) and over all rounds (by then two models have parted, as two runs in float32 with other chunks do
too: that pair is the control). Where the CPU has no bfloat16, it is imitated: operands are rounded,
multiplied and summed in float32, and the results rounded, as such a CPU does.
"""

from __future__ import annotations

import argparse
import math
import statistics
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from fedwave.devices.work import ComputedChunk, LocalWork
from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning.precision import require_precision

PLAIN, ROUNDED, CONTROL = "float32", "bfloat16", "float32, other chunks"


aten = torch.ops.aten
PRODUCTS = {
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.baddbmm.default,
    aten.convolution.default,
    aten.convolution_backward.default,
}


class Imitated(TorchDispatchMode):
    """Products of bfloat16 by way of float32. Without AVX-512, torch's own take ten times as long."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if func not in PRODUCTS or all(one.dtype != torch.bfloat16 for one in tensors):
            return func(*args, **kwargs)
        wide = tree_map_only(torch.Tensor, torch.Tensor.float, args)
        return tree_map_only(torch.Tensor, torch.Tensor.bfloat16, func(*wide, **kwargs))


class ImitatedWork(LocalWork):
    """The devices' work with such products, in whichever thread it is done."""

    def compute(self, *given: Any) -> ComputedChunk:
        with Imitated():
            return super().compute(*given)


@dataclass
class Outcome:
    """The last held-out accuracy, and the devices that uploaded in each round."""

    accuracy: float
    uploads: list[set[int]]


def run(dataset: str, seed: int, num_rounds: int, kind: str, *, is_imitated: bool) -> Outcome:
    """Return what one run of the paper's NUFM comes to."""
    settings = [f"data.dataset={dataset}", f"seed={seed}", f"num_rounds={num_rounds}"]
    settings.append(f"evaluation.every={num_rounds}")
    sim = build_simulation(load_experiment("paper/nufm", settings))
    if kind == ROUNDED:  # here, not in the settings: they refuse a CPU that would imitate it
        work = ImitatedWork if is_imitated else LocalWork
        sim = replace(sim, local=work(**{**vars(sim.local), "precision": "bfloat16"}))
    if kind == CONTROL:
        sim = replace(sim, local=replace(sim.local, chunk_samples=sim.local.chunk_samples // 2))
    state = sim.initial_state()
    uploads = []
    with closing(sim.open_devices()) as devices:
        for _ in range(num_rounds):
            state, record = sim.run_round(state, devices)
            uploads.append(set(np.asarray(record.columns["selected_devices"]).tolist()))
    return Outcome(float(record.columns["heldout_accuracy"]), uploads)


def overlap(one: list[set[int]], other: list[set[int]]) -> float:
    """Return the share of uploads that go to the same devices."""
    common = sum(len(a & b) for a, b in zip(one, other, strict=True))
    return common / sum(len(a) for a in one)


def study(dataset: str, num_seeds: int, num_rounds: int, *, is_imitated: bool) -> None:
    outcomes: dict[str, list[Outcome]] = {PLAIN: [], ROUNDED: [], CONTROL: []}
    for seed in range(num_seeds):
        for kind, own in outcomes.items():
            own.append(run(dataset, seed, num_rounds, kind, is_imitated=is_imitated))
    print(f"{dataset}, {num_rounds} rounds, seeds 0 to {num_seeds - 1}")
    base = outcomes[PLAIN]
    for kind, own in outcomes.items():
        print(f"  {kind:22} accuracy " + ", ".join(f"{100 * one.accuracy:.1f}" for one in own))
        if kind == PLAIN:
            continue
        differences = [100 * (a.accuracy - b.accuracy) for a, b in zip(own, base, strict=True)]
        spread = statistics.stdev(differences) / math.sqrt(num_seeds) if num_seeds > 1 else math.nan
        half = stats.t.ppf(0.975, num_seeds - 1) * spread if num_seeds > 1 else math.nan
        first = statistics.mean(overlap(a.uploads[:1], b.uploads[:1]) for a, b in zip(own, base, strict=True))
        all_rounds = statistics.mean(overlap(a.uploads, b.uploads) for a, b in zip(own, base, strict=True))
        print(f"  {'':22} minus float32: {statistics.mean(differences):+.2f} ± {half:.2f} points")
        print(f"  {'':22} same uploads: {first:.1%} in round 0, {all_rounds:.1%} in all")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--datasets", nargs="+", default=["fashion-mnist", "cifar-100"])
    given = parser.parse_args()
    is_imitated = False
    try:
        require_precision("bfloat16", torch.device("cpu"))
    except ConfigError as error:
        print(f"{error} Imitated here.")
        is_imitated = True
    for dataset in given.datasets:
        study(dataset, given.seeds, given.rounds, is_imitated=is_imitated)


if __name__ == "__main__":
    main()
