"""The two-phase round against a plain loop, and what travels in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.flower import Grant, RadioFacts, TwoPhase, client_app
from fedwave.learning.server_steps.mean import ServerMean
from fedwave.server import Reports
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import (
    Quadratic,
    app,
    contribution_of,
    device_of,
    rounds_by_hand,
    samples_of,
    target_of,
)
from tests.flower.toy_server import N, Weighing, first_arrays, first_model, strategy
from tests.server.planners import cell_planner


def test_rounds_are_those_of_a_plain_loop() -> None:
    result = strategy(N, 2).start(FakeGrid(app, N), first_arrays(), num_rounds=5)
    model, chosen = rounds_by_hand(first_model(), 5, 2, present=list(range(N)))
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    assert [record["selected"] for record in result.train_metrics_clientapp.values()] == chosen
    assert list(result.train_metrics_clientapp) == [1, 2, 3, 4, 5]
    first = result.train_metrics_clientapp[1]
    mean_loss = np.mean([0.5 * np.sum((first_model() - target_of(i)) ** 2.0) for i in range(N)])
    assert first["loss"] == pytest.approx(mean_loss)


def test_who_is_not_selected_never_sends_a_model() -> None:
    grid = FakeGrid(app, N)
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=3)
    for record in result.train_metrics_clientapp.values():
        assert len(record["selected"]) == 2
    selected = [set(record["selected"]) for record in result.train_metrics_clientapp.values()]
    uploads = [(node - FIRST_NODE) for node, kind, _, _ in grid.log if kind == "train.upload"]
    assert sorted(uploads) == sorted(device for few in selected for device in few)
    for _, kind, message, reply in grid.log:
        carries_model = bool(reply.content.array_records)
        assert carries_model == (kind == "train.upload")
        assert bool(message.content.array_records) == (kind == "train.report")  # it goes down once a round


def test_a_killed_server_goes_on_from_its_checkpoint(tmp_path) -> None:
    whole = strategy(N, 2).start(FakeGrid(app, N), first_arrays(), num_rounds=5)
    shown: list[int] = []

    class Killed(Exception):  # noqa: N818 - it stands for a signal
        pass

    def die(server_round: int, arrays: object) -> None:
        if server_round == 2:
            raise Killed

    with pytest.raises(Killed):
        strategy(N, 2, checkpoint=tmp_path).start(
            FakeGrid(app, N), first_arrays(), num_rounds=5, evaluate_fn=die
        )
    result = strategy(N, 2, checkpoint=tmp_path).start(
        FakeGrid(app, N), first_arrays(), num_rounds=5, evaluate_fn=lambda r, a: shown.append(r)
    )
    assert shown == [2, 3, 4, 5]
    assert list(result.train_metrics_clientapp) == [3, 4, 5]
    assert dict(result.train_metrics_clientapp[3]) == {
        **whole.train_metrics_clientapp[3],
        **_hello(result, 3),
    }
    np.testing.assert_array_equal(result.arrays["w"].numpy(), whole.arrays["w"].numpy())
    again = strategy(N, 2, checkpoint=tmp_path).start(FakeGrid(app, N), first_arrays(), num_rounds=5)
    np.testing.assert_array_equal(again.arrays["w"].numpy(), whole.arrays["w"].numpy())  # nothing left to do
    assert again.train_metrics_clientapp == {}
    with pytest.raises(RunError, match="belongs to another run"):
        strategy(N, 2, checkpoint=tmp_path, identity="other").start(FakeGrid(app, N), first_arrays())


def _hello(result, number: int) -> dict:
    """A server that was started anew greets its nodes again: those bytes alone differ."""
    record = result.train_metrics_clientapp[number]
    return {name: record[name] for name in record if name.startswith("hello")}


def test_nodes_evaluate_when_it_is_due() -> None:
    result = strategy(3, 1, evaluate_every=2).start(FakeGrid(app, 3), first_arrays(), num_rounds=4)
    assert list(result.evaluate_metrics_clientapp) == [2, 4]
    model, _ = rounds_by_hand(first_model(), 4, 1, present=[0, 1, 2])
    losses = [0.5 * np.sum((model - target_of(i)) ** 2.0) for i in range(3)]
    assert dict(result.evaluate_metrics_clientapp[4]) == {"loss": pytest.approx(np.mean(losses))}


def test_a_server_that_knows_no_cell_plans_with_what_devices_measure() -> None:
    """Two blocks, four devices whose gains differ: the plan is that of a planner that knew all of it."""
    n, blocks = 4, 2
    gain = np.random.default_rng(1).exponential(1e-11, (n, blocks))
    limits = {"max_power_w": 0.2, "max_frequency_hz": 1e9, "capacitance": 1e-28, "cycles_per_sample": 1e6}

    class InACell(Quadratic):
        @property
        def radio(self) -> RadioFacts:
            return RadioFacts(channel_gain=gain[self.position], **limits)

    unknown = cell_planner(Fleet(*np.ones((4, n))), np.ones(n, dtype=np.int64), num_blocks=blocks)
    federation = Federation(planner=unknown, world=IdealWorld(), server_step=ServerMean())
    grants: list[tuple[int, Grant]] = []
    grid = FakeGrid(client_app(lambda c: InACell(int(c.node_config["partition-id"]), grants)), n)
    result = TwoPhase(federation, num_devices=n).start(grid, first_arrays(), num_rounds=1)

    samples = np.array([samples_of(i) for i in range(n)])
    fleet = Fleet(*(np.full(n, limits[name]) for name in limits))
    known = cell_planner(fleet, samples, num_blocks=blocks)
    norms = np.array([np.linalg.norm((first_model() - target_of(i)).astype(np.float64)) for i in range(n)])
    reports = Reports(
        device_index=np.arange(n),
        contribution=np.array([contribution_of(norms[i], samples_of(i)) for i in range(n)]),
        loss=norms**2 / 2,
        num_samples=samples,
        gradient_norms=norms[:, None],
    )
    channel = ChannelDraw(gain, np.zeros(blocks))
    plan = known.plan(0, np.arange(n), reports, channel, known.initial_state())
    assert plan.allocation is not None
    assert result.train_metrics_clientapp[1]["selected"] == plan.selected.tolist()
    assert [device for device, _ in sorted(grants, key=lambda pair: pair[0])] == plan.selected.tolist()
    for device, grant in grants:
        assert grant.block == plan.allocation.block_of_device[device]
        assert grant.transmit_power_w == pytest.approx(plan.allocation.transmit_power_w[device])
        assert grant.cpu_frequency_hz == pytest.approx(plan.allocation.cpu_frequency_hz[device])


def test_weights_of_a_plan_weigh_the_uploads_that_came() -> None:
    server = strategy(N, 3)
    server.federation = replace(server.federation, planner=Weighing(server.federation.planner))
    grid = FakeGrid(client_app(device_of), N)
    chosen = rounds_by_hand(first_model(), 1, 3, present=list(range(N)))[1][0]
    grid.tamper[FIRST_NODE + chosen[1], "train.upload"] = lambda message, reply: None
    result = server.start(grid, first_arrays(), num_rounds=1)
    left = [chosen[0], chosen[2]]
    models = [first_model() - 0.5 * (first_model() - target_of(i)) for i in left]
    expected = np.average(models, axis=0, weights=[1.0 + i for i in left])
    np.testing.assert_allclose(result.arrays["w"].numpy(), expected, rtol=1e-6)
