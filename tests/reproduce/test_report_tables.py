"""The tables of the report against hand arithmetic on rows that are made up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedwave.reproduce.parts import Claim, Part
from fedwave.reproduce.readings import (
    order_seen,
    readings_of_local_steps,
    readings_of_the_test,
)
from fedwave.reproduce.report_tables import (
    accuracy_table,
    claims_table,
    figures_table,
    part_left,
    part_measured,
    parts_table,
    points,
    readings_table,
    scales_table,
    steps_table,
    study_table,
)
from fedwave.reproduce.verdicts import Corrected, JudgedClaim, JudgedPart
from fedwave.runs.inference import outcome_of
from tests.reproduce.made_up_rows import ACCURACY, accuracy_rows, probes, rows


def test_table_2_has_means_intervals_and_the_papers_numbers() -> None:
    header, (row,) = accuracy_table(accuracy_rows())
    # 4.303 is Student's quantile for three seeds; NUFM's deviation is 10 points, that of its lead 2.9.
    wide, narrow = (4.302653 * deviation / math.sqrt(3) for deviation in (10.0, math.sqrt(25 / 3)))
    assert (row[0], row[-1]) == ("Fashion-MNIST", 3)
    assert header[1] == "NUFM [%]"
    assert row[1] == f"80.00 ± {wide:.2f}; one run ± {2 * wide:.2f} (paper 68.04)"
    assert header[4] == "NUFM − Per-FedAvg [points]"
    assert row[4] == f"+8.33 ± {narrow:.2f}; one run ± {2 * narrow:.2f} (paper +5.29)"
    assert header[5] == "Per-FedAvg − FedAvg [points]"
    assert row[5].startswith("+1.67 ± ")
    far = [row | {"accuracy": row["accuracy"] / 100} for row in accuracy_rows()]
    _, (row,) = accuracy_table(far)
    assert row[1].endswith("(paper 68.04, outside)")


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
    assert table[0] == ["the paper", "68.04", "62.75", "61.04", "+5.29", "+1.71", "", "", "", "", ""]
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
    assert [one.order for one in readings] == ["in the means"] * 3
    assert [one.num_in_order for one in readings] == [2, 2, 2]  # FedAvg is ahead of one seed's Per-FedAvg
    assert [one.lead.mean for one in readings] == pytest.approx([25 / 3, 55 / 3, 85 / 3])
    assert [one.change.count for one in readings] == [0, 3, 3]
    assert readings[2].change.mean == pytest.approx(20.0)
    header, table = steps_table(readings)
    assert {len(row) for row in table} == {len(header)}
    assert (header[-1], table[0][-1]) == ("paper's order", "in the means")
    assert order_seen("fashion-mnist", readings).endswith(
        "in the means alone under “τ = 1”, “τ = 5”, “τ = 10”"
    )


def test_figures_of_schemes_have_their_means() -> None:
    header, table = figures_table(accuracy_rows(), {"accuracy": "accuracy [%]"})
    assert header == ("", "accuracy [%]", "seeds")
    assert [row[0] for row in table] == list(ACCURACY)
    assert table[0][1].startswith("80 ± 25")


def test_times_have_medians_and_ranges_as_their_mean_does_not_exist() -> None:
    slow = [row | {"delay_s": delay} for row, delay in zip(accuracy_rows(), (5.0, 9.0, 4e6) * 3, strict=True)]
    header, table = figures_table(slow, {"delay_s": "time"})
    assert header == ("", "time", "seeds")
    assert table[0] == ["NUFM", "9 (5 to 4,000,000)", 3]
    nothing = [row | {"delay_s": math.nan} for row in slow]
    assert figures_table(nothing, {"delay_s": "time"})[1][0][1] == "–"


def judged(*decisions: str, untestable: str = "") -> JudgedClaim:
    """A claim of parts called a, b, c …, decided like this, with 1.00 ± 0.50."""
    outcome = replace(outcome_of([0.9, 1.1], "above", 0.0), mean=1.0, half_width=0.5, count=4)
    parts = [
        JudgedPart(Part(name, {}, "above", 0.0, "points"), outcome, Corrected(0.4, 1.0, 1.0), decision)
        for name, decision in zip("abcdef", decisions, strict=False)
    ]
    return JudgedClaim(Claim("C", "text", "Fig. 0", lambda tables: iter(()), untestable), tuple(parts))


def deciding(*decisions: str, untestable: str = "") -> str:
    _, ((*_, text),) = claims_table([judged(*decisions, untestable=untestable)])
    return str(text)


def test_a_claim_of_many_parts_says_where_each_number_holds_and_what_is_left_of_open_ones() -> None:
    assert deciding("holds", "open") == (
        "a: 1.00 ± 0.50 points, holds; b: 1.00 ± 0.50 points, open (+0.5 to +1.5 points)"
    )
    assert (
        deciding("holds", "open", "does not hold")
        == "A: holds. B: open (+0.5 to +1.5 points). C: does not hold"
    )
    decisions = ("open", "holds", "no effect of interest", "holds", "open", "does not hold")
    one = judged(*decisions)
    parts = tuple(
        replace(part, part=replace(part.part, what=what, where=f"on {part.part.what.upper()}"))
        for part, what in zip(one.parts, ("lead", "lead", "lead", "slope", "slope", "lead"), strict=True)
    )
    _, ((*_, text),) = claims_table([replace(one, parts=parts)])
    assert text == (
        "Lead: holds on B; does not hold on F; no effect of interest on C (+0.5 to +1.5 points); "
        "open on A (+0.5 to +1.5 points). Slope: holds on D; open on E (+0.5 to +1.5 points)"
    )
    assert deciding("holds", untestable="no scale").startswith("no scale; with raw u: a: ")


def measured(part: Part, values: list[float]) -> JudgedPart:
    outcome = outcome_of(values, part.side, part.threshold)
    own = replace(part, values=dict(enumerate(values)))
    return JudgedPart(own, outcome, Corrected(0.4, 1.0, 1.0), "open")


def test_ratios_are_geometric_counts_have_the_rule_of_three_and_equal_numbers_are_exact() -> None:
    ratio = measured(Part("r", {}, "below", 0.0, "times", is_ratio=True), [math.log(2.0), math.log(8.0)])
    assert part_measured(ratio).startswith("4.0 × (")
    assert part_left(ratio).endswith(" times")
    never = measured(Part("n", {}, "below", 0.5, num_trials=250), [0.0, 0.0])
    assert part_measured(never) == "0 of 250, below 1.2 % at 95 %"
    assert part_measured(measured(Part("n", {}, "below", 0.5, num_trials=250), [2.0, 1.0])) == "3 of 250"
    same = measured(Part("s", {}, "above", 0.0, "%"), [-2.0, -2.0])
    assert (part_measured(same), part_left(same)) == ("−2 %, exact", "")
    assert part_left(measured(Part("o", {}, "above", 0.0), [1.0])) == "one seed excludes nothing"


def test_the_table_of_parts_has_every_question() -> None:
    part = Part("lead", {}, "above", 0.0, "points", "+5.00", 5.0, 2.5)
    own = measured(part, [1.0, 2.0, 3.0])
    one = JudgedClaim(Claim("C1", "t", "s", lambda tables: iter(())), (own,))
    header, (row,) = parts_table([one])
    cells = dict(zip(header, row, strict=True))
    assert cells["claimed"] == "above 0 points"
    assert cells["mean, 95 %"] == "2.0 ± 2.5 points"
    assert cells["one run, 95 %"] == "2.0 ± 5.0"  # sqrt(4) as wide
    assert (cells["the paper"], cells["smallest effect of interest"]) == ("+5.00", "2.5 points")
    assert cells["is there an effect: p (Holm)"] == "0.074 (0.4)"
    plain = JudgedClaim(one.claim, (measured(Part("x", {}, "within", 5.0, "%"), [1.0, 2.0]),))
    _, (row,) = parts_table([plain])
    assert row[6:12] == ["", "", "", "", "", ""]


def test_a_study_names_its_findings() -> None:
    part = Part("lead", {}, "above", 0.0, "points", interest=1.0)
    found = [
        replace(measured(part, [1.0, 1.2]), decision=name) for name in ("holds", "does not hold", "open")
    ]
    _, table = study_table(found)
    assert [row[-1] for row in table] == ["above zero", "below zero", "open"]
    assert table[0][4] == "1 points"


def test_scales_show_the_time_at_both_ends_and_whether_the_papers_slope_is_one_run() -> None:
    exponents = {"raw u": 0.0, "mean |u| = 10, D = 2": math.log(21.53 / 18.63) / math.log(5.0)}
    every = [
        row | {"delay_s": 20.0 * weight**exponent * (1.0 + 0.01 * math.cos(row["seed"] + 3.0 * weight))}
        for name, exponent in exponents.items()
        for weight in (0.5, 1.0, 2.5)
        for row in rows(f"URAL (optimal), {name}", value=weight)
    ]
    header, table = scales_table(every)
    assert header[1:3] == ("time at η₁ = 0.5", "time at η₁ = 2.5")
    assert [row[0] for row in table] == ["the paper", *exponents]
    assert table[0][1:4] == ["18.63", "21.53", "0.090"]
    assert [row[4] for row in table] == ["", "outside", "inside"]
    assert table[1][1].startswith("20")
    assert table[2][2].startswith("21.7")  # 20 times 2.5 to the 0.0899
    assert [row[5] for row in table] == ["", 8, 8]
    _, alone = scales_table([row for row in every if row["seed"] == 0])
    assert [row[4] for row in alone] == ["", "too few seeds", "too few seeds"]
