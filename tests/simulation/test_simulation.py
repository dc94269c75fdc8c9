"""Whole rounds against a plain loop over devices, and the limits at which methods coincide."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from examples import plain_nufm
from examples.plain_nufm import Loss, Theta, plain_devices, theta_of
from fedwave.devices.base import HeldOutResult
from fedwave.errors import DivergenceError
from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.learning import LOCAL_RULES
from fedwave.rng import Stream, generator
from fedwave.selection import POLICIES
from fedwave.server import PlannerAround
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State
from tests.devices.plain_rules import gradient_by_hand
from tests.devices.pools import assert_equal_models
from tests.simulation.plain_server import PlainServer

INNER_LR, META_LR = 0.05, 0.03
PENALTIES = {"similarity_penalty": 0.3, "variance_penalty": 0.4}
BASE: dict[str, Any] = {
    "seed": 3,
    "num_rounds": 3,
    "data": {"dataset": {"kind": "synthetic", "num_samples": 600, "num_classes": 5, "shape": [1, 8, 8]}},
    "partition": {"num_devices": 14, "heldout_fraction": 0.3},
    "model": {"kind": "cnn", "channels": [4, 6]},
    "algorithm": {"inner_lr": INNER_LR, "meta_lr": META_LR},
    "selection": {"num_selected": 4, **PENALTIES},
}
SMALL_MODEL = {"model": {"kind": "mlp", "hidden": [5], "channels": None}}
SINES: dict[str, Any] = {
    **SMALL_MODEL,
    "data": {"dataset": {"kind": "sinusoids", "num_devices": 14, "samples_per_device": 9}},
    "partition": {"kind": "given", "num_devices": None, "shots": 4},
}


def simulation(**changes: Any) -> Simulation:
    """Return the base simulation with some settings changed; None takes a setting out."""
    settings = dict(BASE)
    for section, values in changes.items():
        old = settings.get(section)
        settings[section] = {**old, **values} if isinstance(old, dict) else values
        if isinstance(settings[section], dict):
            settings[section] = {k: v for k, v in settings[section].items() if v is not None}
    return build_simulation(experiment_from(settings))


def train(sim: Simulation) -> tuple[State, list[RoundRecord]]:
    state, records = sim.initial_state(), []
    devices = sim.open_devices()
    try:
        for _ in range(sim.num_rounds):
            state, record = sim.run_round(state, devices)
            records.append(record)
    finally:
        devices.close()
    return state, records


def evaluation(sim: Simulation, state: State) -> HeldOutResult:
    devices = sim.open_devices()
    try:
        result = devices.evaluate(state.parameters)
    finally:
        devices.close()
    assert result is not None
    return result


@dataclass(frozen=True)
class PlainRun:
    """A run by hand."""

    theta: Theta
    chosen: list[list[int]]
    train_loss: list[float]
    first_norms: list[list[float]]


def plain_run(
    sim: Simulation,
    server: PlainServer,
    *,
    gradient: str,
    num_local_steps: int = 1,
    loss: Loss = F.cross_entropy,
) -> PlainRun:
    """Return Alg. 1 with torch's own layers, one device after another, in float64."""
    start = sim.initial_state().parameters
    module = sim.model.to_module({name: value.double() for name, value in start.items()})
    theta = theta_of(module)
    devices = plain_devices(sim.train.dataset, sim.train.devices)
    losses, norms = [], []
    for k in range(sim.num_rounds):
        asked = server.asked(k)
        updates = [
            plain_nufm.local_update(
                module,
                theta,
                devices[i],
                gradient=gradient_by_hand(gradient, theta),
                inner_lr=INNER_LR,
                meta_lr=META_LR,
                num_local_steps=num_local_steps,
                loss=loss,
            )
            for i in asked
        ]
        scores = [
            plain_nufm.contribution(update.norms, devices[i].num_samples, **PENALTIES)
            for i, update in zip(asked, updates, strict=True)
        ]
        chosen = server.select(asked, scores, [update.loss for update in updates])
        theta = server.step(theta, [updates[asked.index(i)].theta for i in chosen])
        losses.append(sum(update.loss for update in updates) / len(updates))
        norms.append([update.norms[0] for update in updates])
    return PlainRun(theta, server.history, losses, norms)


def plain_server(sim: Simulation, policy: str, **settings: Any) -> PlainServer:
    samples = [len(device.support) + len(device.query) for device in sim.train.devices]
    return PlainServer(policy, 4, 3, samples, **settings)


