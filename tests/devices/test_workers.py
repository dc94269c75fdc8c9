from __future__ import annotations

import os
import threading
import time

import pytest
import torch

from fedwave.devices.workers import Workers, available_cores


@pytest.mark.parametrize("num_workers", [1, 2, 5])
def test_results_come_back_in_order(num_workers: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    with Workers(num_workers) as workers:
        assert list(workers.map(work, range(20))) == [item * item for item in range(20)]


def test_few_items_are_taken_ahead_of_the_consumer() -> None:
    taken = []

    def items() -> object:
        for item in range(100):
            taken.append(item)
            yield item

    with Workers(2) as workers:
        results = workers.map(lambda item: item, items())
        next(results)
        assert len(taken) <= 4


def test_a_failure_reaches_the_caller_and_torch_gets_its_threads_back() -> None:
    torch.set_num_threads(3)

    def fail(item: int) -> int:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"), Workers(2) as workers:
        list(workers.map(fail, range(9)))
    assert torch.get_num_threads() == 3


def test_every_worker_computes_on_one_thread() -> None:
    seen = set()

    def note(_: int) -> None:
        seen.add((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(0.01)

    with Workers(2) as workers:
        list(workers.map(note, range(6)))
    assert {threads for _, threads in seen} == {1}
    assert len(seen) == 2


def test_without_a_number_there_is_a_worker_for_each_core() -> None:
    with Workers() as workers:
        assert workers.num_workers == available_cores() == len(os.sched_getaffinity(0))
    with Workers(3) as workers:
        assert workers.num_workers == 3


def test_a_consumer_that_stops_early_leaves_nothing_running() -> None:
    done = []

    def slow(item: int) -> int:
        time.sleep(0.005)
        done.append(item)
        return item

    with Workers(1) as workers:
        results = workers.map(slow, range(50))
        next(results)
        results.close()
    assert len(done) <= 4
