"""Batteries as charts: which curves stand where, against hours."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.plots.batteries import battery_panels, draw_batteries, plot_batteries
from fedwave.plots.runs import draw_runs
from tests.runs.written_runs import write_battery_run, write_run

FIRST = [[5.0, 4.0, 3.0], [4.0, 2.0, 1.0]]
SECOND = [[9.0, 8.0, 5.0], [2.0, 1.0, 1.0]]
PRICE = [[math.nan] * 3, [1.0, math.nan, 4.0]]


def test_charges_deaths_and_prices_by_hours_averaged_over_seeds(tmp_path: Path) -> None:
    runs = [
        write_battery_run(tmp_path / "a0", "a", FIRST, price=PRICE),
        write_battery_run(tmp_path / "a1", "a", SECOND, price=PRICE, seed=1),
        write_battery_run(tmp_path / "b", "b", SECOND),
        write_run(tmp_path / "none", "none", [0.1, 0.2], over_cell=True),
    ]
    median, lowest, dead, price = battery_panels(runs)
    assert {panel.x_label for panel in (median, lowest, dead, price)} == {"hours since the run began"}
    assert [[one.name for one in panel.series] for panel in (median, price)] == [["a", "b"], ["a"]]
    assert median.series[0].x == (0.5, 1.0)
    assert median.series[0].mean == pytest.approx(((4 + 8) / 2, (2 + 1) / 2))
    assert lowest.series[1].mean == pytest.approx((5 + 0.2 * 3, 1.0))
    assert dead.series[0].mean == pytest.approx((0.0, (1 + 2) / 2))
    assert price.series[0].x == (1.0,)  # nobody had a price in the first round
    assert price.series[0].mean == (2.5,)
    assert price.y_label == "planner's price per j, median"


def test_a_comparison_has_them_below_the_curves(tmp_path: Path) -> None:
    runs = [write_battery_run(tmp_path / "a", "a", FIRST, price=PRICE)]
    axes = [axis for axis in draw_runs(runs).figure.axes if axis.get_visible()]
    assert len(axes) == 6 + 4
    assert axes[8].get_ylabel() == "devices without charge"
    alone = draw_runs([write_run(tmp_path / "none", "none", [0.1, 0.2], over_cell=True)])
    assert len(alone.figure.axes) == 6


def test_the_picture_of_a_day(tmp_path: Path) -> None:
    runs = [write_battery_run(tmp_path / "a", "a", FIRST, price=PRICE)]
    axes = draw_batteries(runs, title="a day").figure.axes
    assert [axis.get_ylabel() for axis in axes] == [
        "held-out accuracy [%]",
        "charge of the median device [J]",
        "charge of the lowest 10% [J]",
        "devices without charge",
    ]
    assert axes[0].lines[0].get_xydata().tolist() == [[0.5, 10.0], [1.0, 20.0]]
    assert len(axes[0].lines) == 1
    many = [
        write_battery_run(tmp_path / f"{name}{seed}", name, FIRST, seed=seed)
        for name in "vwxyz"
        for seed in (0, 1)
    ]
    assert len(draw_batteries(many).figure.axes[0].lines) == 5  # means alone
    assert len(draw_batteries(many[:2]).figure.axes[0].lines) == 3  # and each seed
    assert plot_batteries(runs, tmp_path / "day.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RunError, match="there are no batteries to draw"):
        draw_batteries([write_run(tmp_path / "none", "none", [0.1], over_cell=True)])
