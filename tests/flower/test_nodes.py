"""Nodes and places: a node says hello once, a place is given once, and nodes join and leave."""

from __future__ import annotations

import numpy as np
from flwr.app import MetricRecord

from fedwave.flower import client_app
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import Quadratic, app, rounds_by_hand
from tests.flower.toy_server import N, first_arrays, first_model, strategy


def test_a_node_says_hello_once_and_may_leave_its_place_to_the_server() -> None:
    grid = FakeGrid(client_app(lambda context: Quadratic(0)), 0)
    for node in (50, 49, 48):
        grid.join(0, node_id=node, colour="red")  # no partition-id
    grid.join(1, node_id=51, **{"partition-id": 1})
    result = strategy(4, 1).start(grid, first_arrays(), num_rounds=3)
    assert [grid.kinds(node).count("query.hello") for node in (48, 49, 50, 51)] == [1, 1, 1, 1]
    assert result.train_metrics_clientapp[1]["reported"] == [0, 1, 2, 3]


def test_a_place_is_given_once(said: list[str]) -> None:
    grid = FakeGrid(app, 3)
    twin = grid.join(1, node_id=7000)
    stranger = grid.join(9, node_id=7001)
    result = strategy(3, 1).start(grid, first_arrays(), num_rounds=2)
    assert result.train_metrics_clientapp[1]["dropped_nodes"] == [twin, stranger]
    assert result.train_metrics_clientapp[2]["dropped_nodes"] == []  # refused once, not asked again
    text = "\n".join(said)
    assert f"dropped the hello of node {twin}: it says it is device 1, which node {FIRST_NODE + 1} is" in text
    assert f"dropped the hello of node {stranger}: it says it is device 9, of 3 devices" in text
    grid.leave(1)
    grid.contexts.pop(twin)
    grid.join(1, node_id=7002)  # the device comes back as another node
    strategy(3, 1).start(grid, first_arrays(), num_rounds=1)
    assert "train.report" in grid.kinds(7002)


def test_nodes_may_join_and_leave_between_rounds() -> None:
    present = {0: [0, 1, 2], 1: [0, 1, 2, 5], 2: [0, 2, 5], 3: [0, 2, 5]}
    grid = FakeGrid(app, 3)

    def come_and_go(server_round: int, arrays: object) -> MetricRecord | None:
        if server_round == 1:
            grid.join(5)
        if server_round == 2:
            grid.leave(1)
        return None

    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=4, evaluate_fn=come_and_go)
    model, chosen = rounds_by_hand(first_model(), 4, 2, present=present)
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    rounds = list(result.train_metrics_clientapp.values())
    assert [record["reported"] for record in rounds] == list(present.values())
    assert [record["selected"] for record in rounds] == chosen


def test_a_device_that_restarts_under_another_id_has_its_place_when_the_old_id_is_gone(
    said: list[str],
) -> None:
    grid = FakeGrid(app, 3)

    def restart(server_round: int, arrays: object) -> MetricRecord | None:
        if server_round == 1:
            grid.join(1, node_id=7000)  # Flower lists the old id as connected for a while
        if server_round == 3:
            grid.leave(1)
        return None

    result = strategy(3, 1).start(grid, first_arrays(), num_rounds=5, evaluate_fn=restart)
    rounds = list(result.train_metrics_clientapp.values())
    assert [record["reported"] for record in rounds] == [[0, 1, 2]] * 5
    assert grid.kinds(7000) == ["query.hello", "query.hello", *grid.kinds(7000)[2:]]  # refused, then welcome
    assert grid.kinds(7000).count("train.report") == 2
    assert rounds[1]["dropped_nodes"] == [7000]
    assert rounds[2]["dropped_nodes"] == []  # it is not asked again while its place is taken


def test_a_node_that_does_not_say_hello_is_said_to_be_silent_and_asked_again(said: list[str]) -> None:
    grid = FakeGrid(app, 2)
    grid.tamper[FIRST_NODE, "query.hello"] = lambda message, reply: None
    result = strategy(2, 1).start(grid, first_arrays(), num_rounds=2)
    assert [record["reported"] for record in result.train_metrics_clientapp.values()] == [[1], [1]]
    assert f"round 1: dropped the hello of node {FIRST_NODE}: no answer within 600 s" in said
