"""Flower's differential privacy and secure aggregation around the two-phase round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    Result,
)

from fedwave.errors import ConfigError
from fedwave.flower import SecureSum, client_app
from fedwave.server import Plan, PlannerAround
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import META_LR, app, device_of, rounds_by_hand, target_of
from tests.flower.toy_server import first_arrays, first_model, strategy

N, CLIP = 6, 0.75


def clipped_mean(chosen: list[int], clip: float = CLIP) -> np.ndarray:
    """One round by hand: each change is scaled down to the clipping norm, then the mean is taken."""
    w = first_model().astype(np.float64)
    changes = [-META_LR * (w - target_of(i)) for i in chosen]
    return w + np.mean([c * min(1.0, clip / np.linalg.norm(c)) for c in changes], axis=0)


def chosen_first(num_selected: int = 2) -> list[int]:
    return rounds_by_hand(first_model(), 1, num_selected, present=list(range(N)))[1][0]


def test_clipping_on_the_server_wraps_the_strategy() -> None:
    private = DifferentialPrivacyServerSideFixedClipping(
        strategy(N, 2, audited=False), noise_multiplier=0.0, clipping_norm=CLIP, num_sampled_clients=2
    )
    result = private.start(FakeGrid(app, N), first_arrays(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["selected"] == chosen_first()
    np.testing.assert_allclose(result.arrays["w"].numpy(), clipped_mean(chosen_first()), rtol=1e-6)


def test_the_noise_is_in_the_model_that_goes_on_and_in_the_checkpoint(tmp_path) -> None:
    inner = strategy(N, 2, audited=False, checkpoint=tmp_path)
    private = DifferentialPrivacyServerSideFixedClipping(
        inner, noise_multiplier=1.0, clipping_norm=CLIP, num_sampled_clients=2
    )
    result = private.start(FakeGrid(app, N), first_arrays(), num_rounds=1)
    noise = result.arrays["w"].numpy() - clipped_mean(chosen_first())
    assert 0.01 < np.abs(noise).max() < 5 * CLIP / 2  # its deviation is CLIP / 2
    again = strategy(N, 2, audited=False, checkpoint=tmp_path)
    arrays, done = again.restore(first_arrays())
    assert done == 1
    np.testing.assert_array_equal(arrays["w"].numpy(), result.arrays["w"].numpy())


def test_clipping_on_the_nodes_wraps_the_upload_alone() -> None:
    private = DifferentialPrivacyClientSideFixedClipping(
        strategy(N, 2, audited=False), noise_multiplier=0.0, clipping_norm=CLIP, num_sampled_clients=2
    )
    grid = FakeGrid(client_app(device_of, upload_mods=[fixedclipping_mod]), N)
    result = private.start(grid, first_arrays(), num_rounds=1)
    np.testing.assert_allclose(result.arrays["w"].numpy(), clipped_mean(chosen_first()), rtol=1e-6)
    for _, kind, message, _ in grid.log:  # the mod sees the global model, which was not sent a second time
        assert bool(message.content.array_records) == (kind == "train.report")


def test_adaptive_clipping_gets_its_bit() -> None:
    private = DifferentialPrivacyClientSideAdaptiveClipping(
        strategy(N, 2, audited=False),
        noise_multiplier=0.1,
        num_sampled_clients=2,
        initial_clipping_norm=CLIP,
        clipped_count_stddev=0.1,
    )
    grid = FakeGrid(client_app(device_of, upload_mods=[adaptiveclipping_mod]), N)
    result = private.start(grid, first_arrays(), num_rounds=2)
    assert len(result.train_metrics_clientapp) == 2
    uploads = [reply for _, kind, _, reply in grid.log if kind == "train.upload"]
    assert all(reply.content.metric_records["metrics"]["norm_bit"] in (0, 1) for reply in uploads)
    assert private.clipping_norm != CLIP


def test_adaptive_clipping_on_the_server_wraps_the_strategy() -> None:
    private = DifferentialPrivacyServerSideAdaptiveClipping(
        strategy(N, 2, audited=False),
        noise_multiplier=0.1,
        num_sampled_clients=2,
        initial_clipping_norm=CLIP,
        clipped_count_stddev=0.1,
    )
    result = private.start(FakeGrid(app, N), first_arrays(), num_rounds=2)
    assert result.train_metrics_clientapp[1]["received"] == chosen_first()
    assert private.clipping_norm != CLIP


def test_local_differential_privacy_is_a_mod_of_the_upload() -> None:
    mod = LocalDpMod(clipping_norm=CLIP, sensitivity=0.0, epsilon=1.0, delta=1e-5)  # no noise: clipping alone
    grid = FakeGrid(client_app(device_of, upload_mods=[mod]), N)
    result = strategy(N, 2, audited=False).start(grid, first_arrays(), num_rounds=1)
    np.testing.assert_allclose(result.arrays["w"].numpy(), clipped_mean(chosen_first()), rtol=1e-6)


def test_the_audit_takes_a_clipped_upload_for_a_lie(said: list[str]) -> None:
    """Why it must be off with clipping: docs/flower.md says so."""
    mod = LocalDpMod(clipping_norm=CLIP, sensitivity=0.0, epsilon=1.0, delta=1e-5)
    grid = FakeGrid(client_app(device_of, upload_mods=[mod]), N)
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["excluded"] == chosen_first()


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
    result = secure(1, 1, FakeGrid(client_app(device_of, secure_aggregation=True), N))
    np.testing.assert_array_equal(result.arrays["w"].numpy(), first_model())
    assert "round 0 is skipped, the model stays as it is: no upload can be used" in said


def test_a_reply_that_breaks_the_secure_aggregation_skips_the_round(said: list[str]) -> None:
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    node = FIRST_NODE + chosen_first(4)[0]
    grid.tamper[node, "train"] = lambda message, reply: Message(RecordDict(), reply_to=message)
    result = secure(1, 4, grid)
    np.testing.assert_array_equal(result.arrays["w"].numpy(), first_model())
    assert any("the secure aggregation failed: KeyError" in line for line in said)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_secure_mean_that_is_not_finite_does_not_become_the_model(bad: float, monkeypatch) -> None:
    from fedwave.flower import secure as module

    real = module.parameters_to_ndarrays
    monkeypatch.setattr(module, "parameters_to_ndarrays", lambda p: [array * bad for array in real(p)])
    result = secure(1, 4, FakeGrid(client_app(device_of, secure_aggregation=True), N))
    np.testing.assert_array_equal(result.arrays["w"].numpy(), first_model())


@dataclass(frozen=True, eq=False)
class Weighing(PlannerAround):
    """Weighs a device's model by its number."""

    def plan(self, *arguments: Any) -> Plan:
        plan = super().plan(*arguments)
        return replace(plan, weights=1.0 + plan.selected)


