"""What a comparison says in one line, and that it claims no more than the seeds show."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.runs.comparison import compare_runs
from fedwave.runs.message import message_of
from tests.runs.paid_runs import OURS, THEIRS, paid_runs
from tests.runs.written_runs import write_run


def said(
    tmp_path: Path, values: dict[str, list[float]], *, metric: str = "accuracy", baseline: str = "a"
) -> str:
    runs = [
        write_run(tmp_path / f"{name}{seed}", name, [value], seed=seed, metric=metric)
        for name, own in values.items()
        for seed, value in enumerate(own)
    ]
    return message_of(compare_runs(runs, baseline=baseline))


BASE = [0.50, 0.60, 0.70]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        # By 5, 6 and 5 points: 4.30265 * 0.57735 / sqrt(3) = 1.434, t = 16.
        ([0.55, 0.66, 0.75], "b beats a: +5.3 ± 1.4 points of accuracy (3 seeds)"),
        ([0.45, 0.54, 0.65], "Nobody beats a; next is b: -5.3 ± 1.4 points of accuracy (3 seeds)"),
        # By 5, -4 and 2 points: the deviation is 4.583.
        ([0.55, 0.56, 0.72], "b and a cannot be told apart: +1 ± 11 points of accuracy (3 seeds)"),
        ([0.55], "b beside a, on one seed: +5 points of accuracy"),
        (BASE, "b and a cannot be told apart: 0 ± 0 points of accuracy (3 seeds)"),
    ],
)
def test_the_best_setting_beats_the_baseline_where_chance_does_not_explain_it(
    tmp_path: Path, other: list[float], expected: str
) -> None:
    assert said(tmp_path, {"a": BASE, "b": other}) == expected


def test_the_best_of_several_is_spoken_of_and_low_errors_are_good(tmp_path: Path) -> None:
    values = {"a": [0.5, 0.6], "b": [0.41, 0.52], "c": [0.2, 0.3001]}
    found = said(tmp_path, values, metric="mean_absolute_error")
    assert found.startswith("c beats a: -0.29995 ± 0.00064 ")  # 12.706 * 0.00005
    assert found.endswith("of mean absolute error (2 seeds)")
    assert said(tmp_path / "c", values, metric="mean_absolute_error", baseline="c").startswith(
        "Nobody beats c"
    )


def test_costs_are_spoken_of_as_ratios_and_one_setting_alone_says_nothing() -> None:
    both = compare_runs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)], target=0.8)
    # Ratios 2, 8 and 4: Holm's p-value is above 5 %.
    assert message_of(both, "delay_s_to_target") == (
        "b and a cannot be told apart: 4.0 × (0.71–22) the seconds to 80% (3 seeds)"
    )
    assert message_of(compare_runs(paid_runs("a", OURS))) == ""
    unreached = compare_runs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)], target=0.9)
    assert message_of(unreached, "delay_s_to_target") == ""
