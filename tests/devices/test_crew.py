"""Models that get lost between the phases are computed again in their old company, but not for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from fedwave.devices.crew import MAX_LOSSES, CrewDevices
from fedwave.devices.threads import ThreadCrew
from fedwave.errors import RunError
from fedwave.learning import Parameters
from tests.devices.pools import evaluation_work, local_work, small_pool
from tests.devices.test_threads import (
    EVERYONE,
    assert_equal_models,
    by_chunks,
    first_model,
)


class LosingCrew(ThreadCrew):
    """Threads that lose some of the models they are asked for."""

    def __init__(self, local: Any, *, losses: int) -> None:
        super().__init__(local, evaluation_work(), num_workers=2)
        self.losses = losses
        self.computed: list[int] = []

    def updates(self, *arguments: Any) -> Iterator[Any]:
        for figures in super().updates(*arguments):
            self.computed.extend(figures[0].tolist())
            yield figures

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
    crew = LosingCrew(local, losses=losses)
    devices = CrewDevices(local, evaluation_work(), crew)
    devices.report(1, theta, EVERYONE, max_models=7)
    crew.computed.clear()
    models = list(devices.collect(np.array([6, 2, 0, 5])))
    devices.close()
    expected = by_chunks(local, 1, theta, EVERYONE)
    assert_equal_models(models, [expected[i][2] for i in (6, 2, 0, 5)])
    assert bool(crew.computed) == (losses > 0)


def test_models_that_are_lost_again_and_again_end_the_run() -> None:
    local = local_work()
    crew = LosingCrew(local, losses=MAX_LOSSES + 1)
    devices = CrewDevices(local, evaluation_work(), crew)
    devices.report(1, first_model(local), EVERYONE, max_models=7)
    with pytest.raises(RunError, match="local models of this round were lost 5 times, got no device 0. Mach"):
        list(devices.collect(np.array([0])))
    devices.close()
