"""Batteries of runs that are written by hand: charges, deaths, lifetimes, and what a planner says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.runs.batteries import battery_history, device_history, lifetimes
from tests.runs.written_runs import write_battery_run, write_run

CHARGE = [[5.0, 4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0], [3.0, 0.5, 1.0, 0.0], [2.0, 2.0, 2.0, 0.0]]


def test_charges_deaths_and_lifetimes_are_those_of_the_tables(tmp_path: Path) -> None:
    run = write_battery_run(tmp_path / "a", "a", CHARGE, values=[0.25, math.nan, 0.5, 0.75])
    own = battery_history(run)
    assert own is not None
    assert own.charge_j.tolist() == CHARGE
    assert own.clock_s.tolist() == [1800.0, 3600.0, 5400.0, 7200.0]
    assert own.num_dead.tolist() == [0.0, 1.0, 3.0, 1.0]
    assert own.quantile_j(0.5).tolist() == [3.5, 2.5, 0.75, 2.0]
    np.testing.assert_allclose(own.quantile_j(0.1), [2.3, 1.3, 0.15, 0.6])  # 3 gaps: 0.3 of the first
    # Half an hour each, from the beginning of a round to the next: one, then three; the last is not played.
    assert own.dead_device_hours == pytest.approx(0.5 * (0 + 1 + 3))
    assert own.lifetimes == {
        "first_dead": {"rounds": 2, "clock_s": 3600.0, "heldout_accuracy": 0.25},  # as last measured
        "half_dead": {"rounds": 3, "clock_s": 5400.0, "heldout_accuracy": 0.5},
        "most_dead": 3,
        "dead_at_the_end": 1,
        "uploads_lost_to_flat_batteries": 0 + 1 + 2 + 3,
    }


def test_half_is_half_and_what_never_came_is_none() -> None:
    def of(awake: list[int], num_devices: int) -> dict[str, object]:
        count = len(awake)
        columns = {
            "num_awake": np.array(awake),
            "num_flat": np.zeros(count, dtype=np.int64),
            "clock_s": np.arange(1.0, count + 1),
            "heldout_accuracy": np.full(count, np.nan),
        }
        return lifetimes(columns, num_devices=num_devices, metric="accuracy")

    assert of([4, 4], 4)["first_dead"] is None
    assert of([4, 2], 4)["half_dead"] == {"rounds": 2, "clock_s": 2.0}  # nothing was measured
    assert of([5, 3], 5)["half_dead"] is None  # two of five are no half
    assert of([5, 2], 5)["half_dead"] == {"rounds": 2, "clock_s": 2.0}


def test_a_planners_columns_are_found_by_the_names_that_it_gave(tmp_path: Path) -> None:
    price = [[1.0, 2.0, 3.0, math.nan]] * 4
    run = write_battery_run(tmp_path / "a", "a", CHARGE, price=price)
    devices = device_history(run)
    assert devices is not None
    assert list(devices.own) == ["price_per_j"]
    np.testing.assert_array_equal(devices.own["price_per_j"], price)
    assert devices.num_devices == 4
    plain = device_history(write_battery_run(tmp_path / "b", "b", CHARGE))
    assert plain is not None
    assert plain.own == {}


def test_runs_without_batteries_or_tables_have_no_history(tmp_path: Path) -> None:
    assert battery_history(write_run(tmp_path / "plain", "plain", [0.1], over_cell=True)) is None
    run = write_battery_run(tmp_path / "a", "a", CHARGE)
    table = run.path / "devices.csv"
    text = table.read_text()
    table.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(RunError, match="has 15 rows for 4 rounds of 4 devices"):
        battery_history(run)
    # A round that is being written does not count yet.
    table.write_text(text + "4,10,9.0\n")
    assert battery_history(run).charge_j.tolist() == CHARGE  # type: ignore[union-attr]
    table.unlink()
    assert battery_history(run) is None
    assert device_history(run) is None
