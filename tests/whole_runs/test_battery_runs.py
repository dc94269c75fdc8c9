"""Runs on batteries: they die, are resumed to the bit, end by a budget, and their tables add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.experiments import Experiment
from fedwave.runs.compare import read_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, StopAfter, experiment, results

BATTERY: dict[str, Any] = {
    "capacity_j": 6.0,
    "initial_charge": {"low": 0.2, "high": 1.0},
    "draw_w": 0.01,
    "interval_s": 30.0,
    "min_charge": 0.05,
    "harvest": {"kind": "constant", "power_w": {"low": 0.0, "high": 0.08}},
}


def on_battery(battery: dict[str, Any] | None = None, **changes: Any) -> Experiment:
    return experiment(
        **{
            "num_rounds": 10,
            "data": {"dataset": {"shape": [6]}},
            "model": {"kind": "softmax"},
            "selection": {"num_selected": "auto"},
            "cell": {
                "preset": "paper",
                "num_blocks": 3,
                "method": "greedy",
                "battery": {**BATTERY, **(battery or {})},
            },
            **changes,
        }
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which devices die and wake up again."""
    return run_experiment(on_battery(), tmp_path_factory.mktemp("run") / "whole").path


def grid(folder: Path, name: str) -> np.ndarray:
    return np.asarray(RunFolder(folder).table("devices.csv")[name]).reshape(10, -1)


def test_the_charges_in_the_table_add_up_round_by_round(whole: Path) -> None:
    charge_j = grid(whole, "battery_j")
    spent_j = np.diff(grid(whole, "cumulative_energy_j"), axis=0)
    clock_s = np.append(0.0, read_run(whole).curve("clock_s"))
    assert clock_s.tolist() == [30.0 * k for k in range(11)]
    coming_j = grid(whole, "harvested_j")[1:] - 0.01 * 30.0
    expected_j = charge_j[:-1] - spent_j + coming_j
    inside = (charge_j[1:] > 0) & (charge_j[1:] < 6.0)
    assert 10 < inside.sum() < inside.size  # some are flat or full
    np.testing.assert_allclose(charge_j[1:][inside], expected_j[inside], atol=1e-9)
    assert (charge_j >= 0).all()
    assert (charge_j <= 6.0).all()


def test_who_is_flat_neither_listens_nor_computes_nor_sends(whole: Path) -> None:
    asleep = grid(whole, "battery_j")[:-1] <= 0.05 * 6.0
    assert asleep.any()
    assert not asleep.all()
    for name in (
        "downlink_energy_j",
        "compute_energy_j",
        "report_energy_j",
        "upload_energy_j",
        "is_selected",
    ):
        assert not grid(whole, name)[1:][asleep].any()
    assert np.isnan(grid(whole, "contribution")[1:][asleep]).all()
    assert np.isfinite(grid(whole, "contribution")[1:][~asleep]).all()
    run = read_run(whole)
    awake = 6 - asleep.sum(axis=1)
    assert run.curve("num_computed")[1:].tolist() == awake.tolist()
    assert run.curve("num_awake")[:-1].tolist() == awake.tolist()
    assert run.curve("num_flat").sum() > 0
    np.testing.assert_array_equal(
        run.curve("num_selected"), run.curve("num_received") + run.curve("num_flat")
    )


def test_the_summary_says_when_devices_died(whole: Path) -> None:
    said = json.loads((whole / "summary.json").read_text())["battery"]
    run = read_run(whole)
    dead = 6 - run.curve("num_awake")
    first = int(np.flatnonzero(dead >= 1)[0])
    assert said["first_dead"] == {
        "rounds": first + 1,
        "clock_s": 30.0 * (first + 1),
        "heldout_accuracy": run.heldout_metric[first],
    }
    half = np.flatnonzero(dead >= 3)
    assert (said["half_dead"] is None) == (half.size == 0)
    if half.size:
        assert said["half_dead"]["rounds"] == half[0] + 1
    assert said["most_dead"] == dead.max()
    assert said["dead_at_the_end"] == dead[-1]
    assert said["uploads_lost_to_flat_batteries"] == run.curve("num_flat").sum()


@pytest.mark.parametrize("rounds", [1, 4, 7])
@pytest.mark.parametrize("stopper", [StopAfter, AskToStopAfter])
def test_a_run_on_batteries_resumes_to_the_same_bits(
    whole: Path, tmp_path: Path, stopper: type[StopAfter], rounds: int
) -> None:
    settings = on_battery(execution={"checkpoint_every": 3})
    try:
        run_experiment(settings, tmp_path / "cut", observers=[stopper(rounds)])
    except KeyboardInterrupt:
        assert stopper is StopAfter
    assert results(resume_run(tmp_path / "cut").path) == results(whole)


