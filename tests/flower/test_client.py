"""A node sends the model that was asked for, or none."""

from __future__ import annotations

from fedwave.flower.messages import message_to
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import app
from tests.flower.toy_server import first_arrays, strategy


def test_a_node_never_sends_the_model_of_another_round(said: list[str]) -> None:
    grid = FakeGrid(app, 2)
    strategy(2, 1).start(grid, first_arrays(), num_rounds=1)  # both keep the model of round 0
    ask = message_to(FIRST_NODE, "train.upload", config={"round": 1}, ttl_s=60.0)
    (reply,) = grid.send_and_receive([ask])
    assert reply.has_error()
    assert "keeps the model of round 0, got asked for round 1" in reply.error.reason
