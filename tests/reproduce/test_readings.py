"""Readings of the paper: paired by seed, and which of them show its order and its leads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedwave.intervals import Interval
from fedwave.reproduce.readings import (
    p_of_order,
    readings_of_the_test,
    readings_of_training,
    summary,
)
from fedwave.runs.inference import holm
from tests.reproduce.made_up_rows import accuracy_rows, probes


def test_a_reading_of_training_is_paired_by_seed() -> None:
    both = [*accuracy_rows("as we read it"), *accuracy_rows("other", shift=0.05)]
    found = {reading.name: reading for reading in readings_of_training(both)}
    usual, other = found["as we read it"], found["other"]
    assert usual.lead.mean == pytest.approx((10 + 5 + 10) / 3)
    assert usual.other_lead.mean == pytest.approx((-5 + 10 + 25) / 3)
    assert usual.change.count == 0
    assert (other.change.mean, other.change.half_width) == pytest.approx((5.0, 0.0), abs=1e-9)


def test_a_reading_of_the_test_comes_from_the_probes_of_the_last_round() -> None:
    earlier = [row | {"round": 19, "accuracy": 0.0, "accuracy_pooled": 0.0} for row in probes()]
    found = {reading.name: reading for reading in readings_of_the_test([*earlier, *probes()])}
    usual = found["as we read it"]
    assert usual.lead.mean == pytest.approx((10 + 5 + 10) / 3)
    assert usual.change.count == 0
    assert found["pooled over devices"].accuracy[0].mean == pytest.approx(70.0)
    assert found["pooled over devices"].change.mean == pytest.approx(0.0, abs=1e-9)
    nobody = found["nobody adapts before the test"]
    assert (nobody.lead.mean, nobody.change.mean) == pytest.approx((0.0, -25 / 3))
    unfair = found["FedAvg does not adapt, the others do"]
    assert unfair.other_lead.mean == pytest.approx(80 - 30)
    assert unfair.lead.mean == usual.lead.mean


def accuracies(nufm: list[float], per_fedavg: list[float], fedavg: list[float]) -> list[dict]:
    given = {"NUFM": nufm, "Per-FedAvg": per_fedavg, "FedAvg": fedavg}
    return [
        {
            "dataset": "fashion-mnist", "scheme": scheme, "counting": "", "parameter": "as we read it",
            "value": math.nan, "seed": seed, "accuracy": value,
        }
        for scheme, values in given.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


CLOSE = [0.60, 0.61, 0.62, 0.63]  # Per-FedAvg
WELL_ABOVE, WELL_BELOW = [0.70, 0.715, 0.72, 0.735], [0.50, 0.505, 0.52, 0.525]


def test_the_papers_order_is_of_all_three() -> None:
    (seen,) = readings_of_training(accuracies(WELL_ABOVE, CLOSE, WELL_BELOW))
    assert (seen.order, seen.num_in_order) == ("yes", 4)
    # NUFM leads both, but FedAvg is above Per-FedAvg: not the paper's order.
    (turned,) = readings_of_training(accuracies(WELL_ABOVE, WELL_BELOW, CLOSE))
    assert (turned.order, turned.num_in_order) == ("no", 0)
    unsure = [0.60, 0.67, 0.57, 0.69]
    (means,) = readings_of_training(accuracies(WELL_ABOVE, unsure, CLOSE))
    assert (means.order, means.num_in_order) == ("in the means", 2)
    (unclear,) = readings_of_training(accuracies(unsure, CLOSE[::-1], [0.61, 0.60, 0.64, 0.66]))
    assert unclear.order == "unclear"
    (alone,) = readings_of_training(accuracies([0.9], [0.8], [0.7]))
    assert alone.order == "unknown"


def test_an_order_needs_two_seeds_a_lead_of_any_size_and_no_tie() -> None:
    (two,) = readings_of_training(accuracies([0.7, 0.71], [0.6, 0.62], [0.5, 0.53]))
    assert two.order in ("yes", "in the means")
    (small,) = readings_of_training(accuracies([0.605, 0.612, 0.628], [0.60, 0.61, 0.62], [0.59, 0.60, 0.60]))
    assert small.is_in_order  # by half a point
    (tied,) = readings_of_training(accuracies([0.7, 0.7, 0.7], [0.7, 0.6, 0.65], [0.5, 0.6, 0.5]))
    assert tied.num_in_order == 1


def test_the_p_of_an_order_is_that_of_scipy() -> None:
    table = np.array([WELL_ABOVE, CLOSE, WELL_BELOW]).T
    neighbours = [stats.ttest_rel(table[:, i], table[:, i + 1]).pvalue for i in (0, 1)]
    assert p_of_order(table) == pytest.approx(max(neighbours))
    turned = table[:, [0, 2, 1]]  # one pair of three is the other way
    assert p_of_order(turned) == pytest.approx(3 * stats.ttest_rel(table[:, 1], table[:, 2]).pvalue)
    assert p_of_order(np.zeros((1, 3))) == 1.0


def test_readings_are_corrected_for_their_number() -> None:
    found = readings_of_the_test(probes())
    assert [one.corrected_p for one in found] == holm([one.p_order for one in found])
    assert len(found) == 10


def test_the_papers_lead_is_possible_where_it_lies_in_the_interval_of_one_more_run() -> None:
    found = {reading.name: reading for reading in readings_of_the_test(probes())}
    usual = found["as we read it"]
    assert usual.size == "possible"
    assert found["nobody adapts before the test"].size == "no"  # the lead is exactly 0 there
    # 5.29 - 1.5 = 3.79 is outside of the mean's 2.0, inside of the run's 2.0 sqrt(4) = 4.0.
    assert replace(usual, lead=Interval(1.5, 2.0, 3)).size == "possible"
    assert replace(usual, lead=Interval(1.2, 2.0, 3)).size == "no"
    assert readings_of_the_test([row for row in probes() if not row["seed"]])[0].size == "unknown"


def test_the_summary_names_what_shows_the_order() -> None:
    found = readings_of_training(accuracies(WELL_ABOVE, CLOSE, WELL_BELOW))
    said = summary("fashion-mnist", found)
    assert said.startswith(
        "**Fashion-MNIST**: of 1 readings, the paper's order of all three is surely seen under"
    )
    assert "under “as we read it”, in the means alone under none. The order" in said
    assert said.endswith("the paper's lead as one run: none")  # 9.5 points, far above 5.29
    alone = readings_of_the_test([row for row in probes() if not row["seed"]])
    assert "of 10 readings (10 with too few seeds to tell), the" in summary("fashion-mnist", alone)


def test_a_seed_in_which_a_scheme_diverged_is_left_out_and_told() -> None:
    (seen,) = readings_of_training(accuracies([0.7, 0.71, math.nan], [0.6, 0.62, 0.6], [math.nan, 0.5, 0.5]))
    assert (seen.lead.count, seen.num_diverged) == (1, 2)
    assert seen.row()["seeds_diverged"] == 2
    said = summary("fashion-mnist", [seen])
    assert said.endswith("Left out under “as we read it”, as one of the three diverged: 2 of 3 seeds")
    (whole,) = readings_of_training(accuracies(WELL_ABOVE, CLOSE, WELL_BELOW))
    assert whole.num_diverged == 0
    assert "Left out" not in summary("fashion-mnist", [whole])


def test_combined_readings_are_also_pooled_and_tested_on_the_training_devices() -> None:
    name = "first weights 0.2, mean weighted by samples"
    both = [
        row | {"parameter": own, "accuracy_pooled": row["accuracy"] - 0.1, "training_accuracy": 0.9}
        for own in ("as we read it", name)
        for row in accuracies(WELL_ABOVE, CLOSE, WELL_BELOW)
    ]
    found = {one.name: one for one in readings_of_training(both)}
    assert list(found) == [
        "as we read it", name, f"{name}, pooled", f"{name}, tested on the training devices",
    ]  # fmt: skip
    assert found[f"{name}, pooled"].accuracy[1].mean == pytest.approx(51.5)
    assert found[f"{name}, tested on the training devices"].lead.mean == 0.0
