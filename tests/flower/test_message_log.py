"""The bytes of each phase are those of its messages."""

from __future__ import annotations

from tests.flower.fake_grid import FakeGrid
from tests.flower.toy import app
from tests.flower.toy_server import N, first_arrays, strategy


def test_the_bytes_of_each_phase_are_those_of_its_messages() -> None:
    grid = FakeGrid(app, N)
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=2)
    counted = dict.fromkeys(
        ("report_bytes_up", "report_bytes_down", "upload_bytes_up", "upload_bytes_down"), 0
    )
    for record in result.train_metrics_clientapp.values():
        for name in counted:
            counted[name] += record[name]
    for phase in ("report", "upload"):
        sent = [(message, reply) for _, kind, message, reply in grid.log if kind == f"train.{phase}"]
        for name, at in (("down", 0), ("up", 1)):
            total = sum(r.count_bytes() for pair in sent for r in pair[at].content.values())
            assert counted[f"{phase}_bytes_{name}"] == total
    model_bytes = first_arrays().count_bytes()
    assert counted["report_bytes_down"] >= 2 * N * model_bytes
    assert counted["upload_bytes_up"] >= 2 * 2 * model_bytes
    assert counted["upload_bytes_down"] < 2 * 2 * model_bytes  # the model is not sent a second time