def assert_same_run(
    sim: Simulation, expected: PlainRun, *, rtol: float = 1e-4, atol: float = 1e-6
) -> list[RoundRecord]:
    state, records = train(sim)
    got = sim.model.to_state_dict(state.parameters)
    assert set(got) == set(expected.theta)
    for name, value in expected.theta.items():
        torch.testing.assert_close(got[name].double(), value, rtol=rtol, atol=atol)
    ids = sim.train.device_ids
    assert [record.columns["selected_devices"] for record in records] == [
        ids[chosen].tolist() for chosen in expected.chosen
    ]
    np.testing.assert_allclose(
        [record.columns["train_loss"] for record in records], expected.train_loss, rtol=rtol
    )
    for record, norms in zip(records, expected.first_norms, strict=True):
        row = [record.columns[f"gradient_norm_{what}"] for what in ("min", "mean", "max")]
        np.testing.assert_allclose(row, [min(norms), sum(norms) / len(norms), max(norms)], rtol=10 * rtol)
        assert record.columns["num_computed"] == len(norms)
    return records


# Against a loop by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_local_steps", [1, 3])
def test_three_rounds_of_nufm_equal_a_plain_loop_over_devices(num_local_steps: int) -> None:
    sim = simulation(algorithm={"num_local_steps": num_local_steps})
    server = plain_server(sim, "top-contribution")
    expected = plain_run(sim, server, gradient="exact", num_local_steps=num_local_steps)
    assert_same_run(sim, expected)


