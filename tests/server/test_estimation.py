"""Estimates of gains: their law by Monte Carlo, the promise of a quantile, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.rng import Stream, generator
from fedwave.server import ESTIMATION
from fedwave.server.estimation import ComplexGaussianError, ExactGains, GainError, LogNormalError
from fedwave.wireless.terms import ChannelDraw

KINDS: list[type[GainError]] = [LogNormalError, ComplexGaussianError]
SIZE = {LogNormalError: "error_db", ComplexGaussianError: "nmse"}
MANY = 200_000


def of_size(kind: type[GainError], size: Any, num_devices: int = MANY, **options: Any) -> GainError:
    return kind(num_devices=num_devices, **{SIZE[kind]: size}, **options)


def seen(estimation: Any, gain: Any, num_blocks: int = 2, seed: int = 0) -> np.ndarray[Any, Any]:
    draw = ChannelDraw(np.asarray(gain, dtype=float), np.zeros(num_blocks))
    return np.asarray(estimation.seen(draw, rng=np.random.default_rng(seed)).channel_gain)


def test_exact_gains_are_the_channel_itself() -> None:
    draw = ChannelDraw(np.ones(3), np.zeros(2))
    assert ExactGains().seen(draw, rng=np.random.default_rng(0)) is draw


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quantile", [None, 0.1])
@pytest.mark.parametrize("per_block", [False, True])
def test_an_error_of_zero_leaves_every_bit(kind: type[GainError], quantile: Any, per_block: bool) -> None:
    gain = np.random.default_rng(1).random((50, 2))
    estimation = of_size(kind, 0.0, 50, quantile=quantile, per_block=per_block)
    assert np.array_equal(seen(estimation, gain), gain)


def test_the_log_normal_error_has_the_deviation_that_it_states() -> None:
    error_db = 10 * np.log10(seen(of_size(LogNormalError, 4.0), np.full(MANY, 1e-9)) / 1e-9)
    assert error_db.mean() == pytest.approx(0.0, abs=5 * 4.0 / math.sqrt(MANY))
    # The standard error of a deviation s of N normal values is s / sqrt(2 N).
    assert error_db.std() == pytest.approx(4.0, abs=5 * 4.0 / math.sqrt(2 * MANY))


def test_the_complex_error_has_the_moments_of_pilots_in_noise() -> None:
    nmse = 0.3
    ratio = seen(of_size(ComplexGaussianError, nmse), np.full(MANY, 2.5)) / 2.5
    # |1 + e|^2 with E|e|^2 = v has the mean 1 + v and the variance 2 v + v^2.
    variance = 2 * nmse + nmse**2
    assert ratio.mean() == pytest.approx(1 + nmse, abs=5 * math.sqrt(variance / MANY))
    assert ratio.var() == pytest.approx(variance, rel=0.03)
    assert (ratio > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("quantile", [0.02, 0.1, 0.5, 0.9])
def test_the_true_gain_is_below_what_is_planned_with_probability_q(
    kind: type[GainError], size: float, quantile: float
) -> None:
    gain = np.random.default_rng(2).uniform(1e-12, 1e-9, MANY)  # whatever the gains are
    planned = seen(of_size(kind, size, quantile=quantile), gain)
    error = 5 * math.sqrt(quantile * (1 - quantile) / MANY)
    assert np.mean(gain < planned) == pytest.approx(quantile, abs=error)


@pytest.mark.parametrize("kind", KINDS)
def test_each_device_may_have_an_error_of_its_own(kind: type[GainError]) -> None:
    sizes = [0.0, 0.1, 3.0]
    estimation = of_size(kind, sizes, 3, quantile=0.2)
    found = np.array([seen(estimation, [1.0, 1.0, 1.0], seed=k) for k in range(4000)])
    assert (found[:, 0] == 1.0).all()
    assert np.log(found[:, 1]).std() < 0.5 * np.log(found[:, 2]).std()
    error = 5 * math.sqrt(0.2 * 0.8 / 4000)
    assert np.mean(found[:, 1:] > 1.0, axis=0) == pytest.approx([0.2, 0.2], abs=error)


def test_an_error_is_of_the_device_unless_it_is_of_each_block() -> None:
    gain = np.random.default_rng(3).random((40, 5)) + 0.5
    one = seen(LogNormalError(num_devices=40), gain, 5) / gain
    assert np.allclose(one, one[:, :1])
    assert len(np.unique(one[:, 0])) == 40
    each = seen(LogNormalError(num_devices=40, per_block=True), gain, 5) / gain
    assert len(np.unique(each)) == 200
    # Gains that are alike on all blocks are believed to differ, once each is measured.
    flat = seen(LogNormalError(num_devices=40, per_block=True), gain[:, 0], 5)
    assert flat.shape == (40, 5)
    assert seen(LogNormalError(num_devices=40), gain[:, 0], 5).shape == (40,)


def test_the_same_luck_at_every_size_and_another_in_every_round() -> None:
    draw = ChannelDraw(np.ones(9), np.zeros(2))

    def errors_db(size: float, round_index: int) -> np.ndarray[Any, Any]:
        rng = generator(5, Stream.ESTIMATION, round_index)
        gain = LogNormalError(num_devices=9, error_db=size).seen(draw, rng=rng).channel_gain
        return np.asarray(10 * np.log10(gain))

    assert errors_db(6.0, 0) == pytest.approx(2 * errors_db(3.0, 0))
    assert not np.allclose(errors_db(3.0, 0), errors_db(3.0, 1))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "log-normal",
            {"error_db": -1.0},
            "estimation.error_db must lie in 0 to 100, got -1 to -1. Use",
        ),
        ("log-normal", {"error_db": 101.0}, "error_db must lie in 0 to 100, got 101"),
        ("log-normal", {"error_db": [1.0, 2.0]}, "one number or one for each of the 3 devices, got 2"),
        ("complex-gaussian", {"nmse": [1.0, -2.0, 0.0]}, "estimation.nmse must lie in 0 to 100, got -2 to 1"),
        ("complex-gaussian", {"nmse": math.nan}, "estimation.nmse must lie in 0 to 100, got nan"),
        (
            "log-normal",
            {"quantile": 0.0},
            "estimation.quantile must lie between 0 and 1, got 0. Leave",
        ),
        ("complex-gaussian", {"quantile": 1.0}, "quantile must lie between 0 and 1, got 1"),
    ],
)
def test_what_is_no_error_is_refused_in_one_line(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ESTIMATION.call(ESTIMATION.find(kind), options, num_devices=3)
    assert message in str(caught.value)
