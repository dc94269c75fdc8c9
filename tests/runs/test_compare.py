"""Comparing runs by what their accuracy cost, on tables written by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fedwave.cli.compare import plot_runs, print_costs, print_runs
from fedwave.errors import RunError
from fedwave.experiments import experiment_from, experiment_to_toml
from fedwave.experiments.compare import common_target, read_run
from fedwave.plots.learning_curves import Curve, Panel, _mean, plot_panels


def write_run(folder: Path, name: str, accuracies: list[float], *, over_cell: bool) -> Path:
    folder.mkdir()
    settings = {"name": name, "cell": {"preset": "paper"}} if over_cell else {"name": name}
    (folder / "config.toml").write_text(experiment_to_toml(experiment_from(settings)))
    header = "round,train_loss,heldout_loss,heldout_accuracy,num_received,wall_time_s"
    rows = [f"{k},1.0,2.0,{a if a == a else ''},5,0.5" for k, a in enumerate(accuracies)]
    if over_cell:
        header += ",cumulative_delay_s,cumulative_energy_j"
        rows = [f"{row},{10 * (k + 1)},{100 * (k + 1)}" for k, row in enumerate(rows)]
    (folder / "rounds.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_the_cost_of_a_target_is_read_at_the_first_round_that_reaches_it(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", "a", [0.1, math.nan, 0.5, 0.4, 0.6], over_cell=True))
    cost = run.cost_of_reaching(0.5)
    assert cost is not None
    assert (cost.rounds, cost.delay_s, cost.energy_j) == (3, 30.0, 300.0)
    assert run.cost_of_reaching(0.61) is None
    assert run.last("heldout_accuracy") == 0.6


def test_without_a_cell_only_rounds_are_a_cost(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "a", "a", [0.1, 0.5], over_cell=False))
    cost = run.cost_of_reaching(0.2)
    assert cost is not None
    assert cost.rounds == 2
    assert math.isnan(cost.delay_s)


def test_the_default_target_is_the_highest_percentage_that_all_reach(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / "a", "a", [0.1, 0.728, 0.7], over_cell=False)),
        read_run(write_run(tmp_path / "b", "b", [0.1, 0.555, 0.9], over_cell=False)),
    ]
    assert common_target(runs) == 0.72


@pytest.mark.parametrize("over_cell", [False, True])
def test_tables_and_picture_of_runs(tmp_path: Path, over_cell: bool) -> None:
    runs = [
        read_run(write_run(tmp_path / name, name[0], accuracies, over_cell=over_cell))
        for name, accuracies in (("a1", [0.2, 0.4]), ("a2", [0.3, 0.6]), ("b1", [0.1, 0.2]))
    ]
    console = Console(record=True, width=140)
    print_runs(runs, console)
    print_costs(runs, console, target=0.4)
    text = console.export_text()
    assert ("seconds" in text.splitlines()[0]) == over_cell
    assert "2 of 2 seeds" in text
    assert "0 of 1 seed" in text
    assert plot_runs(runs, tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RunError, match="Choose another path, ending in .png, .pdf or .svg"):
        plot_runs(runs, tmp_path / "picture.what")


def test_accuracy_is_drawn_in_percent_and_loss_as_it_is() -> None:
    curve = {"a": [Curve(np.array([1.0, 2.0]), np.array([0.25, 0.5]))]}
    figure = plot_panels([Panel("x", "accuracy", curve, is_percentage=True), Panel("x", "loss", curve)])
    drawn = [axis.lines[0].get_ydata().tolist() for axis in figure.axes]
    assert drawn == [[25.0, 50.0], [0.25, 0.5]]


def test_curves_with_different_x_are_averaged_over_the_range_they_share() -> None:
    mean = _mean(
        [Curve(np.array([0.0, 2.0]), np.array([0.0, 2.0])), Curve(np.array([1.0, 3.0]), np.array([3.0, 5.0]))]
    )
    assert mean.x.tolist() == [1.0, 2.0]
    assert mean.y.tolist() == [2.0, 3.0]  # (1 + 3) / 2 and (2 + 4) / 2
