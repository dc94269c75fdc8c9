"""The round of ``bench_round.py`` as a plain loop, and as users of other packages would write it.

Everybody is given the same device update, torch's layers and autograd; the packages hand out the model,
call the update for each of the devices and take the mean. Every device uploads: that all of them can
express.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedwave.experiments import Experiment
from fedwave.learning import Parameters
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State

Samples = tuple[Tensor, Tensor]  # inputs and targets
ENDINGS: list[Callable[[], None]] = []  # what has to be called when no more rounds are wanted


def device_update(
    module: nn.Module, theta: Parameters, support: Samples, query: Samples, inner_lr: float, meta_lr: float
) -> Parameters:
    """Return one device's model after an exact meta-step, as a researcher would first write it."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in theta.items()}
    scores = functional_call(module, leaves, (support[0],))
    inner = torch.autograd.grad(F.cross_entropy(scores, support[1]), list(leaves.values()), create_graph=True)
    adapted = {n: v - inner_lr * g for (n, v), g in zip(leaves.items(), inner, strict=True)}
    scores = functional_call(module, adapted, (query[0],))
    outer = torch.autograd.grad(F.cross_entropy(scores, query[1]), list(leaves.values()))
    return {n: theta[n].detach() - meta_lr * g for n, g in zip(leaves, outer, strict=True)}


class PlainRound:
    """The devices' samples as tensors, and a loop over the devices."""

    def __init__(self, experiment: Experiment, sim: Simulation, state: State) -> None:
        self.rates = (experiment.algorithm.inner_lr, experiment.algorithm.meta_lr)
        self.module = sim.model.to_module(state.parameters)
        self.theta = {name: value.detach().clone() for name, value in self.module.named_parameters()}
        self.devices: list[tuple[Samples, Samples]] = []
        for position in range(len(sim.train)):
            support, query = sim.train.support(np.array([position])), sim.train.query(np.array([position]))
            self.devices.append(
                ((support.inputs[0], support.targets[0]), (query.inputs[0], query.targets[0]))
            )

    def run(self) -> Parameters:
        """Return the mean of the devices' models."""
        models = [device_update(self.module, self.theta, *own, *self.rates) for own in self.devices]
        return {name: torch.stack([one[name] for one in models]).mean(0) for name in self.theta}


def fedlab_round(plain: PlainRound) -> Callable[[], Parameters]:
    """Return the round in FedLab's standalone pipeline."""
    if find_spec("torchvision") is None:  # FedLab imports it for its datasets, none of which is used here
        sys.modules["torchvision"] = MagicMock()
    from fedlab.contrib.algorithm.basic_server import SyncServerHandler
    from fedlab.core.client.trainer import SerialClientTrainer
    from fedlab.core.standalone import StandalonePipeline
    from fedlab.utils import SerializationTool

    class Trainer(SerialClientTrainer):  # type: ignore[misc]
        packages: list[list[Tensor]]

        @property
        def uplink_package(self) -> list[list[Tensor]]:
            return self.packages

        def local_process(self, payload: list[Tensor], id_list: list[int]) -> None:
            self.packages = []
            for client in id_list:
                self.set_model(payload[0])
                theta = dict(self._model.named_parameters())
                own = device_update(self._model, theta, *plain.devices[client], *plain.rates)
                with torch.no_grad():
                    for name, value in theta.items():
                        value.copy_(own[name])
                self.packages.append([self.model_parameters])

    class Pipeline(StandalonePipeline):  # type: ignore[misc]
        def evaluate(self) -> None:
            pass

    trainer = Trainer(plain.module, len(plain.devices), cuda=False)

    def run() -> Parameters:
        handler = SyncServerHandler(plain.module, 1, 1.0, cuda=False, logger=logging.getLogger("fedlab"))
        Pipeline(handler, trainer).main()
        SerializationTool.deserialize_model(handler._model, handler.model_parameters)
        return {name: value.detach().clone() for name, value in handler._model.named_parameters()}

    return run


