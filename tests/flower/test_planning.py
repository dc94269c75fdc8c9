"""A plan of what devices told: no single one spoils it for the others, and nobody absent is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError, RunError
from fedwave.flower import RadioFacts, TwoPhase, client_app
from fedwave.learning.server_steps.mean import ServerMean
from fedwave.server import CellPlanner, Plan, PlannerAround, PlannerDefaults, Reports
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from fedwave.units import IntArray
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.fleet import Fleet
from tests.flower.bad_replies import metrics
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import META_LR, Quadratic, app, target_of
from tests.flower.toy_server import first_arrays, first_model, strategy
from tests.server.planners import cell_planner

N, BLOCKS = 4, 2
GAIN = np.random.default_rng(1).exponential(1e-11, (N, BLOCKS))
LIMITS = {"max_power_w": 0.2, "max_frequency_hz": 1e9, "capacitance": 1e-28, "cycles_per_sample": 1e6}


class InACell(Quadratic):
    @property
    def radio(self) -> RadioFacts:
        return RadioFacts(channel_gain=GAIN[self.position], **LIMITS)


def over_a_cell(num_devices: int = N, deadline_s: float | None = None) -> tuple[TwoPhase, FakeGrid]:
    """A server that plans over a cell and knows no channel: devices tell theirs."""
    planner: CellPlanner = cell_planner(
        Fleet(*np.ones((4, num_devices))), np.ones(num_devices, dtype=np.int64), num_blocks=BLOCKS
    )
    risks = UploadRisks(deadline_s=deadline_s)
    planner = replace(planner, terms=replace(planner.terms, risks=risks))
    federation = Federation(planner=planner, world=IdealWorld(), server_step=ServerMean())
    grid = FakeGrid(client_app(lambda c: InACell(int(c.node_config["partition-id"]))), num_devices)
    return TwoPhase(federation, num_devices=num_devices), grid


def without_radio(grid: FakeGrid, *positions: int) -> None:
    for position in positions:
        grid.tamper[FIRST_NODE + position, "train.report"] = metrics(channel_gain=None)


@pytest.mark.parametrize("num_devices", [1, 2])
@pytest.mark.parametrize("gains", [[1.0, 1.0, 1.0], [1.0] * 7])
def test_a_wrong_number_of_gains_drops_the_reply_and_no_other(
    num_devices: int, gains: list[float], said: list[str]
) -> None:
    server, grid = over_a_cell(num_devices)
    grid.tamper[FIRST_NODE, "train.report"] = metrics(channel_gain=gains)
    if num_devices == 1:  # one of one
        with pytest.raises(RunError, match=f"it reports gains of {len(gains)} blocks, the cell has 2"):
            server.start(grid, first_arrays(), num_rounds=2)
        return
    record = server.start(grid, first_arrays(), num_rounds=1).train_metrics_clientapp[1]  # one of two
    assert (record["reported"], record["received"]) == ([1], [1])
    assert record["dropped_nodes"] == [FIRST_NODE]


def test_a_majority_with_other_gains_is_no_majority() -> None:
    server, grid = over_a_cell()
    for position in range(N - 1):
        grid.tamper[FIRST_NODE + position, "train.report"] = metrics(channel_gain=[1.0, 1.0, 1.0])
    result = server.start(grid, first_arrays(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["received"] == [N - 1]


def test_a_round_in_which_nobody_tells_of_a_radio_is_skipped_and_the_run_goes_on(said: list[str]) -> None:
    server, grid = over_a_cell()
    without_radio(grid, *range(N))

    def mend(server_round: int, arrays: object) -> None:
        if server_round == 1:
            grid.tamper.clear()

    result = server.start(grid, first_arrays(), num_rounds=2, evaluate_fn=mend)
    assert [record["skipped"] for record in result.train_metrics_clientapp.values()] == [1, 0]
    assert any("it says nothing of its radio, and the server does not know" in line for line in said)


def test_who_says_nothing_of_its_radio_is_dropped_alone_where_the_server_knows_no_channel() -> None:
    server, grid = over_a_cell()
    without_radio(grid, 0, 1, 2)
    result = server.start(grid, first_arrays(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["received"] == [3]


def test_one_gain_and_one_for_each_block_go_together() -> None:
    server, grid = over_a_cell()
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.report"] = metrics(channel_gain=[float(GAIN[position, 0])])
    result = server.start(grid, first_arrays(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["reported"] == [0, 1, 2, 3]
    assert len(result.train_metrics_clientapp[1]["received"]) == BLOCKS


SLOW = {"cycles_per_sample": 1e15}  # a million seconds and more: no round can wait for it


def test_a_device_that_misses_the_deadline_alone_does_not_take_it_from_the_others(said: list[str]) -> None:
    server, grid = over_a_cell(deadline_s=60.0)
    plain = server.start(grid, first_arrays(), num_rounds=1).train_metrics_clientapp[1]
    assert len(plain["received"]) == BLOCKS
    slow = next(device for device in range(N) if device not in plain["selected"])
    server, grid = over_a_cell(deadline_s=60.0)
    grid.tamper[FIRST_NODE + slow, "train.report"] = metrics(**SLOW)
    record = server.start(grid, first_arrays(), num_rounds=1).train_metrics_clientapp[1]
    assert record["selected"] == plain["selected"]
    assert any(f"round 0: device {slow} is left out of the plan:" in line for line in said)


def test_if_no_device_can_be_planned_for_the_round_is_skipped_with_the_reason(said: list[str]) -> None:
    server, grid = over_a_cell(num_devices=2, deadline_s=60.0)
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.report"] = metrics(**SLOW)
    with pytest.raises(RunError, match="nothing was learned.*nobody uploads"):
        server.start(grid, first_arrays(), num_rounds=1)
    assert not any("left out" in line for line in said)


@dataclass(frozen=True, eq=False)
class Fragile(PlannerAround):
    """A planner of one's own that cannot stand one device's numbers."""

    error: type[Exception] = ProblemError
    least_loss: float = 1e20
    seen: list[list[int]] = field(default_factory=list)

    def plan(self, *arguments: Any) -> Plan:
        reports: Reports = arguments[2]
        self.seen.append(reports.device_index.tolist())
        if (reports.loss > self.least_loss).any():
            raise self.error("a loss like that")
        return super().plan(*arguments)


@pytest.mark.parametrize("error", [ProblemError, OverflowError, FloatingPointError, ValueError])
def test_a_planner_that_breaks_on_one_report_goes_on_with_the_others(
    error: type[Exception], said: list[str]
) -> None:
    server, grid = strategy(3, 2), FakeGrid(app, 3)
    fragile = Fragile(server.federation.planner, error)
    server.federation = replace(server.federation, planner=fragile)
    grid.tamper[FIRST_NODE + 1, "train.report"] = metrics(loss=1e25)
    record = server.start(grid, first_arrays(), num_rounds=1).train_metrics_clientapp[1]
    assert (record["reported"], record["received"]) == ([0, 1, 2], [0, 2])
    assert "round 0: device 1 is left out of the plan: a loss like that" in said
    assert fragile.seen == [[0, 1, 2], [0], [1], [2], [0, 2]]


def test_a_planner_that_breaks_on_everything_skips_its_rounds(said: list[str]) -> None:
    server, grid = strategy(2, 1), FakeGrid(app, 2)
    server.federation = replace(
        server.federation, planner=Fragile(server.federation.planner, least_loss=-1.0)
    )
    with pytest.raises(RunError, match="no plan can be made of what the devices told: a loss like that"):
        server.start(grid, first_arrays(), num_rounds=1)


class Everybody(PlannerDefaults):
    """A planner of one's own that has not heard of devices which come and go."""

    def ask(self, round_index: int, state: object) -> IntArray:
        return np.arange(5)

    def plan(self, *arguments: Any) -> Plan:
        return Plan(selected=np.arange(5), weights=1.0 + np.arange(5.0))


def test_an_absent_device_in_a_plan_is_said_once_and_the_round_goes_on(said: list[str]) -> None:
    federation = Federation(planner=Everybody(), world=IdealWorld(), server_step=ServerMean())
    grid = FakeGrid(app, 2)
    grid.join(4)
    grid.tamper[FIRST_NODE + 4, "train.report"] = lambda message, reply: None
    result = TwoPhase(federation, num_devices=5).start(grid, first_arrays(), num_rounds=2)
    w = first_model()
    for record in result.train_metrics_clientapp.values():
        assert record["selected"] == record["received"] == [0, 1]
        models = [w - np.float32(META_LR) * (w - target_of(i)) for i in range(2)]
        w = np.average(models, axis=0, weights=[1.0, 2.0]).astype(np.float32)
    np.testing.assert_allclose(result.arrays["w"].numpy(), w, rtol=1e-6)
    for device in (2, 3, 4):
        text = f"round 0: the plan names device {device}, which has not reported: it counts as absent"
        assert [line for line in said if f"names device {device}," in line] == [text]
