"""The tables of the report against hand arithmetic on rows that are made up."""

from __future__ import annotations

import math

import pytest

from fedwave.reproduce.readings import all_readings
from fedwave.reproduce.report_tables import accuracy_table, figures_table, readings_table

ACCURACY = {"NUFM": (0.7, 0.8, 0.9), "Per-FedAvg": (0.6, 0.75, 0.8), "FedAvg": (0.75, 0.7, 0.65)}


def rows(parameter: str = "", shift: float = 0.0) -> list[dict]:
    return [
        {
            "dataset": "fashion-mnist",
            "scheme": scheme,
            "counting": "",
            "parameter": parameter,
            "value": math.nan,
            "seed": seed,
            "accuracy": value + (shift if scheme == "NUFM" else 0.0),
        }
        for scheme, values in ACCURACY.items()
        for seed, value in enumerate(values)
    ]


def probes() -> list[dict]:
    """Pooled accuracies are ten points lower, and without adaptation everybody has 30 %."""
    found = []
    for scheme, values in ACCURACY.items():
        for seed, value in enumerate(values):
            for judgement in (
                "one step",
                "no adaptation",
                "5 steps",
                "10 steps",
                "one step, rate x 10",
                "training devices",
            ):
                own = 0.3 if judgement == "no adaptation" else value
                found.append(
                    {
                        "dataset": "fashion-mnist",
                        "scheme": scheme,
                        "seed": seed,
                        "round": 50,
                        "judgement": judgement,
                        "accuracy": own,
                        "accuracy_pooled": own - 0.1,
                        "accuracy_own": own,
                        "accuracy_own_pooled": own,
                    }
                )
    return found


def test_table_2_has_means_intervals_and_the_papers_numbers() -> None:
    _, ((name, nufm, paper, *_, seeds),) = accuracy_table(rows())
    # 4.303 is Student's quantile for three seeds; their deviation is 10 points.
    assert (name, paper, seeds) == ("Fashion-MNIST", "68.04 %", 3)
    assert nufm == f"80.00 ± {4.302653 * 10 / math.sqrt(3):.2f} %"


def test_a_reading_is_paired_by_seed() -> None:
    found = {r.name: r for r in all_readings([*rows("as we read it"), *rows("other", shift=0.05)], probes())}
    usual, other = found["as we read it"], found["other"]
    assert usual.lead.mean == pytest.approx((10 + 5 + 10) / 3)
    assert usual.other_lead.mean == pytest.approx((-5 + 10 + 25) / 3)
    assert usual.change.count == 0
    assert (other.change.mean, other.change.half_width) == pytest.approx((5.0, 0.0), abs=1e-9)
    assert found["pooled over devices"].accuracy[0].mean == pytest.approx(70.0)
    assert found["nobody adapts before the test"].lead.mean == 0.0
    unfair = found["FedAvg does not adapt, the others do"]
    assert unfair.other_lead.mean == pytest.approx(80 - 30)
    assert unfair.lead.mean == usual.lead.mean


def test_the_papers_order_is_seen_only_where_both_leads_are_sure() -> None:
    found = {r.name: r for r in all_readings(rows("as we read it"), probes())}
    assert found["as we read it"].order == "unclear"  # the lead over FedAvg is 10 ± 37
    assert found["FedAvg does not adapt, the others do"].order == "yes"  # 8.3 ± 7.2 and 50 ± 25
    below = [
        row | {"accuracy": 0.2 + 0.001 * row["seed"]} if row["scheme"] == "NUFM" else row
        for row in rows("as we read it")
    ]
    assert next(iter(all_readings(below, []))).order == "no"
    _, table = readings_table(found.values())
    assert all(len(row) == 9 for row in table)


def test_figures_of_schemes_have_their_means() -> None:
    header, table = figures_table(rows(), {"accuracy": "accuracy [%]"})
    assert header == ("", "accuracy [%]", "seeds")
    assert [row[0] for row in table] == list(ACCURACY)
    assert table[0][1].startswith("80 ± 25")