def test_when_all_are_flat_the_model_stays_as_it_is(tmp_path: Path) -> None:
    battery = {"capacity_j": 1.0, "harvest": "none", "interval_s": 0.0, "draw_w": 0.0}
    result = run_experiment(on_battery(battery), tmp_path / "flat")
    run = read_run(result.path)
    awake = run.curve("num_awake")
    end = int(np.flatnonzero(awake == 0)[0])
    assert end < 8
    assert not run.curve("energy_j")[end + 1 :].any()
    assert not run.curve("update_norm")[end + 1 :].any()
    assert run.curve("cumulative_energy_j")[-1] == pytest.approx(
        sum(RunFolder(result.path).load_checkpoint().ledger.device_energy_j)  # type: ignore[union-attr]
    )
    start_j = result.summary["cell"]["energy_j"]
    assert start_j <= 6 * 1.0


def test_a_large_battery_changes_nothing(tmp_path: Path) -> None:
    plain = on_battery().model_copy(update={"cell": on_battery().cell.model_copy(update={"battery": None})})  # type: ignore[union-attr]
    free = run_experiment(plain, tmp_path / "plain")
    large = run_experiment(on_battery({"capacity_j": 1e9, "initial_charge": 1.0}), tmp_path / "large")
    for name in ("heldout_loss", "energy_j", "delay_s"):
        np.testing.assert_array_equal(read_run(free.path).curve(name), read_run(large.path).curve(name))
    assert (free.path / "model.safetensors").read_bytes() == (large.path / "model.safetensors").read_bytes()
    assert "battery" not in free.summary
    assert large.summary["battery"]["first_dead"] is None


# Ending by a budget -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "column"),
    [
        ({"energy_j": 12.0}, "cumulative_energy_j"),
        ({"time_s": 100.0}, "clock_s"),
        ({"dead_share": 0.3}, "num_awake"),
    ],
)
def test_a_run_ends_after_the_round_that_spends_its_budget(
    whole: Path, tmp_path: Path, stop: dict[str, float], column: str
) -> None:
    limit = next(iter(stop.values()))
    values = read_run(whole).curve(column)
    measured = 1.0 - values / 6.0 if column == "num_awake" else values
    last = int(np.flatnonzero(measured >= limit)[0])
    assert 0 < last < 9
    result = run_experiment(
        on_battery(stop=stop, evaluation={"every": 4}, execution={"checkpoint_every": 20}), tmp_path / "run"
    )
    run = read_run(result.path)
    assert run.num_rounds == last + 1
    assert result.stopped is not None
    assert result.stopped.startswith(f"stop.{next(iter(stop))} = {limit:g} is reached")
    assert np.isfinite(run.heldout_metric[-1])  # the last round is evaluated, whatever its number
    assert (
        run.curve("cumulative_energy_j").tolist()
        == read_run(whole).curve("cumulative_energy_j")[: last + 1].tolist()
    )
    again = resume_run(result.path)  # it has come to its end
    assert again.stopped == result.stopped
    assert read_run(again.path).num_rounds == last + 1


def test_a_run_with_a_budget_that_is_killed_ends_where_it_would_have_ended(tmp_path: Path) -> None:
    settings = on_battery(stop={"time_s": 150.0})
    whole = run_experiment(settings, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    resumed = resume_run(tmp_path / "cut")
    assert resumed.stopped == whole.stopped
    assert results(resumed.path) == results(whole.path)


def test_a_run_ends_with_the_accuracy_that_is_wanted(tmp_path: Path) -> None:
    free = run_experiment(on_battery(), tmp_path / "free")
    wanted = float(np.sort(read_run(free.path).heldout_metric)[3])
    first = int(np.flatnonzero(read_run(free.path).heldout_metric >= wanted)[0])
    result = run_experiment(on_battery(stop={"accuracy": wanted}), tmp_path / "run")
    assert read_run(result.path).num_rounds == first + 1


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ({"energy_j": 1.0}, "need a cell"),
        ({"time_s": 1.0}, "need a cell"),
        ({"dead_share": 0.5}, "stop.dead_share needs cell.battery"),
    ],
)
def test_a_budget_that_nothing_counts_is_refused(stop: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(stop=stop)
