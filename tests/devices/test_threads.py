"""Devices on threads: the contract of report, collect and evaluate, bit-equal for any number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.devices import DevicePool, EvaluationWork, LocalWork, ThreadDevices
from fedwave.errors import DivergenceError, ProblemError
from fedwave.learning import Parameters
from fedwave.server import Reports
from fedwave.units import IntArray
from tests.devices.pools import (
    DEVICE_IDS,
    NUM_DEVICES,
    QUERY_SIZES,
    evaluation_work,
    local_work,
    small_pool,
)

EVERYONE = np.arange(NUM_DEVICES)


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


@contextmanager
def devices_of(
    local: Any, evaluation: EvaluationWork | None = None, *, num_workers: int = 2
) -> Iterator[ThreadDevices]:
    devices = ThreadDevices(local, evaluation or evaluation_work(), num_workers=num_workers)
    try:
        yield devices
    finally:
        devices.close()


def first_model(work: Any) -> Parameters:
    return work.model.initial_parameters(np.random.default_rng(2))


def assert_equal_reports(one: Reports, other: Reports) -> None:
    for name in ("device_index", "contribution", "loss", "num_samples", "gradient_norms"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_equal_models(one: list[Parameters], other: list[Parameters]) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert list(mine) == list(theirs)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def by_chunks(work: LocalWork, round_index: int, theta: Parameters, who: IntArray) -> dict[int, Any]:
    """Return each device's norms, loss and model, chunk after chunk, without threads or a store."""
    found = {}
    for chunk in work.chunks(who):
        done = work.compute(round_index, theta, chunk)
        for row, position in enumerate(chunk.tolist()):
            model = {name: value[row] for name, value in done.parameters.items()}
            found[position] = (done.gradient_norms[row].tolist(), float(done.loss[row]), model)
    return found


@pytest.mark.parametrize("kind", ["cnn", "mlp", "tests.learning.models.user_modules:small_user_net"])
def test_the_number_of_workers_changes_nothing_at_all(kind: str) -> None:
    work = local_work(kind, query_batch_size=3, chunk_samples=12)
    theta = first_model(work)
    outcomes = []
    for num_workers in (1, 2, 3):
        with devices_of(work, evaluation_work(kind, chunk_samples=12), num_workers=num_workers) as devices:
            reports = devices.report(2, theta, EVERYONE, max_models=3)
            outcomes.append((reports, list(devices.collect(EVERYONE)), devices.evaluate(theta)))
    for reports, models, heldout in outcomes[1:]:
        assert_equal_reports(reports, outcomes[0][0])
        assert_equal_models(models, outcomes[0][1])
        assert heldout is not None
        assert outcomes[0][2] is not None
        assert heldout.loss.tolist() == outcomes[0][2].loss.tolist()
        assert heldout.metric.tolist() == outcomes[0][2].metric.tolist()


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
        devices.report(0, first_model(work), np.array([0, 4]), max_models=9)
        with pytest.raises(ProblemError, match="only devices that computed in this round can upload, got de"):
            list(devices.collect(np.array([0, 5])))


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
