"""What the page on NUFM says: counts of chosen rates, findings by dataset, and the table of the steps."""

from __future__ import annotations

import math

import pytest

from fedwave.reproduce.parts import Part
from fedwave.reproduce.studies import judged_comparisons, study_of
from tools.docs.nufm_page import SEEN_SEEDS, concluded, counted, later_seeds, said
from tools.docs.steps_page import steps_table

ARMS = {"NUFM": (0.5, 2.0), "uniform": (1.0, 1.0), "uniform at NUFM's norms": (0.5, 2.0)}
SEEDS = range(4)


def step_rows(dataset: str) -> tuple[list[dict], list[dict]]:
    """NUFM halves the loss and steps twice as far; so does uniform drawing with its norms."""
    rows, curves = [], []
    for arm, (loss, length) in ARMS.items():
        for seed in SEEDS:
            own = {"dataset": dataset, "scheme": arm, "seed": seed}
            rows.append({**own, "rounds": 50, "accuracy": 0.7 + (0.1 if arm == "uniform" else 0.0)})
            tilt = 1.0 + 0.01 * seed * (arm == "NUFM")
            values = {
                "heldout_loss": loss * tilt,
                "training_loss": loss * tilt,
                "update_norm": length * (1.0 + 0.1 * seed),
                "gain_correlation": 0.8 if seed % 2 else 0.6,
                "mean_cosine": 0.25,
            }
            for curve, value in values.items():
                curves.append({**own, "curve": curve} | {f"round_{k}": value for k in range(1, 51)})
    return rows, curves


def test_a_rate_that_all_seeds_chose_needs_no_count() -> None:
    assert counted([0.003, 0.003]) == "0.003"
    assert counted([0.003, 0.006, 0.006]) == "0.006 (2 times) or 0.003 (once)"
    assert counted([]) == "none"


def test_a_finding_is_told_for_every_dataset_that_has_it() -> None:
    parts = [step_rows(dataset) for dataset in ("fashion-mnist", "cifar-100")]
    rows, curves = ([one for part in parts for one in part[i]] for i in (0, 1))
    study = study_of("steps", rows, curves)
    text = said(study, "held-out loss, round 5: NUFM below uniform")
    assert text.count(" on ") == 2  # not that below uniform at NUFM's norms
    assert "49" in text
    assert text.endswith("on CIFAR-100 (above zero)")
    assert said(study, "held-out loss, round 7: NUFM below uniform") == "not run yet"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1.0, 2.0, 1.8), "open; by itself above zero"),
        ((-1.0, -2.0, -1.8), "open; by itself below zero"),
        ((-1.0, 2.0, 3.0), "open"),
        ((2.0,), "open"),
    ],
)
def test_what_only_the_correction_leaves_open_is_told_with_its_side(values, words) -> None:
    """By themselves p = 0.035; with two noisy comparisons beside it, Holm asks for three times less."""
    others = [(f"other {i}", (-1.0, 2.0, 0.5)) for i in range(2)]
    study = judged_comparisons(
        Part(name, dict(enumerate(own)), "above", 0.0, "points") for name, own in [("x", values), *others]
    )
    assert concluded(study[0]) == words


def test_later_seeds_are_told_once_there_are_any() -> None:
    rows = [
        {"dataset": "fashion-mnist", "scheme": scheme, "value": 0.001, "seed": seed, "accuracy": accuracy}
        for scheme, accuracy in (("NUFM", 0.75), ("Per-FedAvg", 0.5))
        for seed in range(SEEN_SEEDS + 2)
    ]
    assert later_seeds(rows) == "NUFM − Per-FedAvg 25 points, exact (above zero)"
    assert later_seeds([row for row in rows if row["seed"] < SEEN_SEEDS]) == "not run yet"


def test_the_table_of_steps_has_a_column_for_each_dataset_and_bold_is_sure() -> None:
    rows, curves = step_rows("cifar-10")
    lines = steps_table(rows, curves, study_of("steps", rows, curves)).split("\n")
    cells = dict(tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line)
    assert "CIFAR-10, 4 seeds" in lines[0]
    assert cells["NUFM's step by uniform's, round 3"] == "2.0 × (2.0–2.0)"
    assert cells["held-out loss, round 5: the lead as the paper sees it"].startswith("**49")
    assert not cells["held-out loss, round 5: what is left at equal lengths"].startswith("**")
    assert cells["herding − uniform"] == ""  # no such runs
    low, high = (math.tanh(math.atanh(r)) for r in (0.6, 0.8))
    mean, ends = cells["norm and gain correlate, round 1"].split(" ", 1)
    assert low < float(mean) < high
    first, last = (float(end) for end in ends.strip("()").split(" to "))
    assert first < float(mean) < last
    assert float(mean) == pytest.approx(math.tanh((math.atanh(0.6) + math.atanh(0.8)) / 2), abs=0.005)


def test_a_negative_correlation_has_one_kind_of_minus() -> None:
    rows, curves = step_rows("cifar-10")
    for row in curves:
        if row["curve"] == "gain_correlation":
            row |= {name: -value for name, value in row.items() if name.startswith("round_")}
    lines = steps_table(rows, curves, study_of("steps", rows, curves)).split("\n")
    (line,) = (one for one in lines if "norm and gain correlate, round 1 " in one)
    assert "-" not in line
    assert line.count("−") == 3