def test_weights_of_a_plan_weigh_the_uploads_that_came() -> None:
    server = strategy(N, 3)
    server.federation = replace(server.federation, planner=Weighing(server.federation.planner))
    grid = FakeGrid(client_app(device_of), N)
    chosen = rounds_by_hand(first_model(), 1, 3, present=list(range(N)))[1][0]
    grid.tamper[FIRST_NODE + chosen[1], "train.upload"] = lambda message, reply: None
    result = server.start(grid, first_arrays(), num_rounds=1)
    left = [chosen[0], chosen[2]]
    models = [first_model() - 0.5 * (first_model() - target_of(i)) for i in left]
    expected = np.average(models, axis=0, weights=[1.0 + i for i in left])
    np.testing.assert_allclose(result.arrays["w"].numpy(), expected, rtol=1e-6)


def test_secure_aggregation_and_weights_are_refused() -> None:
    workflow = SecAggPlusWorkflow(num_shares=1.0, reconstruction_threshold=0.6, max_weight=1.0)
    server = strategy(N, 4, audited=False, secure_sum=SecureSum(workflow))
    server.federation = replace(server.federation, planner=Weighing(server.federation.planner))
    grid = FakeGrid(client_app(device_of, secure_aggregation=True), N)
    with pytest.raises(
        ConfigError, match="secure aggregation gives the plain mean of the models, got a plan"
    ):
        server.start(grid, first_arrays(), num_rounds=1)
