"""Settings beside a baseline: against scipy's paired test, a bootstrap's idea of a ratio, and by hand."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fedwave.errors import ConfigError
from fedwave.intervals import Median, Ratio
from fedwave.runs.compare import FinishedRun
from fedwave.runs.comparison import compare_runs
from tests.runs.paid_runs import OURS, THEIRS, paid_runs
from tests.runs.written_runs import write_run

ACCURACIES = {
    "base": {0: 0.50, 1: 0.40, 2: 0.62, 3: 0.55},
    "good": {0: 0.56, 1: 0.47, 2: 0.69, 3: 0.61, 9: 0.10},
    "same": {0: 0.51, 1: 0.38, 2: 0.63, 3: 0.53},
}


@pytest.fixture
def runs(tmp_path: Path) -> list[FinishedRun]:
    return [
        write_run(tmp_path / f"{name}{seed}", name, [0.1, value], seed=seed)
        for name, values in ACCURACIES.items()
        for seed, value in values.items()
    ]


def test_a_setting_is_compared_with_the_baseline_within_each_seed(runs: list[FinishedRun]) -> None:
    found = compare_runs(runs)
    assert found.baseline == "base"
    good, same = (found.rows[name]["heldout_accuracy"] for name in ("good", "same"))
    seeds = [0, 1, 2, 3]
    ours, base = ([ACCURACIES[name][seed] for seed in seeds] for name in ("good", "base"))
    oracle = stats.ttest_rel(ours, base)
    low, high = oracle.confidence_interval()
    assert good.paired is not None
    assert good.paired.count == 4
    assert good.paired.mean == pytest.approx(6.5)  # points: 6, 7, 7 and 6
    assert good.paired.half_width == pytest.approx(100 * (high - low) / 2)
    assert good.lacks_pairs  # seed 9 is nobody else's
    assert not same.lacks_pairs
    # Holm: the smaller of the two p-values counts twice. Rounds to the target are alike in all seeds.
    other = stats.ttest_rel([ACCURACIES["same"][s] for s in seeds], base)
    assert good.p_value == pytest.approx(2 * oracle.pvalue)
    assert same.p_value == pytest.approx(other.pvalue)
    assert good.own.mean == pytest.approx(100 * np.mean(list(ACCURACIES["good"].values())))


def test_the_baseline_may_be_any_setting_and_the_sign_turns_with_it(runs: list[FinishedRun]) -> None:
    found = compare_runs(runs, baseline="good")
    turned = found.rows["base"]["heldout_accuracy"].paired
    assert turned is not None
    assert turned.mean == pytest.approx(-6.5)
    assert found.rows["good"]["heldout_accuracy"].paired is None
    with pytest.raises(ConfigError, match=r'^no run is called "goof"\. Did you mean "good"\?'):
        compare_runs(runs, baseline="goof")
    assert compare_runs(runs, baseline="Goo").baseline == "good"  # a part of one name says which
    with pytest.raises(ConfigError, match='^no run is called "s"'):  # of two it does not
        compare_runs(runs, baseline="s")


def test_a_difference_that_all_seeds_share_is_compared_and_not_tested(runs: list[FinishedRun]) -> None:
    cell = compare_runs(runs).rows["good"]["heldout_loss"]  # 2.0 everywhere
    assert math.isnan(cell.p_value)
    assert cell.shown_pairing == "0 ± 0†"


def test_costs_are_compared_by_ratios_of_their_logarithms() -> None:
    found = compare_runs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)], target=0.8)
    seconds = found.rows["b"]["delay_s_to_target"]
    assert isinstance(seconds.paired, Ratio)
    logs = np.log([2.0, 8.0, 4.0])  # seeds 0, 1 and 2 are in both
    oracle = stats.ttest_1samp(logs, 0.0)
    low, high = oracle.confidence_interval()
    assert seconds.paired.mean == pytest.approx(4.0)
    assert (seconds.paired.low, seconds.paired.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert seconds.own == Median(9.0, 1.0, 32.0, 4)  # of 2, 16, 32 and 1; too few for 95 %
    # Seconds of all rounds and until the target are alike: two tests, which Holm counts twice.
    assert seconds.p_value == pytest.approx(2 * oracle.pvalue)
    joules = found.rows["b"]["energy_j_to_target"]
    assert joules.paired is not None
    assert joules.paired.mean == pytest.approx(1.0)
    assert math.isnan(joules.p_value)  # alike in all seeds
    assert found.rows["a"]["delay_s_to_target"].is_best
    assert not seconds.is_best
    unreached = compare_runs([*paid_runs("a", OURS), *paid_runs("b", THEIRS)], target=0.9)
    assert unreached.rows["b"]["delay_s_to_target"].shown_pairing == "-†"
    assert [row[-1] for row in unreached.costs.rows] == ["0 of 4", "0 of 4"]


def test_a_star_marks_what_chance_alone_is_unlikely_to_make(runs: list[FinishedRun]) -> None:
    table = compare_runs(runs).final
    place = table.header.index("Δ points")
    assert [row[place] for row in table.rows] == ["", "6.50 ± 0.92 *†", "-0.5 ± 2.8"]  # t = 3.18245
    first, second, third = compare_runs(runs).notes
    assert first == "Means over seeds with 95 % intervals."
    assert second.endswith("to base on the same seeds; * p < 0.05 (Student's t, Holm over 2).")
    assert third.startswith("† not all seeds")


def test_the_best_of_a_column_is_the_highest_accuracy_and_the_lowest_error(tmp_path: Path) -> None:
    shares = [write_run(tmp_path / n, n, [v]) for n, v in (("a", 0.4), ("b", 0.6))]
    assert [row["heldout_accuracy"].is_best for row in compare_runs(shares).rows.values()] == [False, True]
    errors = [
        write_run(tmp_path / n, n, [v], metric="mean_absolute_error") for n, v in (("c", 0.4), ("d", 0.6))
    ]
    rows = compare_runs(errors).rows.values()
    assert [row["heldout_mean_absolute_error"].is_best for row in rows] == [True, False]
    assert not any(row["heldout_loss"].is_best for row in rows)  # 2.0 both
    paired = compare_runs(errors).rows["d"]["heldout_mean_absolute_error"].paired
    assert str(paired) == "0.2"  # one seed: no interval


def test_nothing_is_paired_without_a_common_seed_and_the_table_says_so(tmp_path: Path) -> None:
    two = [write_run(tmp_path / n, n, [0.5], seed=seed) for seed, n in enumerate("ab")]
    found = compare_runs(two)
    assert found.notes == ("No setting shares a seed with a: nothing can be paired.",)
    assert found.final.header == ("run", "seeds", "rounds", "accuracy [%]", "loss")
    alone = compare_runs(two[:1])
    assert alone.notes == ()
    assert alone.final.header[1] == "dataset"
    longer = write_run(tmp_path / "c", "c", [0.5, 0.6], seed=0)
    assert compare_runs([two[0], longer]).notes[-1].startswith("Runs have different numbers of rounds")


def test_csv_json_and_frame_hold_the_same_numbers_in_full(runs: list[FinishedRun]) -> None:
    found = compare_runs(runs)
    base, good, _ = csv.DictReader(io.StringIO(found.to_csv()))
    assert base["heldout_accuracy_difference"] == ""
    assert float(base["heldout_accuracy"]) == pytest.approx(0.5175)  # a share, as everywhere but in tables
    difference = float(good["heldout_accuracy_difference"])
    assert difference == pytest.approx(0.065)
    half = stats.t.ppf(0.975, 3) * np.std([0.06, 0.07, 0.07, 0.06], ddof=1) / 2
    assert float(good["heldout_accuracy_difference_low"]) == pytest.approx(0.065 - half)
    assert float(good["heldout_accuracy_difference_high"]) == pytest.approx(0.065 + half)
    written = json.loads(found.to_json())
    assert written["rows"][1]["heldout_accuracy_difference"] == difference
    assert written["rows"][1]["by_seed"]["heldout_accuracy"]["9"] == 0.10
    assert written["rows"][0]["heldout_accuracy_p"] is None
    frame = found.frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["heldout_accuracy_difference"][1] == difference
    assert list(frame.columns) == list(base)
    assert repr(found) == "Comparison(base, good, same; baseline base)"
    assert "| base |" in str(found)
    assert "<td><b>48.4 ± 28.3" not in found._repr_html_()
    assert found._repr_html_().count("<table>") == 2
    assert found.to_latex().count("\\toprule") == 2
