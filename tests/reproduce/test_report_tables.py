"""The tables of the report against hand arithmetic on rows that are made up."""

from __future__ import annotations

import math

import pytest

from fedwave.reproduce.claims import Claim, Part
from fedwave.reproduce.readings import (
    order_seen,
    readings_of_local_steps,
    readings_of_the_test,
)
from fedwave.reproduce.report_tables import (
    accuracy_table,
    claims_table,
    figures_table,
    points,
    readings_table,
    steps_table,
)
from fedwave.reproduce.verdicts import JudgedClaim, JudgedPart, Outcome
from tests.reproduce.made_up_rows import ACCURACY, accuracy_rows, probes


def test_table_2_has_means_intervals_and_the_papers_numbers() -> None:
    header, (row,) = accuracy_table(accuracy_rows())
    # 4.303 is Student's quantile for three seeds; NUFM's deviation is 10 points, that of its lead 2.9.
    wide, narrow = (4.302653 * deviation / math.sqrt(3) for deviation in (10.0, math.sqrt(25 / 3)))
    assert (row[0], row[-1]) == ("Fashion-MNIST", 3)
    assert header[1] == "NUFM [%]"
    assert row[1] == f"80.00 ± {wide:.2f} (68.04)"
    assert header[4] == "NUFM − Per-FedAvg [points]"
    assert row[4] == f"+8.33 ± {narrow:.2f} (+5.29)"
    assert header[5] == "Per-FedAvg − FedAvg [points]"
    assert row[5].startswith("+1.67 ± ")


def test_table_2_of_a_dataset_that_the_paper_lacks_has_our_numbers_alone() -> None:
    own = [row | {"dataset": "digits", "accuracy": 1.0 - row["accuracy"]} for row in accuracy_rows()]
    _, (row,) = accuracy_table(own)
    assert row[0] == "digits"
    assert row[4].startswith("−8.33 ± ")
    assert not any("(" in str(cell) for cell in row)


def test_nothing_has_no_minus() -> None:
    assert points(-1e-17, 0.0, "+") == "+0.00 ± 0.00"
    assert points(-0.006, 0.1, "+") == "−0.01 ± 0.10"


def test_the_table_of_readings_begins_with_the_paper() -> None:
    readings = list(readings_of_the_test(probes()))
    header, table = readings_table(readings)
    assert table[0] == ["the paper", "68.04", "62.75", "61.04", "+5.29", "+7.00", "", "", ""]
    assert table[1][:4] == ["as we read it", "80.00", "71.67", "70.00"]
    assert {len(row) for row in table} == {len(header)}
    assert len(table) == 1 + len(readings)


def test_readings_of_local_steps_are_of_round_19_and_paired_with_the_fewest() -> None:
    steps = [
        row | {"value": value, "accuracy_19": row["accuracy"] + (0.0 if row["scheme"] == "NUFM" else -less)}
        for value, less in ((10.0, 0.2), (1.0, 0.0), (5.0, 0.1))
        for row in accuracy_rows("num_local_steps")
    ]
    later = [row | {"accuracy": 0.0} for row in steps]  # the end of longer runs
    readings = list(readings_of_local_steps(later))
    assert [one.name for one in readings] == ["τ = 1", "τ = 5", "τ = 10"]
    assert [one.order for one in readings] == ["unclear", "unclear", "unclear"]  # FedAvg: 10 ± 37
    assert [one.lead.mean for one in readings] == pytest.approx([25 / 3, 55 / 3, 85 / 3])
    assert [one.change.count for one in readings] == [0, 3, 3]
    assert readings[2].change.mean == pytest.approx(20.0)
    header, table = steps_table(readings)
    assert {len(row) for row in table} == {len(header)}
    assert (header[-1], table[0][-1]) == ("paper's order", "unclear")
    seen = order_seen("fashion-mnist", readings)
    assert seen == "**Fashion-MNIST**: of 3 readings, the paper's order is seen under none"


def test_figures_of_schemes_have_their_means() -> None:
    header, table = figures_table(accuracy_rows(), {"accuracy": "accuracy [%]"})
    assert header == ("", "accuracy [%]", "seeds")
    assert [row[0] for row in table] == list(ACCURACY)
    assert table[0][1].startswith("80 ± 25")


def judged(*decisions: str) -> JudgedClaim:
    """A claim of parts called a, b, c …, decided like this."""
    outcome = Outcome(mean=1.0, half_width=0.5, count=4, p_value=0.2, sign_flip_p=0.2, is_for=True)
    parts = [
        JudgedPart(
            Part(name, {}, "above", 0.0), outcome, 0.4, decision, 30 if decision == "undecided" else None
        )
        for name, decision in zip("abcdef", decisions, strict=False)
    ]
    return JudgedClaim(Claim("C", "text", "Fig. 0", lambda tables: iter(())), tuple(parts))


def deciding(*decisions: str) -> str:
    _, ((*_, text),) = claims_table([judged(*decisions)])
    return str(text)


def test_a_claim_of_many_parts_names_those_in_its_way() -> None:
    assert (
        deciding("holds", "undecided")
        == "a: 1.00 ± 0.50, holds; b: 1.00 ± 0.50, undecided (≈ 30 seeds would)"
    )
    assert deciding("holds", "undecided", "does not hold", "undecided") == (
        "1 of 4 parts holds; does not hold: c; undecided: b (≈ 30 seeds would), d (≈ 30 seeds would)"
    )
    assert deciding("holds", "holds", "holds") == "3 of 3 parts hold"
    assert deciding("undecided", "does not hold", "does not hold") == (
        "none of 3 parts hold; does not hold: b, c; undecided: a (≈ 30 seeds would)"
    )
