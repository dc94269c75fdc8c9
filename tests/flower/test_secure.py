"""Flower's secure aggregation as the second phase: the mean comes, and no model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.serverapp.strategy import Result

from fedwave.errors import ConfigError, RunError
from fedwave.flower import SecureSum, client_app
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import device_of, rounds_by_hand
from tests.flower.toy_server import N, Weighing, chosen_first, first_arrays, first_model, strategy


def secure(num_rounds: int, num_selected: int, grid: FakeGrid, clipping_range: float = 32.0) -> Result:
    workflow = SecAggPlusWorkflow(
        num_shares=1.0, reconstruction_threshold=0.6, max_weight=1.0, clipping_range=clipping_range
    )
    server = strategy(N, num_selected, audited=False, secure_sum=SecureSum(workflow))
    return server.start(grid, first_arrays(), num_rounds=num_rounds)


def test_secure_aggregation_gives_the_mean_and_no_model() -> None:
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    result = secure(3, 4, grid)
    model, chosen = rounds_by_hand(first_model(), 3, 4, present=list(range(N)))
    # Values are rounded to 2^22 levels between -32 and 32.
    np.testing.assert_allclose(result.arrays["w"].numpy(), model, atol=3 * 64 / 2**22)
    for record, few in zip(result.train_metrics_clientapp.values(), chosen, strict=True):
        assert record["selected"] == few
        assert record["received"] == few
        assert record["upload_bytes_up"] > 0
    for _, _, _, reply in grid.log:  # no reply holds a model in the clear
        assert not any(len(record) for record in reply.content.array_records.values())


def test_who_leaves_during_the_secure_aggregation_is_left_out_of_the_mean() -> None:
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    chosen = chosen_first(5)
    gone = chosen[1]

    def vanish(message: Message, reply: Message) -> Message | None:
        stage = message.content.config_records["secaggplus_configs"]["stage"]
        return reply if stage in ("setup", "share_keys") else None

    grid.tamper[FIRST_NODE + gone, "train"] = vanish
    result = secure(1, 5, grid)
    model, _ = rounds_by_hand(first_model(), 1, 5, present=list(range(N)), lost={0: [gone]})
    record = result.train_metrics_clientapp[1]
    assert record["received"] == [i for i in chosen if i != gone]
    np.testing.assert_allclose(result.arrays["w"].numpy(), model, atol=64 / 2**22)


def test_too_few_for_a_secure_aggregation_are_no_round(said: list[str]) -> None:
    with pytest.raises(RunError, match="nothing was learned"):
        secure(1, 1, FakeGrid(client_app(device_of, secure_aggregation=True), N))
    assert "round 0 is skipped, the model stays as it is: no upload can be used" in said


def test_a_reply_that_breaks_the_secure_aggregation_skips_the_round(said: list[str]) -> None:
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    node = FIRST_NODE + chosen_first(4)[0]
    grid.tamper[node, "train"] = lambda message, reply: Message(RecordDict(), reply_to=message)
    with pytest.raises(RunError, match="no upload can be used"):
        secure(1, 4, grid)
    assert any("the secure aggregation failed: KeyError" in line for line in said)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_secure_mean_that_is_not_finite_does_not_become_the_model(bad: float, monkeypatch) -> None:
    from fedwave.flower import secure as module

    real = module.parameters_to_ndarrays
    monkeypatch.setattr(module, "parameters_to_ndarrays", lambda p: [array * bad for array in real(p)])
    with pytest.raises(RunError, match="the global model is not finite after round 0"):
        secure(1, 4, FakeGrid(client_app(device_of, secure_aggregation=True), N))


def test_secure_aggregation_and_weights_are_refused() -> None:
    workflow = SecAggPlusWorkflow(num_shares=1.0, reconstruction_threshold=0.6, max_weight=1.0)
    server = strategy(N, 4, audited=False, secure_sum=SecureSum(workflow))
    server.federation = replace(server.federation, planner=Weighing(server.federation.planner))
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    with pytest.raises(
        ConfigError, match="secure aggregation gives the plain mean of the models, got a plan"
    ):
        server.start(grid, first_arrays(), num_rounds=1)


def test_a_secure_mean_of_another_shape_does_not_become_the_model(said: list[str], monkeypatch) -> None:
    from fedwave.flower import secure as module

    real = module.parameters_to_ndarrays
    monkeypatch.setattr(module, "parameters_to_ndarrays", lambda p: [array[:1] for array in real(p)])
    with pytest.raises(RunError, match="no upload can be used"):
        secure(1, 4, FakeGrid(client_app(device_of, secure_aggregation=True), N))
    assert any("the secure aggregation failed: BadReply: the mean has the shapes" in line for line in said)
