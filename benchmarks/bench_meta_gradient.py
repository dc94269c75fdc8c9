"""What the three meta-gradients cost, and how far the Hessian-free one is from the exact one.

    python benchmarks/bench_meta_gradient.py

Times: the fastest of 60 local steps of eight devices of digits/nufm on one core. Errors: at the initial
model, of each of the 30 training devices, as a share of the Hessian term itself; at 1, leaving the term out
is as good. Asserted: the median error stays below a twentieth.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning import LOCAL_RULES, Parameters, meta_gradient
from fedwave.learning.objective import objective
from fedwave.learning.parameters import stack_copies
from fedwave.learning.rules import RULE
from fedwave.simulation.simulation import Simulation

GRADIENTS = ("exact", "first-order", "hessian-free")
INNER_LR = META_LR = 0.02  # of digits/nufm
NUM_STEPS = 60
LARGEST_MEDIAN = 0.05


def milliseconds_of_a_step(sim: Simulation, gradient: str) -> float:
    """Return the shortest of several steps: the others measure the rest of the machine."""
    rule = RULE.call(LOCAL_RULES[gradient], {}, inner_lr=INNER_LR, meta_lr=META_LR)
    devices = np.arange(8)
    support, query = sim.train.support(devices), sim.train.query(devices)
    parameters = stack_copies(sim.initial_state().parameters, len(devices))
    loss = objective(sim.model, sim.task)
    seconds = []
    for _ in range(NUM_STEPS):
        start = time.perf_counter()
        rule.step(loss, parameters, support, query, start=parameters)
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def errors(sim: Simulation) -> np.ndarray:
    """Return each device's |hessian-free - exact| / |first-order - exact|."""
    loss = objective(sim.model, sim.task)
    found = []
    for device in range(len(sim.train)):
        at = np.array([device])
        parameters = stack_copies(sim.initial_state().parameters, 1)
        support, query = sim.train.support(at), sim.train.query(at)
        exact, without, free = (
            flat(
                meta_gradient(
                    lambda own, batch: loss(own, batch).sum(),
                    parameters,
                    support,
                    query,
                    inner_lr=INNER_LR,
                    method=gradient,
                )
            )
            for gradient in GRADIENTS
        )
        found.append(float((free - exact).norm() / (without - exact).norm()))
    return np.array(found)


def flat(parameters: Parameters) -> torch.Tensor:
    """Return all numbers of a model as one vector in double precision."""
    return torch.cat([value.flatten() for value in parameters.values()]).double()


def main() -> None:
    torch.set_num_threads(1)
    sim = build_simulation(load_experiment("digits/nufm"))
    for gradient in GRADIENTS:
        print(f"{gradient:13} {milliseconds_of_a_step(sim, gradient):.1f} ms a step")
    for model in ("softmax", "mlp", "cnn"):
        settings = [f"model.kind={model}"] + (["model.channels=[32, 64]"] if model == "cnn" else [])
        shares = errors(build_simulation(load_experiment("digits/nufm", settings)))
        print(f"{model:13} median error {np.median(shares):.3f}, above 1 on {np.mean(shares > 1):.0%}")
        assert np.median(shares) < LARGEST_MEDIAN


if __name__ == "__main__":
    main()
