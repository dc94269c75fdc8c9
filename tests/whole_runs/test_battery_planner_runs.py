"""Runs with batteries, prices, a memory of whom to ask and a budget: killed, they end in the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.runs.compare import read_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import TINY, StopAfter, experiment, long_term_settings, results

BY = ("battery", "budget")


def settings(by: str, **execution: Any) -> Any:
    return experiment(**{**TINY, **long_term_settings(by), "execution": execution})


@pytest.fixture(scope="module", params=BY)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    by = str(request.param)
    return by, run_experiment(settings(by, workers=1), tmp_path_factory.mktemp("run") / by).path


@pytest.mark.parametrize("rounds", [1, 4, 9])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_killed_run_with_all_of_it_on_resumes_to_the_same_bits(
    whole: tuple[str, Path], tmp_path: Path, workers: int, rounds: int
) -> None:
    by, path = whole
    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            settings(by, workers=workers, checkpoint_every=2),
            tmp_path / "cut",
            observers=[StopAfter(rounds)],
        )
    resumed = resume_run(tmp_path / "cut")
    assert resumed.stopped == "stop.time_s = 300 is reached, with 300"
    assert results(resumed.path) == results(path)


def test_the_run_is_one_in_which_all_of_it_plays_a_part(whole: tuple[str, Path]) -> None:
    by, path = whole
    run, table = read_run(path), RunFolder(path).table("devices.csv")
    assert run.num_rounds == 10  # of 40: the budget of 300 s ends it
    assert run.curve("num_computed").min() < 4 <= run.curve("num_computed").max()  # memory and prices ask
    price = np.asarray(table["planner_price_per_j"]).reshape(10, 6)
    eta = run.experiment.cell.energy_weight  # type: ignore[union-attr]
    assert np.unique(price).size > 10
    if by == "battery":
        assert "planner_queue_j" not in table
        charge = np.asarray(table["battery_j"]).reshape(10, 6)
        np.testing.assert_allclose(price[1:], eta + (6.0 - charge[:-1]) / 2.0, rtol=1e-12)
        np.testing.assert_array_equal(price[0], eta)
    else:
        queue = np.asarray(table["planner_queue_j"]).reshape(10, 6)
        spent = np.asarray(table["cumulative_energy_j"]).reshape(10, 6)
        np.testing.assert_allclose(price, eta + queue / 2.0, rtol=1e-12)
        by_hand = np.zeros(6)
        for k in range(10):
            np.testing.assert_allclose(queue[k], by_hand, atol=1e-12)
            took = spent[k] - (spent[k - 1] if k else 0.0)
            by_hand = np.maximum(by_hand + took - 0.05, 0.0)
