"""Threads: results in order, one core each, and the same bits for any number of them."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing

import pytest
import torch

from fedwave.devices.threads import ThreadExecutor, available_cores, thread_devices
from tests.devices.pools import (
    EVERYONE,
    assert_equal_models,
    assert_equal_reports,
    devices_of,
    evaluation_work,
    first_model,
    local_work,
)


def threads(num_workers: int) -> closing[ThreadExecutor]:
    return closing(ThreadExecutor(local_work(), evaluation_work(), num_workers=num_workers))


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


@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_results_come_back_in_order(num_workers: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    with threads(num_workers) as executor:
        assert list(executor.in_order(work, range(20))) == [item * item for item in range(20)]


def test_few_items_are_taken_ahead_of_the_consumer() -> None:
    taken = []

    def items() -> object:
        for item in range(100):
            taken.append(item)
            yield item

    with threads(2) as executor:
        results = executor.in_order(lambda item: item, items())
        next(results)
        assert len(taken) <= 4


def test_a_failure_reaches_the_caller_and_torch_gets_its_threads_back() -> None:
    torch.set_num_threads(3)

    def fail(item: int) -> int:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"), threads(2) as executor:
        list(executor.in_order(fail, range(9)))
    assert torch.get_num_threads() == 3


def test_every_worker_computes_on_one_thread() -> None:
    seen = set()

    def note(_: int) -> None:
        seen.add((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(0.01)

    with threads(2) as executor:
        list(executor.in_order(note, range(6)))
    assert {threads for _, threads in seen} == {1}
    assert len(seen) == 2


@pytest.mark.parametrize(("num_workers", "while_open"), [(1, 1), (2, 3)])
def test_a_run_of_one_worker_leaves_all_other_cores_alone(num_workers: int, while_open: int) -> None:
    torch.set_num_threads(3)
    with threads(num_workers):
        assert torch.get_num_threads() == while_open
    assert torch.get_num_threads() == 3


def test_without_a_number_there_is_a_worker_for_each_core() -> None:
    num_cores = len(os.sched_getaffinity(0))
    assert available_cores() == num_cores
    with closing(ThreadExecutor(local_work(), evaluation_work())) as executor:
        assert executor.num_workers == num_cores
    with closing(thread_devices(local_work(), evaluation_work())) as devices:
        assert devices._executor.num_workers == num_cores
    with threads(3) as executor:
        assert executor.num_workers == 3


def test_a_consumer_that_stops_early_leaves_nothing_running() -> None:
    done = []

    def slow(item: int) -> int:
        time.sleep(0.005)
        done.append(item)
        return item

    with threads(1) as executor:
        results = executor.in_order(slow, range(50))
        next(results)
        results.close()
    assert len(done) <= 4
