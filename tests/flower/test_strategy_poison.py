"""A node that reports and sends a gradient of norm 1e6: the audit is content, a robust step stands firm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flwr.app import Context
from flwr.server.workflow import SecAggPlusWorkflow
from numpy.typing import NDArray

from fedwave.errors import ConfigError
from fedwave.flower import DeviceReport, SecureSum, client_app
from fedwave.learning.server_steps import (
    SERVER_STEPS,
    ServerClipNorm,
    ServerMean,
    ServerMedian,
    ServerStep,
    ServerTrimmedMean,
)
from tests.flower.fake_grid import FakeGrid
from tests.flower.toy import META_LR, Quadratic, contribution_of, target_of
from tests.flower.toy_server import N, first_arrays, first_model, strategy

LIAR, NORM = 2, 1e6
ROUNDS = 4


class Poisoner(Quadratic):
    """Descends a gradient of its own making, and reports just that one."""

    def update(
        self, round_index: int, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, NDArray[Any]], DeviceReport]:
        _, report = super().update(round_index, arrays)
        gradient = np.full_like(arrays["w"], NORM / np.sqrt(arrays["w"].size))
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        lie = replace(
            report,
            contribution=contribution_of(norm, self.num_samples),
            gradient_norms=np.array([norm]),
        )
        return {"w": arrays["w"] - np.float32(META_LR) * gradient}, lie


def device_of(context: Context) -> Quadratic:
    position = int(context.node_config["partition-id"])
    return (Poisoner if position == LIAR else Quadratic)(position)


def train(step: ServerStep) -> tuple[list[NDArray[Any]], list[Mapping[str, Any]]]:
    """Return the global model before each round and after the last, and what each round's log says."""
    server = strategy(N, 5, server_step=step)
    models: list[NDArray[Any]] = []
    result = server.start(
        FakeGrid(client_app(device_of), N),
        first_arrays(),
        num_rounds=ROUNDS,
        evaluate_fn=lambda _, arrays: models.append(arrays["w"].numpy()),  # type: ignore[func-returns-value]
    )
    np.testing.assert_array_equal(models[0], first_model())
    return models, list(result.train_metrics_clientapp.values())


def honest_models(before: NDArray[Any], log: Mapping[str, Any]) -> NDArray[Any]:
    """Return what the honest ones among the received have sent."""
    assert LIAR in log["received"]
    assert len(log["received"]) == 5
    assert (log["excluded"], log["dropped_nodes"]) == ([], [])  # the audit has nothing to say
    honest = [device for device in log["received"] if device != LIAR]
    return np.stack([before - np.float32(META_LR) * (before - target_of(device)) for device in honest])


def test_the_mean_follows_the_liar() -> None:
    models, logs = train(ServerMean())
    honest_models(models[0], logs[0])
    assert np.linalg.norm(models[1] - models[0]) == pytest.approx(META_LR * NORM / 5, rel=1e-3)


@pytest.mark.parametrize("step", [ServerTrimmedMean(1), ServerTrimmedMean(2), ServerMedian()])
def test_every_number_stays_between_those_that_honest_nodes_sent(step: ServerStep) -> None:
    models, logs = train(step)
    for (before, after), log in zip(pairwise(models), logs, strict=True):
        honest = honest_models(before, log)
        assert (honest.min(0) <= after).all()
        assert (after <= honest.max(0)).all()


@pytest.mark.parametrize("max_norm", [0.5, "median"])
def test_a_clipped_round_moves_the_model_no_further_than_it_may(max_norm: Any) -> None:
    models, logs = train(ServerClipNorm(max_norm))
    for (before, after), log in zip(pairwise(models), logs, strict=True):
        longest = np.linalg.norm(honest_models(before, log) - before, axis=1).max()
        most = longest if max_norm == "median" else max_norm
        assert 0 < np.linalg.norm(after - before) <= most + 1e-6


@pytest.mark.parametrize("name", SERVER_STEPS)
def test_secure_aggregation_is_refused_to_a_step_that_needs_each_model(name: str) -> None:
    workflow = SecAggPlusWorkflow(num_shares=1.0, reconstruction_threshold=0.6, max_weight=1.0)
    options = {"server_step": SERVER_STEPS[name](), "audited": False, "secure_sum": SecureSum(workflow)}
    if name in ("mean", "momentum"):
        strategy(N, 4, **options)
        return
    with pytest.raises(ConfigError) as caught:
        strategy(N, 4, **options)
    assert str(caught.value) == (
        "secure aggregation gives the mean of the models and no single one, got a server step that needs "
        f"each, {type(SERVER_STEPS[name]()).__name__}. Use mean or momentum, or leave out secure_sum."
    )
