"""How many times as much a setting pays, seed by seed: against hand arithmetic and scipy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedwave.errors import RunError
from fedwave.plots.costs import draw_costs, plot_costs
from fedwave.runs.compare import FinishedRun
from fedwave.runs.ratio import Ratio, paired_ratio
from tests.experiments.cell_tables import PAPER_CELL, experiment

# seconds and joules of each round until the accuracy is 0.8
OURS = {0: (1.0, 4.0), 1: (2.0, 10.0), 2: (8.0, 5.0), 3: (1.0, 1.0)}
THEIRS = {0: (2.0, 4.0), 1: (16.0, 10.0), 2: (32.0, 5.0), 4: (1.0, 1.0)}


def runs(name: str, costs: dict[int, tuple[float, float]]) -> list[FinishedRun]:
    return [
        FinishedRun(
            Path(f"{name}-{seed}"),
            experiment(PAPER_CELL, name=name, seed=seed),
            {
                "round": np.array([0, 1]),
                "heldout_accuracy": np.array([0.5, 0.8]),
                "cumulative_delay_s": np.array([delay_s / 2, delay_s]),
                "cumulative_energy_j": np.array([energy_j / 2, energy_j]),
            },
        )
        for seed, (delay_s, energy_j) in costs.items()
    ]


def test_the_ratio_is_taken_within_each_seed() -> None:
    found = paired_ratio(runs("b", THEIRS), runs("a", OURS), "delay_s", target=0.8)
    logs = np.log([2.0, 8.0, 4.0])  # seeds 0, 1, 2; the others have no partner
    half = stats.t.ppf(0.975, 2) * stats.sem(logs)
    assert found.count == 3
    assert found.mean == pytest.approx(4.0)
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(logs.mean() + half * np.array([-1, 1]))))


def test_equal_costs_are_once_as_much() -> None:
    found = paired_ratio(runs("b", THEIRS), runs("a", OURS), "energy_j", target=0.8)
    assert (found.mean, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))
    assert str(found) == "1.0 × (1.0–1.0)"


def test_a_target_that_nobody_reaches_has_no_ratio() -> None:
    found = paired_ratio(runs("b", THEIRS), runs("a", OURS), "delay_s", target=0.9)
    assert found.count == 0
    assert math.isnan(found.mean)
    assert str(found) == "-"


def test_one_seed_has_no_interval_and_large_ratios_no_decimals() -> None:
    assert str(paired_ratio(runs("b", {1: (16.0, 1.0)}), runs("a", OURS), "delay_s", target=0.8)) == "8.0 ×"
    assert str(Ratio(123.4, 12.3, 1234.0, 5)) == "1.2e+02 × (12–1.2e+03)"
    assert str(Ratio(0.123, 0.05, 1.25, 5)) == "0.12 × (0.05–1.2)"


# The picture ----------------------------------------------------------------------------------------------


def test_the_picture_has_a_bar_for_each_mean_and_a_dot_for_each_seed() -> None:
    figure = draw_costs([*runs("a", OURS), *runs("b", THEIRS)]).figure
    left, middle, right = figure.axes
    assert [bar.get_width() for bar in middle.patches] == pytest.approx([3.0, 51.0 / 4])
    assert [bar.get_width() for bar in right.patches] == pytest.approx([5.0, 5.0])
    dots = [line.get_xdata() for line in middle.lines if line.get_marker() == "o"]
    assert [sorted(values) for values in dots] == [[1.0, 1.0, 2.0, 8.0], [1.0, 2.0, 16.0, 32.0]]
    assert middle.get_title() == "time until 80%"
    assert [label.get_text() for label in middle.get_yticklabels()] == ["a", "b"]
    assert "4.0 ×" in middle.texts[1].get_text()
    assert "×" not in middle.texts[0].get_text()
    assert left.lines[-1].get_ydata()[0] == pytest.approx(80.0)  # the dotted target


def test_who_does_not_reach_the_target_is_said() -> None:
    slow = runs("b", THEIRS)
    slow[0].columns["heldout_accuracy"][:] = 0.1
    figure = draw_costs([*runs("a", OURS), *slow], target=0.8).figure
    assert "3 of 4 seeds" in figure.axes[1].texts[1].get_text()
    nobody = draw_costs([*runs("a", OURS), *runs("b", THEIRS)], target=0.99).figure
    assert [text.get_text() for text in nobody.axes[1].texts] == ["not reached by 4 seeds"] * 2


def test_the_picture_is_written_and_needs_a_cell(tmp_path: Path) -> None:
    assert plot_costs(runs("a", OURS), tmp_path / "costs.png").stat().st_size > 1000
    bare = runs("a", OURS)[0]
    without = FinishedRun(
        bare.path, experiment(name="a"), {key: bare.columns[key] for key in ("round", "heldout_accuracy")}
    )
    with pytest.raises(RunError, match="counted over a cell only"):
        draw_costs([without])
