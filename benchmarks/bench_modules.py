"""Are modules of the user's own at least as fast as a plain loop: a small ResNet, an LSTM, a transformer?

    python benchmarks/bench_modules.py [resnet Lstm Transformer]

A round of 20 devices with exact meta-gradients on one thread: mapped over the devices (``vmap``), one after
the other (``loop``), and as the plain loop that a researcher would write (``round_peers.py``). Everything
in turns; CPU seconds, the shortest of several. Printed is also what ``execution.batching = "auto"``
chooses. Asserted: equal results, and that what is chosen takes at most a tenth more than the plain loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedwave.experiments import load_experiment
from fedwave.experiments.build import VALUES_PER_CHUNK, build_simulation
from fedwave.learning import Parameters
from fedwave.learning.models import UserModel
from round_peers import PlainRound

REPEATS = 3
SLACK = 1.1


class Block(nn.Module):
    """Two convolutions with a shortcut; group norm, as batch norm would mix samples."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(4, width),
        )

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(images + self.body(images))


def resnet(num_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        Block(16),
        Block(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, num_outputs),
    )


class Lstm(nn.Module):
    """Reads an image row by row."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(28, 32, batch_first=True)
        self.head = nn.Linear(32, num_outputs)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.lstm(images[:, 0])[0][:, -1])
        return outputs


class Transformer(nn.Module):
    """Attends over the rows of an image."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.embed = nn.Linear(28, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, num_outputs)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.encoder(self.embed(images[:, 0])).mean(1))
        return outputs


def measure(name: str) -> None:
    settings = ["data.dataset=synthetic", "data.dataset.num_samples=8000", "data.dataset.shape=[1, 28, 28]"]
    settings += ["partition.num_devices=40", f"model.kind=bench_modules:{name}", "execution.device=cpu"]
    experiment = load_experiment("paper/nufm", settings)
    sim = build_simulation(experiment)
    model = sim.model
    assert isinstance(model, UserModel)
    chosen = "vmap" if model.is_vectorised else "loop"
    fresh = UserModel(f"bench_modules:{name}", (1, 28, 28), sim.train.dataset.num_outputs)
    can_map = fresh.is_vectorised  # before anything was timed
    samples = max(VALUES_PER_CHUNK // 784, 16)
    state = sim.initial_state()
    plain = PlainRound(experiment, sim, state)

    def run(is_loop: bool) -> Parameters:
        model.use_loop(is_loop)
        work = replace(sim.local, chunk_samples=1 if is_loop else samples)
        done = [
            work.compute(0, state.parameters, chunk).parameters
            for chunk in work.chunks(np.arange(len(sim.train)))
        ]
        return {key: torch.cat([one[key] for one in done]).mean(0) for key in done[0]}

    ways: dict[str, Callable[[], Parameters]] = {"loop": partial(run, True), "plain": plain.run}
    if can_map:
        ways["vmap"] = partial(run, False)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(REPEATS + 1):
        for way, compute in ways.items():
            start = time.process_time()
            result = compute()
            if repeat:
                seconds[way].append(time.process_time() - start)
            elif way != "plain":
                for key, value in plain.run().items():
                    torch.testing.assert_close(result[key], value, rtol=1e-3, atol=1e-5)
    best = {way: min(own) for way, own in seconds.items()}
    shown = ", ".join(f"{way} {own:.3f}" for way, own in best.items())
    print(
        f"{name:12} CPU s a round: {shown}; auto takes {chosen}: {best['plain'] / best[chosen]:.2f} x plain",
        flush=True,
    )
    assert best[chosen] <= SLACK * best["plain"]


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or ("resnet", "Lstm", "Transformer"):
        with sdpa_kernel(SDPBackend.MATH):  # the plain loop needs it too: fused attention has one derivative
            measure(name)


if __name__ == "__main__":
    main()
