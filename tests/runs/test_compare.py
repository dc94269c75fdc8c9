"""Comparing runs by what their accuracy cost, on tables written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from fedwave.cli.run_tables import cost_table, final_table
from fedwave.errors import RunError
from fedwave.intervals import ratio_interval
from fedwave.plots.runs import run_chart
from fedwave.runs.compare import (
    FinishedRun,
    common_metric,
    common_target,
    distinct_runs,
    group_by_name,
    paired_difference,
    paired_ratio,
    read_run,
    settings_labels,
)
from tests.runs.paid_runs import OURS, THEIRS, paid_runs
from tests.runs.small_runs import (
    edit,
)
from tests.runs.written_runs import write_run

ERROR = "mean_absolute_error"


def test_the_cost_of_a_target_is_read_at_the_first_round_that_reaches_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.1, math.nan, 0.5, 0.4, 0.6], over_cell=True)
    cost = run.cost_of_reaching(0.5)
    assert cost is not None
    assert (cost.rounds, cost.delay_s, cost.energy_j) == (3, 30.0, 300.0)
    assert run.cost_of_reaching(0.61) is None
    assert run.last("heldout_accuracy") == 0.6


def test_an_error_reaches_a_target_by_falling_to_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [3.0, math.nan, 1.5, 1.8, 1.25], over_cell=True, metric=ERROR)
    assert (run.metric.name, run.metric.higher_is_better) == (ERROR, False)
    for target, rounds in ((5.0, 1), (2.0, 3), (1.5, 3), (1.25, 5)):
        cost = run.cost_of_reaching(target)
        assert cost is not None
        assert (cost.rounds, cost.delay_s, cost.energy_j) == (rounds, 10.0 * rounds, 100.0 * rounds)
    assert run.cost_of_reaching(1.2) is None


def test_without_a_cell_only_rounds_are_a_cost(tmp_path: Path) -> None:
    cost = write_run(tmp_path / "a", "a", [0.1, 0.5]).cost_of_reaching(0.2)
    assert cost is not None
    assert cost.rounds == 2
    assert math.isnan(cost.delay_s)
    assert math.isnan(cost.energy_j)


def test_the_default_target_is_the_highest_percentage_that_all_reach(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", "a", [0.1, 0.728, 0.7]),
        write_run(tmp_path / "b", "b", [0.1, 0.555, 0.9]),
        write_run(tmp_path / "c", "c", [math.nan, 0.99, math.nan]),
    ]
    assert common_target(runs) == 0.72


@pytest.mark.parametrize(
    ("worst", "target"),
    [(1.234, 1.3), (0.0449, 0.045), (57.01, 58.0), (9.95, 10.0), (0.0, 0.0)],
)
def test_the_default_target_of_an_error_is_the_lowest_two_digits_that_all_reach(
    tmp_path: Path, worst: float, target: float
) -> None:
    runs = [
        write_run(tmp_path / "a", "a", [60.0, worst, 61.0], metric=ERROR),
        write_run(tmp_path / "b", "b", [math.nan, worst / 2, 99.0], metric=ERROR),
    ]
    assert common_target(runs) == pytest.approx(target, rel=1e-12)
    assert all(run.cost_of_reaching(common_target(runs)) is not None for run in runs)


@pytest.mark.parametrize("share", [0.29, 0.57, 0.58, 0.0, 1.0])
def test_a_round_share_is_its_own_target(tmp_path: Path, share: float) -> None:
    assert common_target([write_run(tmp_path / "a", "a", [share])]) == share  # 100 * 0.29 is below 29


@pytest.mark.parametrize("error", [9.1e-05, 1.5e-05, 2.5e-05, 0.29, 130.0])
def test_a_round_error_is_its_own_target(tmp_path: Path, error: float) -> None:
    assert common_target([write_run(tmp_path / "a", "a", [error], metric=ERROR)]) == error


def test_a_run_without_evaluation_has_no_target_to_reach(tmp_path: Path) -> None:
    shares = [write_run(tmp_path / "a", "a", [math.nan]), write_run(tmp_path / "b", "b", [0.5])]
    assert common_target(shares) == 0.0
    errors = [write_run(tmp_path / n, n, [v], metric=ERROR) for n, v in (("c", math.nan), ("d", 0.5))]
    assert common_target(errors) == math.inf


@pytest.mark.parametrize("compare", [common_metric, common_target, final_table, cost_table, run_chart])
def test_nothing_to_compare_is_one_line(compare: Callable[[list[FinishedRun]], object]) -> None:
    with pytest.raises(RunError, match=r"^there are no runs to compare, got an empty list\. Give one run"):
        compare([])


def test_runs_of_different_tasks_are_not_compared(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", "a", [0.5]), write_run(tmp_path / "b", "b", [0.5], metric=ERROR)]
    with pytest.raises(RunError) as caught:
        common_metric(runs)
    assert str(caught.value) == (
        "the runs are judged by different metrics, accuracy and mean_absolute_error. "
        "Compare runs of one task."
    )


def test_seeds_of_one_setting_come_together_and_are_paired_with_those_of_another(tmp_path: Path) -> None:
    ours = {0: 0.50, 1: 0.60, 2: 0.90, 7: 0.10}
    theirs = {2: 0.60, 1: 0.40, 0: 0.40}
    runs = [
        write_run(tmp_path / f"{name}{seed}", name, [0.0, value], seed=seed)
        for name, values in (("ours", ours), ("theirs", theirs))
        for seed, value in values.items()
    ]
    groups = group_by_name(runs)
    assert {name: [run.experiment.seed for run in group] for name, group in groups.items()} == {
        "ours": [0, 1, 2, 7],
        "theirs": [2, 1, 0],
    }
    got = paired_difference(groups["ours"], groups["theirs"], "heldout_accuracy")
    # Seeds 0, 1, 2 are in both, differences 0.1, 0.2, 0.3: deviation 0.1, and t_{0.975, 2} = 4.30265.
    assert got.mean == pytest.approx(0.2)
    assert got.half_width == pytest.approx(4.30265 * 0.1 / 3**0.5, rel=1e-5)
    assert got.count == 3


def test_a_ratio_of_costs_is_taken_within_each_seed() -> None:
    theirs, ours = paid_runs("b", THEIRS), paid_runs("a", OURS)
    found = paired_ratio(theirs, ours, "delay_s", target=0.8)
    assert found == ratio_interval([2.0, 8.0, 4.0])  # seeds 0, 1, 2; the others have no partner
    assert paired_ratio(theirs, ours, "energy_j", target=0.8).mean == pytest.approx(1.0)
    assert paired_ratio(theirs, ours, "delay_s", target=0.9).count == 0  # nobody reaches it


def test_one_run_given_twice_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.5])
    with pytest.raises(RunError, match="are the same run .seed 0.: it would count as two seeds"):
        group_by_name([run, run])
    with pytest.raises(RunError, match="Give each run once"):
        group_by_name([run, write_run(tmp_path / "copy", "a", [0.5])])


def test_of_one_run_in_two_folders_the_longer_stays_and_a_warning_names_the_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = write_run(tmp_path / "short", "a", [0.5])
    other = write_run(tmp_path / "other", "a", [0.5], seed=1)
    long = write_run(tmp_path / "long", "a", [0.5, 0.6])
    assert distinct_runs([short, other, long]) == [long, other]
    assert caplog.messages == [
        f"{short.path} and {long.path} are the same run (seed 0): {short.path} is left out."
    ]
    caplog.clear()
    assert distinct_runs([long, short]) == [long]
    assert distinct_runs([short, short]) == [short]
    assert [message.split(": ")[-1] for message in caplog.messages] == [f"{short.path} is left out."] * 2
    with pytest.raises(RunError, match="no runs to compare"):
        distinct_runs([])


def test_runs_of_one_name_and_other_settings_are_told_apart(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", "a", [0.5], seed=0),
        write_run(tmp_path / "b", "a", [0.5], seed=1),
        write_run(tmp_path / "c", "a", [0.5], seed=0),
    ]
    edit(tmp_path / "c" / "config.toml", "meta_lr = 0.001", "meta_lr = 0.5")
    groups = group_by_name([*runs[:2], read_run(tmp_path / "c")])
    assert [(name, len(group)) for name, group in groups.items()] == [
        ("a (meta_lr=0.001)", 2),
        ("a (meta_lr=0.5)", 1),
    ]


def test_a_part_tells_runs_apart_by_its_kind_and_not_by_options_of_its_own(tmp_path: Path) -> None:
    for name, kind in (("a", "random"), ("b", "greedy"), ("c", "optimal")):
        write_run(tmp_path / name, "mine", [0.5], over_cell=True)
        config = (tmp_path / name / "config.toml").read_text()
        method = (
            '{ kind = "optimal", max_matchings = 7, relative_gap = 1e-5 }' if name == "c" else f'"{kind}"'
        )
        (tmp_path / name / "config.toml").write_text(
            config.replace('method = "optimal"', f"method = {method}")
        )
    labels = settings_labels([read_run(tmp_path / name) for name in "abc"])
    assert labels == ["mine (method=random)", "mine (method=greedy)", "mine (method=optimal)"]
    # Where the kind is one and the same, its options tell.
    (tmp_path / "a" / "config.toml").write_text(
        (tmp_path / "c" / "config.toml").read_text().replace("max_matchings = 7", "max_matchings = 8")
    )
    both = settings_labels([read_run(tmp_path / name) for name in "ac"])
    assert both == ["mine (max_matchings=8)", "mine (max_matchings=7)"]
