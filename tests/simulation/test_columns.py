"""Every column of the tables by hand: one small round over a cell, and one without."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import Allocation, allocate, evaluate
from fedwave.allocation.solution import Status
from fedwave.devices.base import HeldOutResult
from fedwave.errors import ProblemError
from fedwave.learning.tasks import Classification, Regression
from fedwave.selection import Penalties
from fedwave.server import Hindsight, Outcome, Plan, Reports, RoundCosts, UploadLinks
from fedwave.simulation.column import kind_of
from fedwave.simulation.columns import (
    DEVICE_COLUMNS,
    ROUND_COLUMNS,
    record_round,
    table_headers,
)
from fedwave.simulation.facts import RoundFacts, RunFrame
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.penalties import PenaltyState
from fedwave.wireless.delivery import UploadFate
from tests.allocation.allocation_problems import small_problem

NAN = math.nan
DEVICE_IDS = np.array([70, 30, 90, 10, 50, 20])
REPORTS = Reports(  # device 1 does not compute
    device_index=np.array([0, 2, 3, 4, 5]),
    contribution=np.array([4.0, -2.0, 1.0, 3.0, 0.5]),
    loss=np.array([0.5, 1.5, 1.0, 2.0, 0.25]),
    num_samples=np.array([10, 10, 10, 10, 10]),
    gradient_norms=np.array([[1.0, 10.0], [3.0, 30.0], [2.0, 20.0], [8.0, 80.0], [6.0, 60.0]]),
)
ALLOCATION = Allocation(
    method="by hand",
    block_of_device=np.array([2, -1, 0, 4, 1, 3]),
    transmit_power_w=np.array([0.1, 0.0, 0.2, 0.3, 0.4, 0.5]),
    cpu_frequency_hz=np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    contribution=6.5,
    energy_j=-1.0,  # the plan's own account: the columns show what the world charged
    compute_delay_s=-1.0,
    upload_delay_s=-1.0,
    objective=4.0,
    status=Status.GAP_REACHED,
    reason="a reason",
    upper_bound=5.0,
)
PLAN = Plan(
    selected=np.array([0, 2, 3, 4, 5]),
    allocation=ALLOCATION,
    scaled_contribution=np.array([8.0, 0.0, -4.0, 2.0, 6.0, 1.0]),
    reason="why",
)
LINKS = UploadLinks(
    num_samples=np.array([10, 11, 12, 13, 14, 15]),
    channel_gain=np.array([0.5, NAN, 0.25, 0.125, 2.0, 4.0]),
    interference_w=np.array([0.0, NAN, 1.0, 2.0, 3.0, 4.0]),
    sinr=np.array([5.0, NAN, 6.0, 7.0, 8.0, 9.0]),
    rate_bps=np.array([50.0, NAN, 60.0, 70.0, 80.0, 90.0]),
)
COSTS = RoundCosts(
    downlink_energy_j=np.array([0.25, 0.0, 0.5, 0.75, 1.0, 1.25]),
    downlink_time_s=np.array([0.125, 0.0, 0.125, 0.125, 0.125, 0.0625]),
    broadcast_energy_j=1000.0,  # the base station's: in no sum
    links=LINKS,
    compute_energy_j=np.array([1.0, 0.0, 2.0, 3.0, 4.0, 5.0]),
    compute_time_s=np.array([0.5, 0.0, 0.25, 0.125, 1.0, 2.0]),
    report_energy_j=np.array([0.5, 0.0, 0.5, 0.5, 0.0, 0.25]),
    report_time_s=np.array([1.0, 0.0, 1.5, 2.5, 3.5, 4.5]),
    upload_energy_j=np.array([10.0, 0.0, 20.0, 0.0, 30.0, 40.0]),
    upload_time_s=np.array([6.0, 0.0, 7.0, 0.0, 8.0, 9.0]),
    idle_energy_j=np.array([0.0, 7.0, 0.0, 0.5, 0.0, 0.0]),
    idle_time_s=np.array([0.0, 9.0, 1.0, 3.0, 4.0, 5.0]),
    delay_s=11.0,
)
FATE = np.array(
    [UploadFate.ARRIVED, UploadFate.LATE, UploadFate.DROPPED_OUT, UploadFate.OUTAGE, UploadFate.LATE]
)
HELDOUT = HeldOutResult(
    device_ids=np.array([40, 60]),
    num_query=np.array([1, 3]),
    loss=np.array([1.0, 2.0]),
    metric=np.array([1.0, 0.5]),
    measured=Classification.metric,
)
TRAINING = HeldOutResult(
    device_ids=np.array([10, 20]),
    num_query=np.array([1, 3]),
    loss=np.array([2.0, 4.0]),
    metric=np.array([0.0, 0.5]),
    measured=Classification.metric,
)


def facts(*, metric: Any = Classification.metric, **changes: Any) -> RoundFacts:
    return RoundFacts(
        **{
            "round_index": 9,
            "reports": REPORTS,
            "plan": PLAN,
            "outcome": Outcome(np.array([0]), FATE, COSTS),
            "heldout": HELDOUT,
            "training": TRAINING,
            "update_norm": 0.125,
            "ledger": Ledger(100.0, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            "wall_time_s": 0.75,
            "frame": RunFrame(
                device_ids=DEVICE_IDS,
                turning_point=np.array([1.5, 99.0, 2.5, 2.0, 7.0, 7.0]),  # 1 < 1.5, 6 < 7; 2 not below 2
                metric=metric,
                traits=frozenset({"cell"}),
            ),
            **changes,
        }
    )


ROUND_ROW = {
    "train_loss": 1.05,
    "heldout_loss": 1.5,
    "heldout_accuracy": 0.75,
    "heldout_accuracy_pooled": (1.0 + 3 * 0.5) / 4,
    "training_loss": 3.0,
    "training_loss_weighted": (2.0 + 3 * 4.0) / 4,
    "training_accuracy": 0.25,
    "update_norm": 0.125,
    "num_computed": 5,
    "num_selected": 5,
    "num_received": 1,
    "selected_devices": [70, 90, 10, 50, 20],
    "gradient_norm_min": 1.0,
    "gradient_norm_mean": 4.0,
    "gradient_norm_max": 8.0,
    "share_below_turning_point": 2 / 5,
    "contribution": 6.5,
    "objective": 4.0,
    "objective_gap": 0.25,
    "allocation_status": "gap reached",
    "num_dropped_out": 1,
    "num_outage": 1,
    "num_packet_error": 0,
    "num_late": 2,
    "note": "why",
    "downlink_energy_j": 3.75,
    "downlink_time_s": 0.125,
    "broadcast_energy_j": 1000.0,
    "compute_energy_j": 15.0,
    "report_energy_j": 1.75,
    "upload_energy_j": 100.0,
    "idle_energy_j": 7.5,
    "energy_j": 128.0,
    "delay_s": 11.0,
    "cumulative_energy_j": 21.0,
    "cumulative_delay_s": 100.0,
    "wall_time_s": 0.75,
}
DEVICE_ROWS = {
    "train_loss": [0.5, NAN, 1.5, 1.0, 2.0, 0.25],
    "gradient_norm_0": [1.0, NAN, 3.0, 2.0, 8.0, 6.0],
    "gradient_norm_1": [10.0, NAN, 30.0, 20.0, 80.0, 60.0],
    "contribution": [4.0, NAN, -2.0, 1.0, 3.0, 0.5],
    "is_selected": [1, 0, 1, 1, 1, 1],
    "scaled_contribution": [8.0, 0.0, -4.0, 2.0, 6.0, 1.0],
    "is_received": [1, 0, 0, 0, 0, 0],
    "block": [2, -1, 0, 4, 1, 3],
    "num_samples": [10, 11, 12, 13, 14, 15],
    "channel_gain": [0.5, NAN, 0.25, 0.125, 2.0, 4.0],
    "interference_w": [0.0, NAN, 1.0, 2.0, 3.0, 4.0],
    "sinr": [5.0, NAN, 6.0, 7.0, 8.0, 9.0],
    "rate_bps": [50.0, NAN, 60.0, 70.0, 80.0, 90.0],
    "transmit_power_w": [0.1, 0.0, 0.2, 0.3, 0.4, 0.5],
    "cpu_frequency_hz": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "downlink_energy_j": [0.25, 0.0, 0.5, 0.75, 1.0, 1.25],
    "downlink_time_s": [0.125, 0.0, 0.125, 0.125, 0.125, 0.0625],
    "compute_energy_j": [1.0, 0.0, 2.0, 3.0, 4.0, 5.0],
    "compute_time_s": [0.5, 0.0, 0.25, 0.125, 1.0, 2.0],
    "report_energy_j": [0.5, 0.0, 0.5, 0.5, 0.0, 0.25],
    "report_time_s": [1.0, 0.0, 1.5, 2.5, 3.5, 4.5],
    "upload_energy_j": [10.0, 0.0, 20.0, 0.0, 30.0, 40.0],
    "upload_time_s": [6.0, 0.0, 7.0, 0.0, 8.0, 9.0],
    "idle_energy_j": [0.0, 7.0, 0.0, 0.5, 0.0, 0.0],
    "idle_time_s": [0.0, 9.0, 1.0, 3.0, 4.0, 5.0],
    "cumulative_energy_j": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}
# What there is without a cell: the first columns of each table, and the last of rounds.csv.
IDEAL_ROUND = [*list(ROUND_ROW)[:16], "wall_time_s"]
IDEAL_DEVICE = list(DEVICE_ROWS)[:5]

TYPES = {"integer": int, "number": float, "text": str, "devices": list}


def test_a_round_over_a_cell_is_recorded_value_by_value() -> None:
    record = record_round(facts())
    assert record.round_index == 9
    assert record.device_ids is DEVICE_IDS
    assert record.heldout is HELDOUT
    assert list(record.columns) == list(ROUND_ROW)
    assert record.columns == ROUND_ROW
    assert list(record.device_columns) == list(DEVICE_ROWS)
    for name, expected in DEVICE_ROWS.items():
        np.testing.assert_array_equal(record.device_columns[name], expected, err_msg=name)


def test_a_run_on_estimated_gains_says_what_that_costs() -> None:
    problem = small_problem()
    best = allocate(problem)
    hindsight = Hindsight(replace(evaluate(best, problem), objective=2.5), replace(best, upper_bound=7.0))
    frame = replace(facts().run, traits=frozenset({"cell", "estimation"}))
    record = record_round(
        facts(outcome=Outcome(np.array([0]), FATE, COSTS, hindsight=hindsight), frame=frame)
    )
    names = ["true_objective", "clairvoyant_objective", "regret"]
    assert [record.columns[name] for name in names] == [2.5, best.objective, 4.5]
    at = list(record.columns).index("true_objective")
    assert list(record.columns)[at : at + 3] == names
    assert [name for name in record.columns if name not in names] == list(ROUND_ROW)
    # A planner that does not say its problem leaves them empty; where gains are known they are absent.
    empty = record_round(facts(frame=frame)).columns
    assert [empty[name] for name in names] == [None, None, None]
    for run, written in ((facts().run, record_round(facts())), (frame, record)):
        headers = table_headers(Classification.metric, traits=run.traits, num_local_steps=2)
        assert headers["rounds.csv"] == ["round", *written.columns]


def test_a_run_with_estimated_penalties_says_which_and_what_the_theory_asks_for() -> None:
    # Norms of the first steps are 1, 3, 2, 8, 6 and all have 10 samples.
    used, theory = Penalties(1.5, np.sqrt(10.0)), Penalties(4.0, 3.0 * np.sqrt(10.0))  # points 2.5 and 7
    frame = replace(facts().run, traits=frozenset({"cell", "penalties"}))
    names = ["similarity_penalty", "variance_penalty"]
    names += ["theory_similarity_penalty", "theory_variance_penalty", "theory_share_below_turning_point"]
    record = record_round(facts(penalties=PenaltyState(used, theory), frame=frame))
    assert [record.columns[name] for name in names] == pytest.approx(
        [1.5, np.sqrt(10.0), 4.0, 3.0 * np.sqrt(10.0), 0.8]
    )
    assert record.columns["share_below_turning_point"] == 0.4
    assert [name for name in record.columns if name not in names] == list(ROUND_ROW)
    empty = record_round(facts(penalties=PenaltyState(used), frame=frame)).columns
    assert [empty[name] for name in names[2:]] == [None, None, None]
    for run, written in ((facts().run, record_round(facts())), (frame, record)):
        headers = table_headers(Classification.metric, traits=run.traits, num_local_steps=2)
        assert headers["rounds.csv"] == ["round", *written.columns]


def test_a_planners_own_columns_come_last_in_the_table_of_devices() -> None:
    price = np.array([1.0, NAN, 3.0, 4.0, 5.0, 6.0])
    record = record_round(facts(plan=replace(PLAN, columns={"price_per_j": price, "rank": np.arange(6)})))
    assert list(record.device_columns) == [*DEVICE_ROWS, "planner_price_per_j", "planner_rank"]
    np.testing.assert_array_equal(record.device_columns["planner_price_per_j"], price)
    assert record.device_columns["planner_rank"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert list(record.columns) == list(ROUND_ROW)
    of_devices = [(column.name, column.kind) for column in DEVICE_COLUMNS]
    assert kind_of("planner_rank", of_devices) == kind_of("planner_price_per_j", of_devices) == "number"
    assert kind_of("planner_", of_devices) is kind_of("planner_Rank", of_devices) is None
    for wrong in (np.zeros(5), np.zeros((6, 1)), 1.0):
        with pytest.raises(ProblemError, match='column "price" needs one value for each of the 6 devices'):
            record_round(facts(plan=replace(PLAN, columns={"price": wrong})))


def test_sums_over_devices_are_those_of_the_round() -> None:
    record = record_round(facts())
    parts = [f"{phase}_energy_j" for phase in ("downlink", "compute", "report", "upload", "idle")]
    for name in parts:
        assert record.columns[name] == sum(record.device_columns[name].tolist())
    assert record.columns["energy_j"] == sum(record.columns[name] for name in parts)
    assert record.columns["cumulative_energy_j"] == sum(record.device_columns["cumulative_energy_j"].tolist())


def test_without_a_cell_its_columns_are_absent() -> None:
    ideal = Outcome(PLAN.selected, np.zeros(5, dtype=np.int64))
    frame = replace(facts().run, traits=frozenset())
    record = record_round(facts(plan=Plan(selected=PLAN.selected), outcome=ideal, ledger=None, frame=frame))
    assert list(record.columns) == IDEAL_ROUND
    assert list(record.device_columns) == IDEAL_DEVICE
    expected = {**ROUND_ROW, "num_received": 5}
    assert record.columns == {name: expected[name] for name in IDEAL_ROUND}


def test_every_value_has_the_type_that_its_column_declares() -> None:
    record = record_round(facts())
    for name, value in record.columns.items():
        kind = kind_of(name, [(column.name, column.kind) for column in ROUND_COLUMNS])
        assert kind is not None
        assert type(value) is TYPES[kind], name
    assert all(type(device) is int for device in record.columns["selected_devices"])
    for name, values in record.device_columns.items():
        kind = kind_of(name, [(column.name, column.kind) for column in DEVICE_COLUMNS])
        assert values.dtype == (np.int64 if kind == "integer" else np.float64), name


def test_a_round_without_evaluation_has_empty_columns_for_it() -> None:
    record = record_round(facts(heldout=None))
    assert record.heldout is None
    assert [record.columns[name] for name in list(ROUND_ROW)[1:4]] == [None, None, None]
    assert record.columns["training_loss"] == 3.0
    unasked = record_round(facts(training=None))
    assert [unasked.columns[name] for name in list(ROUND_ROW)[4:7]] == [None, None, None]
    assert unasked.columns["heldout_loss"] == 1.5


def test_the_metric_gives_its_name_to_its_columns() -> None:
    names = list(record_round(facts(metric=Regression.metric)).columns)[1:4]
    assert names == ["heldout_loss", "heldout_mean_absolute_error", "heldout_mean_absolute_error_pooled"]


def test_a_gap_is_empty_where_nothing_is_proven_and_0_at_the_optimum() -> None:
    for bound, gap in ((math.inf, None), (4.0, 0.0), (6.0, 0.5)):
        plan = replace(PLAN, allocation=replace(ALLOCATION, upper_bound=bound))
        assert record_round(facts(plan=plan)).columns["objective_gap"] == gap


def test_the_note_says_that_nothing_arrived_or_else_why_the_plan_is_as_it_is() -> None:
    nobody = np.zeros(0, dtype=np.int64)
    lost = Outcome(nobody, np.full(5, UploadFate.LATE), COSTS)
    note = record_round(facts(outcome=lost)).columns["note"]
    assert note == "no upload arrived, the model stays as it is"
    unplanned = replace(PLAN, selected=nobody, reason="nobody uploads: because")
    record = record_round(facts(plan=unplanned, outcome=Outcome(nobody, nobody, COSTS)))
    assert record.columns["note"] == "nobody uploads: because"
    assert record.columns["selected_devices"] == []
    assert record.device_columns["is_selected"].tolist() == [0] * 6


def test_one_selected_device_is_still_a_list_of_devices() -> None:
    plan = replace(PLAN, selected=np.array([3]))
    assert record_round(facts(plan=plan)).columns["selected_devices"] == [10]


@pytest.mark.parametrize("columns", [ROUND_COLUMNS, DEVICE_COLUMNS])
def test_names_are_unique_and_every_column_says_what_it_means(columns: Any) -> None:
    assert len({column.name for column in columns}) == len(columns)
    assert all(column.meaning and column.kind in TYPES for column in columns)
