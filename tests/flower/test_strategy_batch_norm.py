"""A torch model with batch normalisation in an app of one's own: its buffers travel, and are no gradient."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord
from numpy.typing import NDArray
from torch import nn

from fedwave.errors import ConfigError, RunError
from fedwave.flower import DeviceReport, Grant, TwoPhase, client_app
from fedwave.flower.messages import to_arrays
from fedwave.learning.server_steps.mean import ServerMean
from fedwave.learning.server_steps.momentum import ServerMomentum
from fedwave.selection import TopContribution
from fedwave.server import ContributionAudit, PolicyPlanner, PolicyRunner
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from tests.flower.bad_replies import lie
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import PENALTIES, contribution_of

LR, NUM_SAMPLES, N = 0.05, 32, 3


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


@cache
def samples(position: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(position)
    x = torch.randn(NUM_SAMPLES, 4, generator=generator) + position
    return x, x.sum(1, keepdim=True)


class TorchDevice:
    """Plain SGD, as anybody writes it."""

    num_samples = NUM_SAMPLES

    def __init__(self, position: int, optimiser: str = "sgd") -> None:
        self.position = position
        self.optimiser = optimiser

    def update(self, _: int, arrays: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], DeviceReport]:
        model = self._loaded(arrays)
        x, y = samples(self.position)
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        optimiser = kinds[self.optimiser](model.parameters(), lr=LR)
        loss = nn.functional.mse_loss(model.train()(x), y)
        loss.backward()
        squares = [float(p.grad.double().square().sum()) for p in model.parameters() if p.grad is not None]
        norm = float(np.sqrt(sum(squares)))
        optimiser.step()
        report = DeviceReport(
            contribution=contribution_of(norm, NUM_SAMPLES),
            loss=float(loss),
            num_samples=NUM_SAMPLES,
            gradient_norms=np.array([norm]),
        )
        return {name: value.numpy() for name, value in model.state_dict().items()}, report

    def granted(self, grant: Grant) -> None:
        pass

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, float]:
        x, y = samples(self.position)
        with torch.no_grad():
            return {"loss": float(nn.functional.mse_loss(self._loaded(arrays).eval()(x), y))}

    @staticmethod
    def _loaded(arrays: Mapping[str, NDArray[Any]]) -> nn.Module:
        model = net()
        model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
        return model


def grid(optimiser: str = "sgd") -> FakeGrid:
    return FakeGrid(
        client_app(lambda context: TorchDevice(int(context.node_config["partition-id"]), optimiser)), N
    )


def server(names: Any, step: Any = None, **options: Any) -> TwoPhase:
    runner = PolicyRunner(TopContribution(N), np.ones(N, dtype=np.int64), seed=0)
    federation = Federation(
        planner=PolicyPlanner(runner), world=IdealWorld(), server_step=step or ServerMean()
    )
    audit = ContributionAudit(meta_lr=LR, trainable=names, **PENALTIES)
    return TwoPhase(federation, num_devices=N, audit=audit, **options)


def first() -> ArrayRecord:
    return ArrayRecord(net().state_dict())


def loss_of(arrays: ArrayRecord) -> float:
    return float(np.mean([TorchDevice(i).evaluate(to_arrays(arrays))["loss"] for i in range(N)]))


TRAINABLE = dict(net().named_parameters())


def test_a_model_with_batch_normalisation_trains_and_its_buffers_are_averaged(tmp_path: Path) -> None:
    assert first()["1.num_batches_tracked"].shape == ()
    for num_rounds in (3, 6):  # the server is started anew in between
        result = server(TRAINABLE, evaluate_every=6, checkpoint=tmp_path).start(
            grid(), first(), num_rounds=num_rounds
        )
    for record in result.train_metrics_clientapp.values():
        assert (record["received"], record["excluded"], record["dropped_nodes"]) == ([0, 1, 2], [], [])
    last = to_arrays(result.arrays)
    assert (last["1.num_batches_tracked"].shape, int(last["1.num_batches_tracked"])) == ((), 6)
    assert loss_of(result.arrays) < 0.5 * loss_of(first())
    assert result.evaluate_metrics_clientapp[6]["loss"] == pytest.approx(loss_of(result.arrays))


def test_a_round_is_the_mean_of_parameters_and_buffers() -> None:
    result = server(TRAINABLE).start(grid(), first(), num_rounds=1)
    own = [TorchDevice(i).update(0, to_arrays(first()))[0] for i in range(N)]
    for name, value in to_arrays(result.arrays).items():
        expected = np.mean([model[name].astype(np.float64) for model in own], axis=0)
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-7)


def test_a_server_step_with_momentum_keeps_the_type_of_a_counter() -> None:
    result = server(TRAINABLE, ServerMomentum(momentum=0.5)).start(grid(), first(), num_rounds=3)
    assert result.arrays["1.num_batches_tracked"].numpy().dtype == np.int64
    for record in result.train_metrics_clientapp.values():
        assert record["received"] == [0, 1, 2]


def test_a_liar_is_found_out_in_the_trainable_arrays() -> None:
    nodes = grid()
    nodes.tamper[FIRST_NODE + 1, "train.report"] = lie
    record = server(TRAINABLE).start(nodes, first(), num_rounds=1).train_metrics_clientapp[1]
    assert (record["excluded"], record["received"]) == ([1], [0, 2])


def test_an_audit_that_takes_buffers_for_gradients_excludes_the_honest() -> None:
    """Why the names are needed: docs/flower.md says so."""
    with pytest.raises(RunError, match="the model moved by a gradient of norm .* is excluded"):
        server(None).start(grid(), first(), num_rounds=1)


def test_an_audit_of_another_optimiser_excludes_the_honest() -> None:
    """Why it is for plain SGD alone: docs/flower.md says so."""
    with pytest.raises(RunError, match="the model moved by a gradient of norm .* is excluded"):
        server(TRAINABLE).start(grid("adam"), first(), num_rounds=1)


def test_an_audit_of_names_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"trainable must name arrays of the model, got \['0.wieght'\]"):
        server(["0.wieght"]).start(grid(), first(), num_rounds=1)
