"""NUFM, Alg. 1 of the paper, as a plain torch loop: one device after the other, nothing clever.

fedwave's own rounds stack devices and run in threads; a test holds them equal to this one, round by round.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import grad
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fedwave import load_experiment
from fedwave.experiments.build import build_simulation


def algorithm_1(module, devices, *, inner_lr, meta_lr, num_selected, num_local_steps=1, penalties=(1.0, 1.0)):
    """Yield the devices that upload and the next global model, round after round.

    Each device is its support and its query set, (inputs, labels) both.
    """
    theta = {name: value.detach() for name, value in module.named_parameters()}

    def loss(parameters, batch):
        return cross_entropy(functional_call(module, parameters, (batch[0],)), batch[1])

    while True:
        models, contributions = [], []
        for support, query in devices:  # lines 3-10; in a network, all at once
            own, u = theta, 0.0
            turning_point = penalties[0] + penalties[1] / (len(support[1]) + len(query[1])) ** 0.5
            for _ in range(num_local_steps):
                own = {name: value.requires_grad_() for name, value in own.items()}
                inner = grad(loss(own, support), list(own.values()), create_graph=True)
                adapted = {name: own[name] - inner_lr * g for name, g in zip(own, inner, strict=True)}
                meta = grad(loss(adapted, query), list(own.values()))  # Eq. (3), through the inner step
                norm = float(torch.cat([g.flatten() for g in meta]).norm())
                u += norm**2 - 2 * turning_point * norm  # Eq. (21)
                own = {n: (own[n] - meta_lr * g).detach() for n, g in zip(own, meta, strict=True)}  # Eq. (2)
            models.append(own)
            contributions.append(u)  # line 11: what a device reports
        selected = np.sort(np.argsort(-np.array(contributions), kind="stable")[:num_selected])  # line 12
        theta = {n: torch.stack([models[i][n] for i in selected]).mean(0) for n in theta}  # line 13, Eq. (6)
        yield selected, theta


def plain_devices(pool):
    """Return the samples of fedwave's devices as this loop takes them."""
    batches = [(pool.support(np.array([i])), pool.query(np.array([i]))) for i in range(len(pool))]
    return [[(batch.inputs[0], batch.targets[0]) for batch in pair] for pair in batches]


def main() -> None:
    simulation = build_simulation(load_experiment("digits/nufm", ["num_rounds=5"]))
    state, fast = simulation.initial_state(), simulation.open_devices()
    module = simulation.model.to_module(state.parameters)
    plain = algorithm_1(module, plain_devices(simulation.train), inner_lr=0.02, meta_lr=0.02, num_selected=10)
    for _ in range(simulation.num_rounds):
        selected, theta = next(plain)
        state, record = simulation.run_round(state, fast)
        ours = simulation.model.to_state_dict(state.parameters)
        apart = max(float((theta[name] - ours[name]).abs().max()) for name in theta)
        same = record.columns["selected_devices"] == simulation.train.device_ids[selected].tolist()
        print(f"round {record.round_index}: same devices: {same}, models at most {apart:.0e} apart")
    fast.close()


if __name__ == "__main__":
    main()
