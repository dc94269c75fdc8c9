"""Verdicts from tables that are made up: what each part decides, and what its claim says of its parts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedwave.reproduce.parts import Claim, Part
from fedwave.reproduce.seed_tables import Tables, read_rows, write_rows
from fedwave.reproduce.verdicts import (
    CLAIMS,
    Corrected,
    JudgedClaim,
    JudgedPart,
    claim_rows,
    corrected_for,
    decide,
    judge,
    verdict_of,
)
from fedwave.runs.inference import holm, outcome_of
from tests.reproduce.made_up_rows import cell_rows, table_2

SURE = Corrected(0.01, 1.0, 1.0)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([("holds", True), ("holds", True)], "2 of 2 hold"),
        ([("holds", True), ("open", True)], "1 of 2 hold"),
        ([("holds", False), ("does not hold", True)], "1 of 2 hold; of the point 0 of 1"),
        ([("no effect of interest", True)], "0 of 1 hold"),
    ],
)
def test_a_verdict_is_how_many_parts_hold(parts, verdict) -> None:
    assert verdict_of(parts) == verdict


def judged(*decisions: tuple[str, bool], untestable: str = "") -> JudgedClaim:
    part = Part("a", {}, "above", 0.0)
    return JudgedClaim(
        Claim("C", "", "", lambda tables: iter(()), untestable),
        tuple(
            JudgedPart(replace(part, is_point=is_point), outcome_of([1.0, 2.0], "above", 0.0), SURE, decision)
            for decision, is_point in decisions
        ),
    )


def test_a_claim_stands_as_the_parts_that_carry_its_point() -> None:
    assert judged(("holds", True), ("open", False)).standing == "holds"
    assert judged(("holds", True), ("open", True)).standing == "part"
    assert judged(("holds", False), ("does not hold", True)).standing == "fails"
    assert judged(("no effect of interest", True), ("open", True)).standing == "fails"
    assert judged(("not of the paper's size", True)).standing == "fails"
    assert judged(("open", True)).standing == "open"
    assert judged().standing == "open"


def test_what_the_paper_leaves_out_cannot_be_judged() -> None:
    assert judged(("holds", True), untestable="u").verdict == "not testable as printed"
    assert judged(("holds", True), untestable="u").standing == "open"
    assert judged(untestable="u").verdict == "not run"


def test_each_correction_is_over_all_parts_that_are_asked_the_question() -> None:
    tables = Tables({"table-2": table_2(0.7, 0.6, 0.5), "fig-4": cell_rows(5.0, 5.0)})
    parts = [part for one in judge(tables) for part in one.parts]
    assert len(parts) == 2 + 10 + 2
    tested = [part for part in parts if not part.outcome.is_exact]
    assert [part.part.name for part in parts if part.outcome.is_exact] == [
        "rounds in which the objective fell"
    ]
    assert [part.corrected.effect for part in tested] == holm([part.outcome.p_value for part in tested])
    sized = [part for part in tested if part.part.paper is not None]
    assert len(sized) == 2
    assert [part.corrected.size for part in sized] == holm([part.outcome.p_size for part in sized])
    small = [part for part in tested if part.part.interest is not None]
    assert len(small) == 2 + 8
    assert [part.corrected.small for part in small] == holm([part.outcome.p_small for part in small])
    assert {part.corrected.size for part in tested if part not in sized} == {1.0}


def test_without_any_run_every_claim_is_not_run() -> None:
    assert [one.verdict for one in judge(Tables({}))] == ["not run"] * len(CLAIMS)
    assert [one.claim.name for one in judge(Tables({}))] == [
        *("C1a", "C1b", "C2a", "C2b", "C3a", "C3b", "C4", "C5a", "C5b", "C5c"),
        *("C6a", "C6b", "C6c", "C7a", "C7b", "C8a", "C8b", "C8c", "C8d", "C9a", "C9b"),
    ]  # fmt: skip


def test_verdicts_do_not_change_on_the_way_through_files(tmp_path) -> None:
    own = [*cell_rows(5.0, 5.0)]
    write_rows(tmp_path / "fig-4" / "seeds.csv", own)
    again = read_rows(tmp_path / "fig-4" / "seeds.csv")
    first, second = (claim_rows(judge(Tables({"fig-4": rows}))) for rows in (again, own))
    assert [{k: str(v) for k, v in row.items()} for row in first] == [
        {k: str(v) for k, v in row.items()} for row in second
    ]
    assert len(first) == 12


ABOVE = Part("lead", {}, "above", 0.0, paper=5.0, interest=2.5)
NEAR = [1.0, 1.1, 0.9]


@pytest.mark.parametrize(
    ("p_values", "decision"),
    [
        ((0.049, 1.0, 0.01), "holds"),  # a sure effect is one, also where it is small
        ((0.05, 0.01, 0.049), "no effect of interest"),
        ((0.05, 0.049, 0.05), "not of the paper's size"),
        ((0.05, 0.05, 0.05), "open"),
    ],
)
def test_a_decision_needs_a_corrected_p_below_the_level(p_values, decision) -> None:
    assert (
        decide(ABOVE, outcome_of(NEAR, "above", 0.0, paper=5.0, interest=2.5), Corrected(*p_values))
        == decision
    )


def test_a_decision_takes_the_side_of_the_mean() -> None:
    below = replace(ABOVE, side="below", paper=-5.0)
    assert decide(below, outcome_of(NEAR, "below", 0.0), SURE) == "does not hold"
    only_size = Corrected(1.0, 0.01, 1.0)
    assert decide(below, outcome_of(NEAR, "below", 0.0), only_size) == "not of the paper's size"
    far = outcome_of([7.0, 7.1, 6.9], "above", 0.0)  # more than the paper's is not short of it
    assert decide(ABOVE, far, only_size) == "open"
    assert decide(replace(ABOVE, paper=None), outcome_of(NEAR, "above", 0.0), only_size) == "open"


def test_what_is_exact_is_decided_without_a_test_and_one_seed_decides_nothing() -> None:
    none = Corrected(1.0, 1.0, 1.0)
    for value, decision in ((2.0, "holds"), (0.0, "does not hold")):
        assert decide(ABOVE, outcome_of([value] * 3, "above", 0.0), none) == decision
        assert decide(ABOVE, outcome_of([-value] * 3, "below", 0.0), none) == decision
    assert decide(ABOVE, outcome_of([3.0], "above", 0.0), Corrected(0.0, 0.0, 0.0)) == "open"


def test_a_row_has_nothing_where_nothing_was_asked() -> None:
    rows = {row["part"]: row for row in claim_rows(judge(Tables({"fig-4": cell_rows(5.0, 5.0)})))}
    exact = rows["rounds in which the objective fell"]
    assert (exact["is_exact"], exact["mean"], exact["half_width"]) == (1, 0.0, 0.0)
    assert all(math.isnan(exact[name]) for name in ("p", "p_holm", "p_size", "p_run", "p_small", "paper"))
    lead = rows["time beside NUFM-Greedy"]
    assert (lead["unit"], lead["is_exact"]) == ("log of times", 0)
    assert lead["mean"] == pytest.approx(math.log(0.5), abs=0.01)
    assert lead["interest"] == pytest.approx(math.log(1.05))


def test_parts_of_one_seed_or_none_are_not_corrected_for() -> None:
    parts = [replace(ABOVE, values={}) for _ in range(3)]
    outcomes = [outcome_of(values, "above", 0.0) for values in (NEAR, [1.0], NEAR)]
    found = [one.effect for one in corrected_for(parts, outcomes)]
    assert found == [pytest.approx(2 * outcomes[0].p_value), 1.0, pytest.approx(2 * outcomes[2].p_value)]