def pfl_round(plain: PlainRound) -> Callable[[], Parameters]:
    """Return the round in pfl-research's simulated backend."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.internal.ops import pytorch_ops
    from pfl.internal.ops.selector import set_framework_module
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    set_framework_module(pytorch_ops)

    class MetaAveraging(FederatedAveraging):  # type: ignore[misc]
        def get_next_central_contexts(self, *given: Any, **named: Any) -> Any:  # without its evaluation
            contexts, *rest = super().get_next_central_contexts(*given, **named)
            return contexts and tuple(replace(one, do_evaluation=False) for one in contexts), *rest

        def train_one_user(
            self, initial_model_state: Any, model: Any, user_dataset: Any, central_context: Any
        ) -> Any:
            theta = dict(model.pytorch_model.named_parameters())
            own = device_update(model.pytorch_model, theta, *user_dataset.raw_data, *plain.rates)
            with torch.no_grad():
                for name, value in theta.items():
                    value.copy_(own[name])
            return model.get_model_difference(initial_model_state), Metrics()

    def users() -> Iterator[int]:
        while True:
            yield from range(len(plain.devices))

    order = users()
    data = FederatedDataset(lambda user: Dataset(plain.devices[user]), lambda: next(order))
    plain.module.loss = plain.module.metrics = lambda *_: None  # type: ignore[assignment]  # pfl asks for them
    params = NNAlgorithmParams(
        central_num_iterations=1,
        evaluation_frequency=2,
        train_cohort_size=len(plain.devices),
        val_cohort_size=None,
    )
    train = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=1.0, local_batch_size=None)

    def run() -> Parameters:
        with torch.no_grad():
            for name, value in plain.module.named_parameters():
                value.copy_(plain.theta[name])
        model = PyTorchModel(
            plain.module, torch.optim.SGD, torch.optim.SGD(plain.module.parameters(), lr=1.0)
        )
        MetaAveraging().run(
            params,
            SimulatedBackend(data, None),
            model,
            train,
            NNEvalHyperParams(local_batch_size=None),
            [],
            send_metrics_to_platform=False,
        )
        done = {name: value.detach().clone() for name, value in plain.module.named_parameters()}
        with torch.no_grad():
            for name, value in plain.module.named_parameters():
                value.copy_(plain.theta[name])
        return done

    return run


def flower_round(plain: PlainRound) -> Callable[[], Parameters]:
    """Return the round in Flower's simulation (Ray), which lives on in a thread between the rounds."""
    from flwr.app import ArrayRecord, Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.simulation import run_simulation

    module, devices, rates = plain.module, plain.devices, plain.rates
    client, server = ClientApp(), ServerApp()
    asked: queue.Queue[bool] = queue.Queue()  # False: no more rounds
    answered: queue.Queue[Parameters] = queue.Queue()

    @client.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        theta = dict(message.content["model"].to_torch_state_dict())
        own = device_update(module, theta, *devices[int(context.node_config["partition-id"])], *rates)
        return Message(RecordDict({"model": ArrayRecord(own)}), reply_to=message)

    @server.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, _: Context) -> None:
        while asked.get():
            content = RecordDict({"model": ArrayRecord(plain.theta)})
            replies = list(
                grid.send_and_receive(
                    [Message(content, dst_node_id=node, message_type="train") for node in grid.get_node_ids()]
                )
            )
            models = [dict(reply.content["model"].to_torch_state_dict()) for reply in replies]
            assert len(models) == len(devices)
            answered.put({n: torch.stack([one[n] for one in models]).mean(0) for n in plain.theta})

    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    simulation = threading.Thread(
        target=run_simulation,
        args=(server, client, len(devices)),
        kwargs={"backend_config": backend},
        daemon=True,
    )
    simulation.start()

    def end() -> None:
        asked.put(False)
        simulation.join(timeout=60)

    ENDINGS.append(end)

    def run() -> Parameters:
        asked.put(True)
        return answered.get(timeout=300)

    return run


# Each takes the plain round and returns the same round in its own way; ImportError where it is not installed.
PEERS: dict[str, Callable[[PlainRound], Callable[[], Parameters]]] = {
    "FedLab": fedlab_round,
    "pfl-research": pfl_round,
    "Flower": flower_round,
}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, its children and theirs, as Linux counts them."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds[one] for one in family)
