"""How fast is one NUFM round at paper scale, beside a plain autograd loop over the devices?

    python benchmarks/bench_round.py

Both compute the same round (50 training devices, the paper's CNN on 28x28 images, exact meta-gradients) in
the same process, in turns, so that a noisy machine slows both. Asserted: equal parameters, and at
least 1.6 times the speed.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import functional_call

from fedwave.experiments import Experiment, load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.selection import contribution
from fedwave.selection.top_contribution import largest
from fedwave.simulation.devices.workers import available_cores
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State

REPEATS = 7
REQUIRED_RATIO = 1.6


def plain_round(experiment: Experiment, sim: Simulation, state: State) -> dict[str, torch.Tensor]:
    """One round of Alg. 1 as a researcher would first write it: torch's layers, one device at a time."""
    inner_lr, meta_lr = experiment.algorithm.inner_lr, experiment.algorithm.meta_lr
    module = sim.model.to_module(state.parameters)
    theta = {name: value.detach() for name, value in module.named_parameters()}
    models, norms = [], []
    for position in range(len(sim.train)):
        support, query = sim.train.support(np.array([position])), sim.train.query(np.array([position]))
        leaves = {name: value.clone().requires_grad_() for name, value in theta.items()}
        scores = functional_call(module, leaves, (support.inputs[0],))
        inner = torch.autograd.grad(
            F.cross_entropy(scores, support.targets[0]), list(leaves.values()), create_graph=True
        )
        adapted = {
            name: value - inner_lr * gradient
            for (name, value), gradient in zip(leaves.items(), inner, strict=True)
        }
        scores = functional_call(module, adapted, (query.inputs[0],))
        outer = torch.autograd.grad(F.cross_entropy(scores, query.targets[0]), list(leaves.values()))
        norms.append(float(torch.cat([gradient.flatten() for gradient in outer]).norm()))
        models.append({n: v - meta_lr * g for (n, v), g in zip(theta.items(), outer, strict=True)})
    scores = contribution(
        np.array(norms)[:, None],
        sim.train.num_samples,
        similarity_penalty=sim.similarity_penalty,
        variance_penalty=sim.variance_penalty,
    )
    assert isinstance(experiment.selection.num_selected, int)
    best = largest(scores, experiment.selection.num_selected)
    return {name: torch.stack([models[p][name] for p in best]).mean(0) for name in theta}


def main() -> None:
    experiment = load_experiment(
        "paper/nufm",
        [
            "data.dataset=synthetic",
            "data.num_samples=20000",
            "data.shape=[1, 28, 28]",
            "evaluation.every=1000",
        ],
    )
    sim = build_simulation(experiment)
    state = sim.initial_state()
    plain_seconds, fast_seconds, ratios = [], [], []
    cores = available_cores()
    with closing(sim.open_devices()) as devices:  # as in a run, the threads live on from round to round
        for repeat in range(REPEATS + 1):
            torch.set_num_threads(cores)  # the plain loop may use all cores inside each operation
            start = time.perf_counter()
            expected = plain_round(experiment, sim, state)
            middle = time.perf_counter()
            torch.set_num_threads(1)
            after, _ = sim.run_round(state, devices)
            end = time.perf_counter()
            if repeat:  # the first is a warm-up
                plain_seconds.append(middle - start)
                fast_seconds.append(end - middle)
                ratios.append(plain_seconds[-1] / fast_seconds[-1])
    got = sim.model.to_state_dict(after.parameters)
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, rtol=1e-4, atol=1e-6)
    ratio = statistics.median(ratios)
    samples = int(sim.train.num_samples.sum())
    print(f"{len(sim.train)} devices, {samples} samples, {cores} cores")
    print(f"plain loop over devices  {statistics.median(plain_seconds):.3f} s a round (median of {REPEATS})")
    print(f"fedwave                  {statistics.median(fast_seconds):.3f} s a round")
    print(f"ratio                    {ratio:.2f} (each: {', '.join(f'{r:.2f}' for r in ratios)})")
    assert ratio >= REQUIRED_RATIO, f"a round is only {ratio:.2f} times faster, must be {REQUIRED_RATIO}"


if __name__ == "__main__":
    main()
