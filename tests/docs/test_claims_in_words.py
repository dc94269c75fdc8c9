"""Sentences about the reproduction follow from its numbers, whatever these are."""

from __future__ import annotations

from dataclasses import replace

from fedwave.intervals import Interval
from fedwave.reproduce.readings import Reading, readings_of_training
from fedwave.reproduce.seed_tables import Tables
from fedwave.reproduce.verdicts import judge
from tests.reproduce.made_up_rows import accuracy_rows, rows, table_2
from tools.docs.claims_in_words import (
    columns_in_words,
    in_words,
    listed,
    orders_in_words,
    outside_of_one_run,
    sentences,
    trained_in_words,
)


def test_what_lies_outside_of_one_run_is_named_with_the_papers_number() -> None:
    # The paper: 68.04, 62.75, 61.04; every spread here is below a tenth of a point.
    near = Tables({"table-2": table_2(0.6804, 0.6275, 0.6104)})
    assert outside_of_one_run(near) == {"fashion-mnist": []}
    far = Tables({"table-2": table_2(0.6804, 0.6804, 0.6104)})
    assert outside_of_one_run(far) == {
        "fashion-mnist": ["Per-FedAvg 62.75", "NUFM − Per-FedAvg +5.29", "Per-FedAvg − FedAvg +1.71"]
    }
    alone = Tables({"table-2": [row for row in far.rows["table-2"] if row["seed"] == 0]})
    assert outside_of_one_run(alone) == {"fashion-mnist": None}


def test_columns_are_told_apart_by_what_lies_outside() -> None:
    said = columns_in_words({"cifar-10": [], "cifar-100": ["FedAvg 10.13"], "tiny-imagenet": None})
    assert said == (
        "on CIFAR-10 every number of the paper lies inside; on CIFAR-100 outside are FedAvg 10.13; "
        "on Tiny ImageNet there are too few seeds"
    )
    assert columns_in_words({}) == "not run yet"


def test_leads_are_said_with_their_decisions() -> None:
    tables = Tables({"table-2": table_2(0.70, 0.60, 0.65)})
    found = sentences(tables, judge(tables))
    assert found["nufm_leads"].endswith("points on Fashion-MNIST (holds)")
    assert found["per_fedavg_leads"].startswith("−5.0")
    assert found["per_fedavg_leads"].endswith("points on Fashion-MNIST (does not hold)")
    assert found["area_training"].startswith("not known")
    assert in_words([]) == "not run yet"


def test_the_area_under_the_loss_is_said_by_whose_it_is() -> None:
    own = [
        row
        for scheme, loss in (("NUFM", 1.0), ("Per-FedAvg", 2.0))
        for row in rows(scheme, value=20.0, loss_area=loss, training_loss_area=loss / (3 - loss))
    ]
    tables = Tables({"table-2": table_2(0.70, 0.60, 0.65), "fig-2": own})
    found = sentences(tables, judge(tables))
    assert found["area_heldout"].startswith("50")
    assert found["area_training"].startswith("75")


def test_orders_are_grouped_surest_first() -> None:
    (one,) = readings_of_training(accuracy_rows("as we read it"))
    sure = replace(one, dataset="cifar-100", corrected_p=0.01, num_in_order=3)
    assert orders_in_words([one, sure]) == (
        "surely seen on CIFAR-100 (3 of 3 seeds); seen in the means alone on Fashion-MNIST (2 of 3 seeds)"
    )
    assert orders_in_words([]) == "not run yet"


def test_lists_read_as_prose() -> None:
    assert [listed(own) for own in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip


def test_scales_at_which_time_surely_rises_are_counted() -> None:
    varied = []
    for scheme, exponent in (("raw u", 0.2), ("mean |u| = 10", -0.2)):
        for weight in (0.5, 1.0, 2.5):
            labels = {"parameter": "energy_weight", "value": weight}
            varied += rows(
                f"URAL (optimal), {scheme}", **labels, energy_j=5.0, delay_s=2.0 * weight**exponent
            )
    for row in varied:  # no slope is the same for all seeds
        row["delay_s"] *= 1.0 + 0.001 * row["seed"] * row["value"]
    tables = Tables({"scales": varied})
    assert sentences(tables, judge(tables))["scales_rising"] == "1 of 2"


def test_the_reading_nearest_to_both_leads_of_the_paper_is_named() -> None:
    """The paper leads by 5.29 and 1.71 points; by the distance of both, not of the first alone."""
    usual, *_ = readings_of_training(accuracy_rows("as we read it"))

    def reading(name: str, first: float, second: float, order: float) -> Reading:
        leads = {"lead": Interval(first, 0.5, 3), "last_lead": Interval(second, 0.25, 3)}
        return replace(usual, name=name, corrected_p=order, **leads)

    own = [
        reading("first only", 5.29, -9.0, 0.01), reading("both", 4.0, 1.0, 0.01),
        reading("neither", 1.0, 9.0, 0.5),
    ]  # fmt: skip
    assert trained_in_words({"fashion-mnist": own}) == (
        "on Fashion-MNIST, of 3 readings, its order of all three is surely seen under 1 and in the means "
        "alone under 1; nearest to its two leads of +5.29 and +1.71 points comes “both” with +4.00 ± 0.50 "
        "and +1.00 ± 0.25"
    )
    assert "surely seen under none and in the means alone under none" in trained_in_words(
        {"fashion-mnist": own[:1]}
    )
    assert trained_in_words({}) == "not run yet"