@pytest.mark.parametrize("gradient", LOCAL_RULES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_gradient_goes_with_every_policy_as_in_the_plain_loop(gradient: str, policy: str) -> None:
    sim = simulation(**SMALL_MODEL, algorithm={"rule": gradient}, selection={"policy": policy})
    expected = plain_run(sim, plain_server(sim, policy), gradient=gradient)
    # The Hessian-free product is off by half a per cent of itself; it enters with alpha beta = 0.0015.
    assert_same_run(sim, expected, atol=2e-5 if gradient == "hessian-free" else 1e-6)


def test_the_plain_loop_tells_gradients_and_policies_apart() -> None:
    """The tolerances above are far below what another gradient or policy would change."""
    sim = simulation(**SMALL_MODEL)
    runs = {
        (gradient, policy): torch.cat(
            [v.flatten() for v in plain_run(sim, plain_server(sim, policy), gradient=gradient).theta.values()]
        )
        for gradient in ("exact", "first-order", "plain")
        for policy in POLICIES
    }
    for one, mine in runs.items():
        for other, theirs in runs.items():
            assert one == other or float((mine - theirs).abs().max()) > 2e-4, (one, other)


@pytest.mark.parametrize("gradient", ["exact", "plain"])
def test_regression_on_sine_waves_equals_the_plain_loop(gradient: str) -> None:
    sim = simulation(**SINES, algorithm={"rule": gradient})
    server = plain_server(sim, "top-contribution")
    expected = plain_run(sim, server, gradient=gradient, loss=F.mse_loss)
    records = assert_same_run(sim, expected)
    module = sim.model.to_module(train(sim)[0].parameters).double()
    devices = plain_devices(sim.heldout.dataset, sim.heldout.devices)
    by_hand = [
        plain_nufm.evaluation(module, theta_of(module), own, num_steps=1, inner_lr=INNER_LR, loss=F.mse_loss)
        for own in devices
    ]
    last = records[-1].columns
    assert last["heldout_loss"] == pytest.approx(np.mean([loss for loss, _ in by_hand]), rel=1e-5)
    errors = [error for _, error in by_hand]
    assert last["heldout_mean_absolute_error"] == pytest.approx(np.mean(errors), rel=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_three_rounds_with_server_momentum_equal_a_loop_by_hand(momentum: float) -> None:
    sim = simulation(
        **SMALL_MODEL,
        algorithm={"server_step": {"kind": "momentum", "momentum": momentum}},
    )
    server = plain_server(sim, "top-contribution", momentum=momentum)
    expected = plain_run(sim, server, gradient="exact")
    assert_same_run(sim, expected)
    state, _ = train(sim)
    velocity = sim.model.to_state_dict(state.server_step)  # laid out as the module's own parameters
    for name, value in server.velocity.items():
        torch.testing.assert_close(velocity[name].double(), value, rtol=1e-3, atol=1e-6)
    # The velocity of the last round is what took the model there from the round before.
    before = train(replace(sim, num_rounds=2))[0]
    for name, value in state.parameters.items():
        torch.testing.assert_close(
            before.parameters[name] - value, state.server_step[name], atol=1e-6, rtol=0
        )


@dataclass
class Follows(PlainServer):
    """Takes the models of the devices that it is told."""

    received: tuple[list[int], ...] = ()

    def select(self, asked: list[int], contribution: list[float], loss: list[float]) -> list[int]:
        self.history.append(self.received[len(self.history)])
        return self.history[-1]


CELL = {
    "preset": "paper-redrawn",
    "num_blocks": 4,
    "method": "greedy",
    "losses": {"dropout_probability": 0.4},
    "idle_power_w": 0.01,
}


def test_over_a_cell_the_model_is_the_mean_of_what_arrived_and_costs_add_up() -> None:
    sim = simulation(**SMALL_MODEL, num_rounds=4, cell=CELL)
    state, records = train(sim)
    received = [np.flatnonzero(record.device_columns["is_received"]).tolist() for record in records]
    selected = [np.flatnonzero(record.device_columns["is_selected"]).tolist() for record in records]
    assert all(set(got) <= set(sent) for got, sent in zip(received, selected, strict=True))
    assert received != selected
    assert all(received)  # with this seed something arrives in every round
    samples = [len(device.support) + len(device.query) for device in sim.train.devices]
    server = Follows("top-contribution", 4, 3, samples, received=tuple(received))
    expected = plain_run(sim, server, gradient="exact")
    got = sim.model.to_state_dict(state.parameters)
    for name, value in expected.theta.items():
        torch.testing.assert_close(got[name].double(), value, rtol=1e-4, atol=1e-6)

    energy = np.cumsum([record.columns["energy_j"] for record in records])
    delay = np.cumsum([record.columns["delay_s"] for record in records])
    np.testing.assert_allclose([r.columns["cumulative_energy_j"] for r in records], energy, rtol=1e-12)
    np.testing.assert_allclose([r.columns["cumulative_delay_s"] for r in records], delay, rtol=1e-12)
    assert state.ledger is not None
    assert state.ledger.elapsed_s == pytest.approx(delay[-1])
    assert state.planner["history.times_selected"].tolist() == [
        sum(i in sent for sent in selected) for i in range(len(sim.train))
    ]


def test_over_a_cell_where_nothing_arrives_the_first_model_is_the_last() -> None:
    sim = simulation(**SMALL_MODEL, cell={**CELL, "losses": {"dropout_probability": 1.0}})
    first = sim.initial_state()
    state, records = train(sim)
    assert all(torch.equal(state.parameters[name], value) for name, value in first.parameters.items())
    assert [record.columns["num_dropped_out"] for record in records] == [4, 4, 4]
    assert {record.columns["note"] for record in records} == {"no upload arrived, the model stays as it is"}
    losses = [record.columns["heldout_loss"] for record in records]
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize(
    ("settings", "num_steps", "inner_lr"),
    [
        ({}, 1, INNER_LR),  # the defaults: one step at the rate of training
        ({"num_steps": 0}, 0, INNER_LR),
        ({"num_steps": 5}, 5, INNER_LR),
        ({"num_steps": 2, "inner_lr": 0.2}, 2, 0.2),
        ({"inner_lr": 0.0}, 1, 0.0),
    ],
)
@pytest.mark.parametrize("standardise", ["pixel", "none"])
def test_evaluation_is_each_held_out_device_adapted_by_hand(
    settings: dict[str, Any], num_steps: int, inner_lr: float, standardise: str
) -> None:
    sim = simulation(evaluation=settings, data={"standardise": standardise})
    state = sim.initial_state()
    result = evaluation(sim, state)
    module = sim.model.to_module({name: value.double() for name, value in state.parameters.items()})
    devices = plain_devices(sim.heldout.dataset, sim.heldout.devices, standardise=standardise)
    by_hand = [
        plain_nufm.evaluation(module, theta_of(module), own, num_steps=num_steps, inner_lr=inner_lr)
        for own in devices
    ]
    np.testing.assert_allclose(result.loss, [loss for loss, _ in by_hand], rtol=2e-5)
    assert result.metric.tolist() == [share for _, share in by_hand]
    assert result.num_query.tolist() == [len(own.query[0]) for own in devices]
    assert result.device_ids.tolist() == sim.heldout.device_ids.tolist()


# Limits -----------------------------------------------------------------------------------------------------


def test_fedavg_is_per_fedavg_without_an_inner_step_on_support_and_query_together() -> None:
    fedavg = simulation(algorithm={"rule": "plain"}, selection={"policy": "uniform"})
    without_step = simulation(algorithm={"inner_lr": 0.0}, selection={"policy": "uniform"})
    # Per-FedAvg with alpha = 0 descends the query loss alone; give it FedAvg's batches.
    object.__setattr__(without_step.train, "query", without_step.train.everything)
    first, first_records = train(fedavg)
    second, second_records = train(without_step)
    assert all(torch.equal(first.parameters[name], second.parameters[name]) for name in first.parameters)
    assert [r.columns["train_loss"] for r in first_records] == [
        r.columns["train_loss"] for r in second_records
    ]


def test_with_all_devices_selected_all_policies_are_the_same() -> None:
    everyone = len(simulation().train)
    finals = [
        train(simulation(selection={"policy": policy, "num_selected": everyone}))[0] for policy in POLICIES
    ]
    for other in finals[1:]:
        assert all(torch.equal(other.parameters[n], finals[0].parameters[n]) for n in other.parameters)


@pytest.mark.parametrize(
    ("policy", "num_computed"), [("uniform", 4), ("round-robin", 4), ("power-of-choice", 8)]
)
def test_a_policy_that_asks_first_lets_only_those_compute(policy: str, num_computed: int) -> None:
    _, records = train(simulation(selection={"policy": policy}))
    for record in records:
        computed = np.isfinite(record.device_columns["train_loss"])
        assert computed.sum() == record.columns["num_computed"] == num_computed
        selected = np.flatnonzero(record.device_columns["is_selected"])
        assert len(selected) == 4
        assert computed[selected].all()


@pytest.mark.parametrize("kind", ["cnn", "mlp", "tests.learning.models.user_modules:small_user_net"])
def test_the_number_of_workers_changes_nothing_at_all(kind: str) -> None:
    outcomes = [
        train(
            simulation(
                model={"kind": kind, "channels": [4, 6] if kind == "cnn" else None},
                algorithm={"query_batch_size": 3, "num_local_steps": 2},
                execution={"workers": workers},
            )
        )
        for workers in (1, 2, 3)
    ]
    for state, records in outcomes[1:]:
        first_state, first_records = outcomes[0]
        assert all(torch.equal(state.parameters[n], first_state.parameters[n]) for n in state.parameters)
        for one, other in zip(records, first_records, strict=True):
            timeless = {k: v for k, v in one.columns.items() if k != "wall_time_s"}
            assert timeless == {k: v for k, v in other.columns.items() if k != "wall_time_s"}


@dataclass(frozen=True, eq=False)
class KeepsFew(PlannerAround):
    """Plans as another planner does, but lets fewer models be kept than it chooses."""

    num_models: int

    @property
    def max_models(self) -> int:
        return self.num_models


@pytest.mark.parametrize("max_models", [0, 1, 3])
def test_how_many_models_are_kept_changes_nothing_at_all(max_models: int) -> None:
    sim = simulation()
    state, _ = train(sim)
    federation = replace(sim.federation, planner=KeepsFew(sim.federation.planner, max_models))
    again, _ = train(replace(sim, federation=federation))
    assert all(torch.equal(again.parameters[name], value) for name, value in state.parameters.items())


# What a run starts from, measures and reports ---------------------------------------------------------------


def test_a_run_starts_from_the_seeds_model_or_from_a_given_one() -> None:
    sim = simulation()
    drawn = sim.model.initial_parameters(generator(3, Stream.MODEL_INIT))
    first = sim.initial_state()
    assert first.next_round == 0
    assert first.ledger is None
    assert list(first.parameters) == sorted(drawn)
    assert all(torch.equal(first.parameters[name], value) for name, value in drawn.items())
    assert first.server_step == {}
    np.testing.assert_array_equal(first.planner["history.times_selected"], np.zeros(10))
    given = {name: value + 1.0 for name, value in reversed(drawn.items())}
    warm = replace(sim, warm_start=lambda: given).initial_state()
    assert list(warm.parameters) == sorted(drawn)
    assert all(torch.equal(warm.parameters[name], value) for name, value in given.items())
    moving = simulation(algorithm={"server_step": "momentum"}).initial_state()
    assert list(moving.server_step) == sorted(drawn)
    assert not any(bool(value.any()) for value in moving.server_step.values())


def test_evaluation_happens_when_asked_and_after_the_last_round() -> None:
    sim = simulation(num_rounds=5, evaluation={"every": 2})
    state, records = train(sim)
    assert [record.heldout is not None for record in records] == [False, True, False, True, True]
    result = records[-1].heldout
    assert result is not None
    again = evaluation(sim, state)  # of the model after the round
    assert result.metric.tolist() == again.metric.tolist()
    assert result.loss.tolist() == again.loss.tolist()
    assert records[-1].columns["heldout_accuracy"] == again.metric.mean()
    assert records[-1].columns["heldout_accuracy_pooled"] == again.pooled_metric
    assert records[0].columns["heldout_loss"] is None


def test_without_held_out_devices_nothing_is_evaluated() -> None:
    _, records = train(simulation(partition={"heldout_fraction": 0.0}, num_rounds=1))
    assert records[0].heldout is None
    assert records[0].columns["heldout_accuracy"] is None


def test_a_loss_that_is_not_finite_on_a_held_out_device_stops_the_run_too() -> None:
    sim = simulation(algorithm={"meta_lr": 1e30}, num_rounds=1)
    with pytest.raises(DivergenceError, match=r"not finite in round 0 on held-out device \d+, got"):
        train(sim)


def test_a_round_that_is_not_evaluated_finds_the_divergence_in_the_next() -> None:
    sim = simulation(algorithm={"meta_lr": 1e30}, num_rounds=3, evaluation={"every": 3})
    with pytest.raises(DivergenceError, match=r"not finite in round 1 on device \d+, got .* the last good"):
        train(sim)


def test_the_training_loss_is_that_of_the_global_model_whatever_the_number_of_local_steps() -> None:
    losses = [
        train(simulation(num_rounds=1, algorithm={"num_local_steps": steps}))[1][0].device_columns[
            "train_loss"
        ]
        for steps in (1, 3)
    ]
    assert np.array_equal(*losses)


def test_the_statistics_of_a_round_follow_from_its_devices() -> None:
    low = train(simulation(num_rounds=1))[1][0]
    norms = low.device_columns["gradient_norm_0"]
    assert low.columns["gradient_norm_min"] == norms.min()
    assert low.columns["gradient_norm_mean"] == pytest.approx(norms.mean())
    assert low.columns["gradient_norm_max"] == norms.max()

    def share_below(**penalties: float) -> float:
        _, records = train(simulation(num_rounds=1, selection=penalties))
        return float(records[0].columns["share_below_turning_point"])

    # A turning point between the norms: put lambda_1 at their median and leave lambda_2 out.
    middle = float(np.median(norms)) * (1 + 1e-9)
    share = share_below(similarity_penalty=middle, variance_penalty=0.0)
    assert share == np.mean(norms < middle) == 0.5
    # And lambda_2 alone: the point falls with the square root of the number of samples.
    sizes = np.array([len(d.support) + len(d.query) for d in simulation().train.devices])
    weight = float(np.median(norms * np.sqrt(sizes))) * (1 + 1e-9)
    assert share_below(similarity_penalty=0.0, variance_penalty=weight) == 0.5
    assert share_below(similarity_penalty=1e6) == 1.0


def test_a_record_tells_its_round_its_devices_and_the_time_it_took() -> None:
    sim = simulation(num_rounds=2)
    _, records = train(sim)
    assert [record.round_index for record in records] == [0, 1]
    assert records[0].device_ids.tolist() == sim.train.device_ids.tolist()
    assert all(0 < record.columns["wall_time_s"] < 60 for record in records)


def test_training_devices_are_evaluated_where_that_is_asked_for_and_change_nothing() -> None:
    plain, also = (simulation(num_rounds=3, evaluation=given) for given in ({}, {"training_devices": True}))
    (state, records), (other, evaluated) = train(plain), train(also)
    assert_equal_models([state.parameters], [other.parameters])
    for one, two in zip(records, evaluated, strict=True):
        assert one.columns["training_loss"] is None
        assert one.columns["heldout_loss"] == two.columns["heldout_loss"]
    # All train, so the next round's reports are of the same model: after one step of the same size.
    for before, after in pairwise(evaluated):
        assert before.columns["training_loss"] == pytest.approx(after.columns["train_loss"], rel=1e-5)


def test_training_devices_are_evaluated_when_held_out_ones_are() -> None:
    _, records = train(simulation(num_rounds=3, evaluation={"training_devices": True, "every": 2}))
    assert [record.columns["training_loss"] is None for record in records] == [True, False, False]
    assert [record.columns["heldout_loss"] is None for record in records] == [True, False, False]


def test_the_norm_of_an_update_is_the_distance_of_two_models() -> None:
    sim = simulation(num_rounds=1)
    before, (after, (record,)) = sim.initial_state(), train(sim)
    squares = [
        float(((before.parameters[name] - value).double() ** 2).sum())
        for name, value in after.parameters.items()
    ]
    assert record.columns["update_norm"] == pytest.approx(math.sqrt(sum(squares)), rel=1e-6)
    assert record.columns["update_norm"] > 0.0
