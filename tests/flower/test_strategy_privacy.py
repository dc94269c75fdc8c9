"""Flower's differential privacy around the two-phase round."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
)

from fedwave.errors import RunError
from fedwave.flower import client_app
from tests.flower.fake_grid import FakeGrid
from tests.flower.toy import META_LR, app, device_of, target_of
from tests.flower.toy_server import N, chosen_first, first_arrays, first_model, strategy

CLIP = 0.75


def clipped_mean(chosen: list[int], clip: float = CLIP) -> np.ndarray:
    """One round by hand: each change is scaled down to the clipping norm, then the mean is taken."""
    w = first_model().astype(np.float64)
    changes = [-META_LR * (w - target_of(i)) for i in chosen]
    return w + np.mean([c * min(1.0, clip / np.linalg.norm(c)) for c in changes], axis=0)


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
    with pytest.raises(RunError, match=f"device {chosen_first()[-1]} is excluded"):
        strategy(N, 2).start(grid, first_arrays(), num_rounds=1)
