"""Devices computed in chunks: what report, collect and evaluate promise. What is lost is computed again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.devices import DevicePool, LocalWork, work
from fedwave.devices.chunked_devices import MAX_LOSSES, ChunkedDevices
from fedwave.devices.threads import ThreadExecutor
from fedwave.errors import DivergenceError, ProblemError, RunError
from fedwave.learning import Parameters
from fedwave.selection import contribution
from fedwave.units import IntArray
from tests.devices.pools import (
    DEVICE_IDS,
    EVERYONE,
    NUM_DEVICES,
    PENALTIES,
    QUERY_SIZES,
    assert_equal_models,
    assert_equal_reports,
    by_chunks,
    devices_of,
    evaluation_work,
    first_model,
    local_work,
    small_pool,
)


class Counting:
    """Local work that notes which devices are computed."""

    def __init__(self, work: LocalWork) -> None:
        self._work = work
        self.computed: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def compute(self, round_index: int, parameters: Parameters, positions: IntArray) -> Any:
        self.computed.extend(positions.tolist())
        return self._work.compute(round_index, parameters, positions)


def test_reports_stand_in_the_order_of_the_devices_whatever_the_order_of_the_chunks() -> None:
    work = local_work(chunk_samples=12)
    theta = first_model(work)
    who = np.array([1, 2, 3, 5, 6])
    assert [chunk.tolist() for chunk in work.chunks(who)] != [[i] for i in who]
    expected = by_chunks(work, 4, theta, who)
    with devices_of(work) as devices:
        reports = devices.report(4, theta, who, max_models=9)
        models = list(devices.collect(np.array([6, 1, 5])))
    assert reports.device_index.tolist() == who.tolist()
    assert reports.gradient_norms.tolist() == [expected[i][0] for i in who.tolist()]
    assert reports.loss.tolist() == [expected[i][1] for i in who.tolist()]
    assert reports.num_samples.tolist() == work.pool.num_samples[who].tolist()
    assert_equal_models(models, [expected[i][2] for i in (6, 1, 5)])


@pytest.mark.parametrize("kind", ["cnn", "mlp"])
@pytest.mark.parametrize("max_models", [0, 1, 3, 100])
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_models_that_were_not_kept_are_computed_again_to_the_last_bit(
    kind: str, max_models: int, num_workers: int
) -> None:
    # Devices of about the same size are stacked and padded: in other company, the last bits would differ.
    pool = small_pool(query_sizes=(12, 13, 11, 14, 12, 10, 12), shape=(1, 8, 8))
    work = local_work(kind, pool=pool, chunk_samples=64)
    theta = first_model(work)
    assert max(map(len, work.chunks(EVERYONE))) > 2
    expected = by_chunks(work, 1, theta, EVERYONE)
    for wanted in ([0, 1, 2, 3, 4, 5, 6], [4], [6, 2, 0]):
        with devices_of(work, num_workers=num_workers) as devices:
            devices.report(1, theta, EVERYONE, max_models=max_models)
            models = list(devices.collect(np.array(wanted)))
        assert_equal_models(models, [expected[i][2] for i in wanted])


def test_only_what_was_asked_for_is_computed_and_only_what_was_forgotten_again() -> None:
    work = Counting(local_work(chunk_samples=1))  # every device alone
    theta = first_model(work)
    who = np.array([0, 2, 3, 6])
    with devices_of(work) as devices:
        reports = devices.report(0, theta, who, max_models=2)
        assert sorted(work.computed) == who.tolist()
        ranked = who[np.argsort(-reports.contribution)].tolist()
        work.computed.clear()
        assert len(list(devices.collect(np.array(sorted(ranked[:2]))))) == 2
        assert work.computed == []  # those that contribute most were kept
        list(devices.collect(np.array(sorted(ranked[1:3]))))
        assert work.computed == [ranked[2]]


def test_a_new_round_forgets_the_models_of_the_old_one() -> None:
    work = local_work()
    first = first_model(work)
    second = {name: 2.0 * value for name, value in first.items()}
    with devices_of(work) as devices:
        devices.report(0, first, EVERYONE, max_models=9)
        devices.report(1, second, np.array([0, 4]), max_models=9)
        models = list(devices.collect(np.array([0, 4])))
    expected = by_chunks(work, 1, second, np.array([0, 4]))
    assert_equal_models(models, [expected[0][2], expected[4][2]])


def test_the_model_of_a_device_that_did_not_compute_cannot_be_collected() -> None:
    work = local_work()
    with devices_of(work) as devices:
        with pytest.raises(ProblemError, match="only devices that computed in this round .* got device 1"):
            list(devices.collect(np.array([1])))  # before the first round
        devices.report(0, first_model(work), np.array([1, 4]), max_models=9)
        for absent in (0, 5):
            with pytest.raises(ProblemError, match=f"can upload, got device {absent}"):
                list(devices.collect(np.array([1, absent])))


def test_the_evaluation_of_all_devices_is_in_their_own_order() -> None:
    work = evaluation_work(chunk_samples=14)
    theta = first_model(work)
    with devices_of(local_work(), work) as devices:
        result = devices.evaluate(theta)
    assert result is not None
    for position in range(NUM_DEVICES):
        loss, metric = work.compute(theta, np.array([position]))
        assert result.loss[position] == pytest.approx(loss[0], rel=1e-6)
        assert result.metric[position] == metric[0]
    assert result.device_ids.tolist() == DEVICE_IDS.tolist()
    assert result.num_query.tolist() == list(QUERY_SIZES)
    assert result.measured.name == "accuracy"


def test_the_training_devices_are_evaluated_as_held_out_ones_would_be() -> None:
    local, work = local_work(), evaluation_work(chunk_samples=14)
    theta = first_model(work)
    with devices_of(local, work) as devices:
        heldout, training = devices.evaluate(theta), devices.evaluate(theta, on_training=True)
    with devices_of(local, evaluation_work(pool=local.pool, chunk_samples=14)) as devices:
        expected = devices.evaluate(theta)
    assert heldout is not None
    assert training is not None
    assert expected is not None
    assert (training.loss.tolist(), training.metric.tolist()) == (
        expected.loss.tolist(),
        expected.metric.tolist(),
    )
    assert training.loss.tolist() != heldout.loss.tolist()


def test_without_held_out_devices_there_is_no_evaluation() -> None:
    pool = local_work().pool
    nobody = DevicePool(pool.dataset, pool.standardiser, (), np.zeros(0, dtype=np.int64), pool.torch_device)
    with devices_of(local_work(), evaluation_work(pool=nobody)) as devices:
        assert devices.evaluate(first_model(local_work())) is None


def test_a_loss_that_is_not_finite_stops_the_round_with_the_devices_own_number() -> None:
    work = local_work(chunk_samples=1)
    theta = {name: value * torch.nan for name, value in first_model(work).items()}
    with (
        devices_of(work) as devices,
        pytest.raises(DivergenceError, match=r"not finite in round 6 on device (5|11), got nan"),
    ):
        devices.report(6, theta, np.array([0, 4]), max_models=1)


def test_a_sum_of_steps_keeps_to_its_rule() -> None:
    """The rule of the work decides: without a step, the local model is the global one."""
    work = local_work(gradient="first-order")
    still = replace(work, rule=replace(work.rule, meta_lr=0.0))
    theta = first_model(still)
    with devices_of(still) as devices:
        devices.report(0, theta, EVERYONE, max_models=1)
        for model in devices.collect(EVERYONE):
            assert all(torch.equal(model[name], theta[name]) for name in theta)


class LosingExecutor(ThreadExecutor):
    """Threads that lose some of the models they are asked for."""

    def __init__(self, local: Any, *, losses: int) -> None:
        super().__init__(local, evaluation_work(), num_workers=2)
        self.losses = losses
        self.computed: list[int] = []

    def updates(self, *arguments: Any) -> Iterator[Any]:
        for reports in super().updates(*arguments):
            self.computed.extend(reports.device_index.tolist())
            yield reports

    def fetch(self, kept: Sequence[Parameters]) -> Iterator[Any]:
        for number, model in enumerate(kept):
            is_lost = self.losses > 0 and number % 2 == 0
            yield None if is_lost else model
        self.losses -= 1


@pytest.mark.parametrize("losses", [0, 1, 2, MAX_LOSSES])
def test_lost_models_are_computed_again_to_the_last_bit(losses: int) -> None:
    pool = small_pool(query_sizes=(12, 13, 11, 14, 12, 10, 12), shape=(1, 8, 8))
    local = local_work("cnn", pool=pool, chunk_samples=64)
    theta = first_model(local)
    executor = LosingExecutor(local, losses=losses)
    devices = ChunkedDevices(local, evaluation_work(), executor)
    devices.report(1, theta, EVERYONE, max_models=7)
    executor.computed.clear()
    models = list(devices.collect(np.array([6, 2, 0, 5])))
    devices.close()
    expected = by_chunks(local, 1, theta, EVERYONE)
    assert_equal_models(models, [expected[i][2] for i in (6, 2, 0, 5)])
    assert bool(executor.computed) == (losses > 0)


def test_models_that_are_lost_again_and_again_end_the_run() -> None:
    local = local_work()
    executor = LosingExecutor(local, losses=MAX_LOSSES + 1)
    devices = ChunkedDevices(local, evaluation_work(), executor)
    devices.report(1, first_model(local), EVERYONE, max_models=7)
    with pytest.raises(RunError, match="local models of this round were lost 5 times, got no device 0. Mach"):
        list(devices.collect(np.array([0])))
    devices.close()


def test_every_device_is_scored_once_and_as_if_all_were_scored_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = local_work(chunk_samples=12, num_local_steps=9)  # past 7 steps, numpy sums by halves
    num_scored = []

    def counting(norms: Any, *arguments: Any, **options: Any) -> Any:
        num_scored.append(len(norms))
        return contribution(norms, *arguments, **options)

    monkeypatch.setattr(work, "contribution", counting)
    with devices_of(local) as devices:
        reports = devices.report(0, first_model(local), EVERYONE, max_models=3)
    assert num_scored == [len(chunk) for chunk in local.chunks(EVERYONE)]
    together = contribution(reports.gradient_norms, reports.num_samples, **PENALTIES)
    assert reports.contribution.tolist() == together.tolist()


def test_closed_devices_leave_no_threads_and_torch_its_own_number_of_them() -> None:
    torch.set_num_threads(3)
    local = local_work()
    with devices_of(local) as devices:
        devices.report(0, first_model(local), EVERYONE, max_models=1)
        assert any(thread.name.startswith("fedwave") for thread in threading.enumerate())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fedwave")]
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("max_models", [0, 7])
def test_a_round_with_steps_of_its_own_is_that_of_work_with_so_many(max_models: int) -> None:
    work = local_work(chunk_samples=12, measures_curvature=True)
    theta, wanted = first_model(work), np.array([5, 0, 3])
    with devices_of(work) as devices, devices_of(work.with_steps(4)) as four:
        reports = devices.report(3, theta, EVERYONE, max_models=max_models, num_local_steps=4)
        expected = four.report(3, theta, EVERYONE, max_models=7)
        assert_equal_reports(reports, expected)
        assert reports.gradient_norms.shape == (7, 4)
        assert reports.num_gradients == 5
        assert_equal_models(list(devices.collect(wanted)), list(four.collect(wanted)))
        usual = devices.report(4, theta, EVERYONE, max_models=7)  # the next round is the work's own again
        assert usual.gradient_norms.shape == (7, 2)
        assert usual.num_gradients == 3


def test_reports_hold_what_each_chunk_measured() -> None:
    work = local_work(chunk_samples=12, measures_curvature=True)
    theta = first_model(work)
    with devices_of(work) as devices:
        reports = devices.report(2, theta, EVERYONE, max_models=7)
    assert reports.loss_lipschitz is not None
    assert reports.smoothness is not None
    for chunk in work.chunks(EVERYONE):
        own = work.compute(2, theta, chunk)
        assert own.smoothness is not None
        np.testing.assert_array_equal(reports.smoothness[chunk], own.smoothness)
        np.testing.assert_array_equal(reports.loss_lipschitz[chunk], own.loss_lipschitz)
    assert len(np.unique(reports.smoothness)) == 7
    with devices_of(local_work(chunk_samples=12)) as devices:
        without = devices.report(2, theta, EVERYONE, max_models=7)
    assert without.smoothness is None
    assert without.loss_lipschitz is None
    assert without.num_gradients is None
