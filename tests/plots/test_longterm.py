"""The picture of the long term: where the points and the bound stand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fedwave.longterm.bound import LongTermBound
from fedwave.longterm.comparison import Candidate, LongTermComparison
from fedwave.longterm.trace import Replay
from fedwave.plots.longterm import draw_long_term, plot_long_term


def candidate(name: str, utility: float, worst_j: float, v: float | None = None) -> Candidate:
    count = np.ones(1)
    made = Replay(
        utility=np.array([utility]), energy_j=np.array([[worst_j]]), num_asked=count, num_received=count
    )
    return Candidate(name=name, v=v, replay=made, budget_j=2.0)


COMPARISON = LongTermComparison(
    budget_j=2.0,
    num_rounds=1,
    num_devices=1,
    bound=LongTermBound(
        value=8.0, prices=np.ones(1), values=np.array([12.0, 8.0, 9.0]), energy_j=np.zeros(1)
    ),
    candidates=(
        candidate("this run (auto)", 6.0, 3.0),
        candidate("drift-plus-penalty", 4.0, 2.0, v=1.0),
        candidate("drift-plus-penalty", 10.0, 5.0, v=3.0),
        candidate("capped-rounds", 2.0, 1.0),
    ),
)


def test_points_are_shares_of_the_bound_by_overdraw_of_the_budget() -> None:
    left, right = draw_long_term(COMPARISON).figure.axes
    lines = {line.get_label(): line for line in left.lines if not str(line.get_label()).startswith("_")}
    points = {name: np.column_stack(line.get_data()).tolist() for name, line in lines.items()}
    assert points == {
        "this run (auto)": [[50.0, 75.0]],
        "drift-plus-penalty": [[0.0, 50.0], [150.0, 125.0]],
        "capped-rounds": [[-50.0, 25.0]],
    }
    assert lines["this run (auto)"].get_marker() == "*"
    assert [text.get_text() for text in left.texts] == ["V 1", "V 3"]
    assert "overdraw" in left.get_xlabel()
    assert left.get_ylabel() == "utility [% of the bound]"
    curves = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in right.lines}
    assert curves["g(λ) of a step"] == [12.0, 8.0, 9.0]
    assert curves["the least so far: the bound"] == [12.0, 8.0, 8.0]
    assert curves["best that keeps the budget"] == [4.0, 4.0]


def test_without_a_positive_bound_utility_stands_for_itself(tmp_path: Path) -> None:
    poor = replace(COMPARISON, bound=replace(COMPARISON.bound, value=-1.0))
    left, _ = draw_long_term(poor).figure.axes
    assert left.get_ylabel() == "utility of a round"
    assert np.asarray(left.lines[0].get_ydata()).tolist() == [6.0]
    spent = replace(poor, candidates=poor.candidates[:1])  # nobody keeps the budget
    assert len(draw_long_term(spent).figure.axes[1].lines) == 2
    assert plot_long_term(poor, tmp_path / "long.png").read_bytes().startswith(b"\x89PNG")
