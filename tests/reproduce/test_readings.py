"""Readings of the paper: paired by seed, and which of them show its order and its leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedwave.intervals import Interval
from fedwave.reproduce.readings import (
    readings_of_the_test,
    readings_of_training,
    summary,
)
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


def test_the_papers_order_is_seen_only_where_both_leads_are_sure() -> None:
    found = {reading.name: reading for reading in readings_of_the_test(probes())}
    assert found["as we read it"].order == "unclear"  # the lead over FedAvg is 10 ± 37
    assert found["FedAvg does not adapt, the others do"].order == "yes"  # 8.3 ± 7.2 and 50 ± 25
    below = [
        row | {"accuracy": 0.2 + 0.001 * row["seed"]} if row["scheme"] == "NUFM" else row
        for row in accuracy_rows("as we read it")
    ]
    assert next(readings_of_training(below)).order == "no"


def test_the_papers_lead_is_seen_where_it_lies_in_our_interval() -> None:
    found = {reading.name: reading for reading in readings_of_the_test(probes())}
    # 8.3 ± 7.2 holds the paper's 5.29; without adaptation the lead is exactly 0.
    assert found["as we read it"].size == "yes"
    assert found["nobody adapts before the test"].size == "no"
    assert next(readings_of_the_test([row for row in probes() if not row["seed"]])).size == "unknown"
    said = summary("fashion-mnist", list(found.values()))
    assert said.startswith(
        "**Fashion-MNIST**: of 10 readings, the paper's order is seen under “FedAvg does not"
    )
    assert said.count("“FedAvg does not adapt, the others do”") == 2
    alone = readings_of_the_test([row for row in probes() if not row["seed"]])
    assert "of 10 readings (10 with too few seeds to tell), the" in summary("fashion-mnist", list(alone))
    unclear = [found["as we read it"]]
    assert summary("fashion-mnist", unclear).endswith("of 1 readings, the paper's order is seen under none")
    too_small = replace(found["FedAvg does not adapt, the others do"], lead=Interval(2.0, 1.0, 3))
    assert summary("fashion-mnist", [too_small]).endswith("as large as the paper's under none")


@pytest.mark.parametrize(
    ("mean", "half_width", "seen"),
    [(4.0, 3.9, "yes"), (4.0, 4.1, "unclear"), (-4.0, 9.3, "unclear"), (-4.0, 9.2, "no"), (4.0, 1.2, "no")],
)
def test_an_interval_with_zero_and_the_papers_lead_shows_neither(
    mean: float, half_width: float, seen: str
) -> None:
    usual = next(readings_of_the_test(probes()))  # the paper's lead is 5.29
    assert replace(usual, lead=Interval(mean, half_width, 3)).size == seen
