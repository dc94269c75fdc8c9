"""Nodes that fail, leave, or send what cannot be used: the round goes on with the others, and says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, Error, Message
from flwr.serverapp.strategy import Result

from fedwave.errors import RunError
from fedwave.learning.server_steps.momentum import ServerMomentum
from tests.flower.bad_replies import arrays, lie
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import SIZE, app, rounds_by_hand, target_of
from tests.flower.toy_server import N, first_arrays, first_model, strategy

BEST = rounds_by_hand(first_model(), 1, 1, present=list(range(N)))[1][0][0]  # selected in the first round


def test_a_node_that_leaves_between_the_phases_is_missed_and_no_more() -> None:
    grid = FakeGrid(app, N)

    def leave(message: Message, reply: Message) -> Message:
        grid.contexts.pop(FIRST_NODE + BEST)
        return reply

    grid.tamper[FIRST_NODE + BEST, "train.report"] = leave
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=2)
    rest = [i for i in range(N) if i != BEST]
    model, chosen = rounds_by_hand(
        first_model(), 2, 2, present={0: list(range(N)), 1: rest}, lost={0: [BEST]}
    )
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    assert [record["selected"] for record in result.train_metrics_clientapp.values()] == chosen


def test_a_node_started_anew_between_the_phases_sends_no_old_model(said: list[str]) -> None:
    grid = FakeGrid(app, N)
    strategy(N, 2).start(grid, first_arrays(), num_rounds=1)

    def forget(message: Message, reply: Message) -> Message:
        grid.forget(BEST)
        return reply

    grid.tamper[FIRST_NODE + BEST, "train.report"] = forget
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=1)
    assert BEST not in result.train_metrics_clientapp[1]["received"]
    assert any("this node keeps the model of round None, got asked for round 0" in line for line in said)


def test_a_round_without_anybody_is_skipped_and_says_so(said: list[str]) -> None:
    grid = FakeGrid(app, 3)
    for position in range(3):
        grid.tamper[FIRST_NODE + position, "train.report"] = lambda message, reply: None
    grid.tamper[FIRST_NODE, "train.report"] = lambda message, reply: Message(
        Error(code=2, reason="no \x1b[31mbattery"), reply_to=message
    )
    why = "0 of 3 devices reported, 1 needed (dropped the report of node 1002: no answer within 600 s)"
    with pytest.raises(RunError, match=f"no upload could be used in 2 rounds, got {re.escape(why)}"):
        strategy(3, 1).start(grid, first_arrays(), num_rounds=2)
    assert f"round 0 is skipped, the model stays as it is: {why}" in said
    assert f"round 1 is skipped, the model stays as it is: {why}" in said
    assert not any("\x1b" in line for line in said)


def test_too_few_reports_are_no_round(said: list[str]) -> None:
    grid = FakeGrid(app, 3)
    grid.tamper[FIRST_NODE, "train.report"] = lambda message, reply: None
    with pytest.raises(RunError, match="2 of 3 devices reported, 3 needed"):
        strategy(3, 1, min_reports=3).start(grid, first_arrays(), num_rounds=1)
    assert any(line.startswith("round 0 is skipped, the model stays as it is: 2 of 3") for line in said)
    enough = strategy(3, 1, min_reports=2).start(grid, first_arrays(), num_rounds=1)
    assert enough.train_metrics_clientapp[1]["skipped"] == 0


def test_if_no_upload_can_be_used_the_model_stays(said: list[str]) -> None:
    grid = FakeGrid(app, 3)
    for position in range(3):
        grid.tamper[FIRST_NODE + position, "train.upload"] = arrays(
            {"w": Array(np.full(SIZE, np.nan, np.float32))}
        )
    with pytest.raises(RunError, match="nothing was learned, as no upload could be used in 1 rounds"):
        strategy(3, 2).start(grid, first_arrays(), num_rounds=1)
    begins = "round 0 is skipped, the model stays as it is: no upload can be used (dropped the upload of node"
    assert any(
        line.startswith(begins) and line.endswith("w has 6 values that are not finite)") for line in said
    )


def test_one_upload_in_a_whole_run_is_enough_also_before_a_restart(tmp_path: Path) -> None:
    server, grid = strategy(2, 1, checkpoint=tmp_path), FakeGrid(app, 2)
    server.start(grid, first_arrays(), num_rounds=1)
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.upload"] = lambda message, reply: None
    model, _ = rounds_by_hand(first_model(), 1, 1, present=[0, 1])
    for num_rounds in (3, 3):  # the second time nothing is left to do
        result = strategy(2, 1, checkpoint=tmp_path).start(grid, first_arrays(), num_rounds=num_rounds)
        np.testing.assert_array_equal(result.arrays["w"].numpy(), model)


def test_a_run_that_learned_nothing_fails_again_when_nothing_is_left_to_do(tmp_path: Path) -> None:
    grid = FakeGrid(app, 1)
    grid.tamper[FIRST_NODE, "train.upload"] = lambda message, reply: None
    for _ in range(2):
        with pytest.raises(RunError, match="nothing was learned"):
            strategy(1, 1, checkpoint=tmp_path).start(grid, first_arrays(), num_rounds=2)
    result = strategy(1, 1).start(grid, first_arrays(), num_rounds=0)  # nothing was asked for
    np.testing.assert_array_equal(result.arrays["w"].numpy(), first_model())


def test_finite_uploads_whose_mean_is_not_finite_do_not_become_the_model(said: list[str]) -> None:
    huge = np.full(SIZE, np.finfo(np.float32).max)
    grid = FakeGrid(app, 2)
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.upload"] = arrays({"w": Array(huge)})
    server = strategy(2, 2, audited=False)
    object.__setattr__(server.federation, "server_step", ServerMomentum(momentum=0.0, server_lr=2.0))
    with pytest.raises(RunError, match="the global model is not finite after round 0"):
        server.start(grid, first_arrays(), num_rounds=1)
    assert any("the global model is not finite after round 0" in line for line in said)


def train_with_a_liar(num_selected: int, num_rounds: int, **options: Any) -> Result:
    grid = FakeGrid(app, N)
    grid.tamper[FIRST_NODE, "train.report"] = lie
    return strategy(N, num_selected, **options).start(grid, first_arrays(), num_rounds=num_rounds)


def test_a_lying_device_is_found_out_excluded_and_comes_back(said: list[str]) -> None:
    result = train_with_a_liar(1, 6, exclude_rounds=3)
    rounds = list(result.train_metrics_clientapp.values())
    assert [record["excluded"] for record in rounds] == [[0], [], [], [], [0], []]
    assert [0 in record["reported"] for record in rounds] == [True, False, False, False, True, False]
    assert any(
        f"dropped the upload of node {FIRST_NODE}: the model moved by a gradient of norm" in line
        and "device 0 is excluded" in line
        for line in said
    )
    # Four rounds without the liar are the rounds of a federation that never had it.
    without, chosen = rounds_by_hand(first_model(), 4, 1, present=[1, 2, 3, 4, 5])
    np.testing.assert_array_equal(result.arrays["w"].numpy(), without)
    assert [record["selected"] for record in (*rounds[1:4], rounds[5])] == chosen


def test_an_exclusion_survives_a_killed_server(tmp_path: Path) -> None:
    options = {"exclude_rounds": 3, "checkpoint": tmp_path}
    train_with_a_liar(1, 2, **options)
    resumed = train_with_a_liar(1, 6, **options)
    assert [0 in record["reported"] for record in resumed.train_metrics_clientapp.values()] == [
        False,
        False,
        True,
        False,
    ]


def test_a_liar_who_is_believed_spoils_what_the_others_learn() -> None:
    def loss_of_the_others(result: Result) -> float:
        w = result.arrays["w"].numpy()
        return float(np.mean([0.5 * np.sum((w - target_of(i)) ** 2.0) for i in range(1, N)]))

    believed = train_with_a_liar(2, 8, audited=False)
    checked = train_with_a_liar(2, 8)
    honest = strategy(N, 2).start(FakeGrid(app, N), first_arrays(), num_rounds=8)
    assert all(0 in record["selected"] for record in believed.train_metrics_clientapp.values())
    model, _ = rounds_by_hand(first_model(), 8, 2, present=list(range(N)), liars={0: 1e4})
    np.testing.assert_array_equal(believed.arrays["w"].numpy(), model)
    present = {k: list(range(N)) if k == 0 else list(range(1, N)) for k in range(8)}
    model, _ = rounds_by_hand(first_model(), 8, 2, present=present, lost={0: [0]}, liars={0: 1e4})
    np.testing.assert_array_equal(checked.arrays["w"].numpy(), model)
    # By the plain loop: 59.2 with the liar, 55.4 where it is found out in the first round, 52.6 without one.
    assert loss_of_the_others(believed) == pytest.approx(59.2, abs=0.1)
    assert loss_of_the_others(checked) == pytest.approx(55.4, abs=0.1)
    assert loss_of_the_others(honest) == pytest.approx(52.6, abs=0.1)
