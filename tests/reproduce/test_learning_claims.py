"""Verdicts on C1 to C4 from tables that are made up: each follows from its numbers alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.reproduce.learning_claims import rounds_until
from fedwave.reproduce.seed_tables import Tables
from fedwave.reproduce.verdicts import JudgedPart, judge
from tests.reproduce.made_up_rows import SEEDS, rows, table_2


def judged(curves=None, **items) -> dict[str, list[JudgedPart]]:
    tables = Tables({name.replace("_", "-"): own for name, own in items.items()}, curves)
    return {one.claim.name: list(one.parts) for one in judge(tables) if one.parts}


def decisions(**items) -> dict[str, list[str]]:
    return {name: [part.decision for part in parts] for name, parts in judged(**items).items()}


@pytest.mark.parametrize(
    ("accuracies", "first", "second"),
    [
        ((0.7, 0.6, 0.5), "holds", "holds"),
        ((0.7, 0.6, 0.65), "holds", "does not hold"),
        ((0.5, 0.6, 0.7), "does not hold", "does not hold"),
    ],
)
def test_the_order_of_table_2_is_two_claims(accuracies, first, second) -> None:
    assert decisions(table_2=table_2(*accuracies)) == {"C1a": [first], "C1b": [second]}


def leads_about(middle: float, spread: float) -> list[dict]:
    own = table_2(0.6, 0.6, 0.5)
    for row in own:
        if row["scheme"] == "NUFM":
            row["accuracy"] = 0.6 + middle + spread * (-1) ** row["seed"]
        if row["scheme"] == "Per-FedAvg":
            row["accuracy"] = 0.6
    return own


@pytest.mark.parametrize(
    ("middle", "spread", "decision"),
    [
        (0.001, 0.01, "no effect of interest"),  # 0.1 ± 0.9 points: within half of the paper's 5.29
        (0.015, 0.03, "not of the paper's size"),  # 1.5 ± 2.7 points: beyond 2.6, but surely not 5.29
        (0.02, 0.08, "open"),
    ],
)
def test_a_lead_about_zero_says_how_large_it_may_be(middle, spread, decision) -> None:
    (lead,) = judged(table_2=leads_about(middle, spread))["C1a"]
    assert lead.decision == decision
    assert (lead.part.paper, lead.part.interest) == (pytest.approx(5.29), pytest.approx(5.29 / 2))
    assert lead.outcome.mean == pytest.approx(100 * middle)
    run = judged(table_2=leads_about(middle, spread))["C1b"][0]
    assert (run.part.paper, run.part.interest) == (pytest.approx(1.71), 1.0)  # at least one point


@pytest.mark.parametrize(("many", "decision"), [(1.3, "holds"), (1.1, "does not hold")])
def test_c2_needs_its_nine_and_twenty_per_cent_of_both_losses(many: float, decision: str) -> None:
    # With 1.1 the loss is 4.8 % and 9.1 % lower: both too little.
    losses = {20: 1.0, 30: 1.0 + (many - 1) / 2, 40: many}
    own = [
        row
        for n, loss in losses.items()
        for row in rows("NUFM", value=float(n), loss_19=loss, train_loss_19=2 * loss)
    ]
    found = judged(fig_2=own)["C2a"]
    assert [part.decision for part in found] == [decision] * 4
    assert ["reported" in part.part.name for part in found] == [False, False, True, True]
    for row in own:
        row["training_loss_19"] = 1.0 + 0.001 * math.sin(row["seed"] + row["value"])
    known = judged(fig_2=own)["C2a"]
    assert ["training devices" in part.part.name for part in known] == [False, False, True, True]
    assert [part.decision for part in known] == [decision] * 2 + ["does not hold"] * 2
    own[0]["training_loss_19"] = math.nan  # one run of before: what devices report is known of all
    assert ["reported" in part.part.name for part in judged(fig_2=own)["C2a"]] == [False, False, True, True]


def test_c3_and_c4_follow_nufms_lead() -> None:
    def leads(parameter: str, by_value: dict[int, float]):
        found = [
            row
            for value, lead in by_value.items()
            for scheme, loss in (("NUFM", 1.0 - lead), ("Per-FedAvg", 1.0), ("FedAvg", 1.0))
            for row in rows(scheme, parameter=parameter, value=float(value), loss_19=loss)
        ]
        for row in found:  # the relative lead must vary over seeds, or there is nothing to test
            row["loss_19"] += 0.001 * np.cos(row["seed"] + row["value"])
        return found

    shrinking = leads("num_selected", {20: 0.2, 30: 0.15, 40: 0.1})
    assert decisions(fig_2=shrinking)["C3a"] == ["holds"]
    growing = leads("num_local_steps", {1: 0.1, 2: 0.2, 3: 0.3})
    assert decisions(fig_3=growing) == {"C4": ["does not hold"] * 2}


def test_speed_is_judged_over_the_whole_curve() -> None:
    """Per-FedAvg falls by 0.1 a round from 10; NUFM is four rounds ahead, and in its area 0.4 below 7.45."""
    curves, seeds = [], []
    for scheme, ahead in (("NUFM", 4.0), ("Per-FedAvg", 0.0)):
        for seed in SEEDS:
            shift = ahead + 0.01 * math.sin(seed) * (scheme == "NUFM")
            losses = [10.0 - 0.1 * (k + shift) for k in range(1, 51)]
            labels = {"dataset": "cifar-100", "scheme": scheme, "value": 20.0, "seed": seed}
            curves.append(labels | {f"loss_{k}": loss for k, loss in enumerate(losses, start=1)})
            area = {"counting": "", "parameter": "", "loss_area": sum(losses) / 50, "loss_19": losses[18]}
            seeds.append(labels | area)
    found = {part.part.name: part for part in judged({"fig-2": curves}, fig_2=seeds)["C3b"]}
    saved = found["rounds saved (held-out) at Per-FedAvg's round 19 on CIFAR-100"]
    assert (saved.outcome.mean, saved.decision) == (pytest.approx(4.0, abs=0.01), "holds")
    area = found["area under the loss (held-out), NUFM below Per-FedAvg on CIFAR-100"]
    assert (area.outcome.mean, area.decision) == (pytest.approx(100 * 0.4 / 7.45, abs=0.05), "holds")
    assert len(found) == 2  # no curve of the training devices
    short = [
        {name: own for name, own in row.items() if not name.startswith("loss_") or int(name[5:]) <= 19}
        for row in curves
    ]
    parts = {part.part.name: part for part in judged({"fig-2": short}, fig_2=seeds)["C3b"]}
    assert parts[saved.part.name].outcome.mean == pytest.approx(4.0, abs=0.01)  # 19 rounds are enough


def test_the_round_that_reaches_a_loss_lies_between_two() -> None:
    assert rounds_until([4.0, 3.0, 1.0], 3.0) == 2.0
    assert rounds_until([4.0, 3.0, 1.0], 2.5) == 2.25
    assert rounds_until([4.0, 5.0, 1.0], 4.5) == 1.0  # it begins there
    assert rounds_until([4.0, 3.0, 1.0], 0.5) == 3.0  # it does not get there
    assert rounds_until([4.0, 3.0, 1.0], 1.0) == 3.0
    assert rounds_until([4.0, 5.0, 1.0], 4.0) == 1.0  # also where it only just does
