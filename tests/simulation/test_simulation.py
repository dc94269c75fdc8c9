"""Whole rounds against a plain loop over devices, and the limits at which methods coincide."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fedwave.errors import DivergenceError
from fedwave.experiments import experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.simulation.records import HeldOut
from fedwave.simulation.simulation import Simulation, State
from fedwave.simulation.workers import Workers

BASE = {
    "seed": 3,
    "num_rounds": 3,
    "data": {"dataset": "synthetic", "num_samples": 600, "num_classes": 5, "shape": [1, 8, 8]},
    "partition": {"num_devices": 14, "heldout_fraction": 0.3},
    "model": {"kind": "cnn", "channels": [4, 6]},
    "algorithm": {"num_selected": 4, "inner_lr": 0.05, "meta_lr": 0.03},
}


def simulation(**changes: object) -> Simulation:
    settings = dict(BASE)
    for section, values in changes.items():
        old = settings.get(section)
        settings[section] = {**old, **values} if isinstance(old, dict) else values
    return build_simulation(experiment_from(settings))


def train(sim: Simulation, *, workers: int = 2) -> tuple[State, list]:
    state, records = sim.initial_state(), []
    with Workers(workers) as pool:
        for _ in range(sim.num_rounds):
            state, record = sim.run_round(state, pool)
            records.append(record)
    return state, records


def plain_loop(sim: Simulation, num_selected: int, num_local_steps: int) -> tuple[dict, list]:
    """NUFM as in Alg. 1 with torch's own layers, one device after another, in float64."""
    start = sim.initial_state().parameters
    module = sim.model.to_module({k: v.double() for k, v in start.items()})
    names = [name for name, _ in module.named_parameters()]
    theta = {name: value.detach().clone() for name, value in module.named_parameters()}
    rules = sim.training

    def loss(parameters, batch):
        scores = torch.func.functional_call(module, parameters, (batch.inputs[0].double(),))
        return F.cross_entropy(scores, batch.labels[0])

    chosen = []
    for _ in range(sim.num_rounds):
        models, scores = [], []
        for position in range(len(sim.train)):
            support, query = sim.train.support(np.array([position])), sim.train.query(np.array([position]))
            own, score = {k: v.clone() for k, v in theta.items()}, 0.0
            for _ in range(num_local_steps):
                leaves = {k: v.detach().requires_grad_() for k, v in own.items()}
                inner = torch.autograd.grad(loss(leaves, support), list(leaves.values()), create_graph=True)
                adapted = {k: leaves[k] - rules.inner_lr * g for k, g in zip(names, inner, strict=True)}
                gradient = torch.autograd.grad(loss(adapted, query), list(leaves.values()))
                norm = float(torch.cat([g.flatten() for g in gradient]).norm())
                samples = len(sim.train.devices[position].support) + len(sim.train.devices[position].query)
                score += (
                    norm**2 - 2 * (rules.similarity_penalty + rules.variance_penalty / samples**0.5) * norm
                )
                own = {k: own[k] - rules.meta_lr * g for k, g in zip(names, gradient, strict=True)}
            models.append(own)
            scores.append(score)
        best = sorted(sorted(range(len(scores)), key=lambda p: -scores[p])[:num_selected])
        chosen.append(best)
        theta = {k: sum(models[p][k] for p in best) / len(best) for k in names}
    return theta, chosen


@pytest.mark.parametrize("num_local_steps", [1, 3])
def test_three_rounds_of_nufm_equal_a_plain_loop_over_devices(num_local_steps: int) -> None:
    sim = simulation(algorithm={"num_local_steps": num_local_steps})
    state, records = train(sim)
    expected, chosen = plain_loop(sim, 4, num_local_steps)
    got = sim.model.to_state_dict(state.parameters)
    for name, value in expected.items():
        torch.testing.assert_close(got[name].double(), value, rtol=1e-4, atol=1e-6)
    ids = sim.train.device_ids
    assert [record.columns["selected_devices"] for record in records] == [
        " ".join(str(ids[p]) for p in best) for best in chosen
    ]


def test_fedavg_is_per_fedavg_without_an_inner_step_on_support_and_query_together() -> None:
    fedavg = simulation(algorithm={"name": "fedavg"})
    without_step = simulation(algorithm={"name": "per-fedavg", "inner_lr": 0.0})
    # Per-FedAvg with alpha = 0 descends the query loss alone; give it FedAvg's batches.
    everything = without_step.train.everything
    object.__setattr__(without_step.train, "query", everything)
    first, first_records = train(fedavg)
    second, second_records = train(without_step)
    assert all(torch.equal(first.parameters[name], second.parameters[name]) for name in first.parameters)
    assert [r.columns["train_loss"] for r in first_records] == [
        r.columns["train_loss"] for r in second_records
    ]


def test_with_all_devices_selected_nufm_is_per_fedavg() -> None:
    everyone = len(simulation().train)
    nufm, _ = train(simulation(algorithm={"name": "nufm", "num_selected": everyone}))
    per_fedavg, _ = train(simulation(algorithm={"name": "per-fedavg", "num_selected": everyone}))
    assert all(torch.equal(nufm.parameters[n], per_fedavg.parameters[n]) for n in nufm.parameters)


def test_uniform_selection_computes_only_the_selected_devices() -> None:
    _, records = train(simulation(algorithm={"name": "per-fedavg"}))
    for record in records:
        computed = np.isfinite(record.device_columns["train_loss"])
        assert computed.sum() == record.columns["num_computed"] == 4
        assert np.array_equal(np.flatnonzero(computed), np.flatnonzero(record.device_columns["is_selected"]))


@pytest.mark.parametrize("kind", ["cnn", "mlp", "tests.learning.test_models:small_user_net"])
def test_the_number_of_workers_changes_nothing_at_all(kind: str) -> None:
    sim = simulation(model={"kind": kind}, algorithm={"query_batch_size": 3, "num_local_steps": 2})
    outcomes = [train(sim, workers=workers) for workers in (1, 2, 3)]
    for state, records in outcomes[1:]:
        first_state, first_records = outcomes[0]
        assert all(torch.equal(state.parameters[n], first_state.parameters[n]) for n in state.parameters)
        for one, other in zip(records, first_records, strict=True):
            timeless = {k: v for k, v in one.columns.items() if k != "wall_time_s"}
            assert timeless == {k: v for k, v in other.columns.items() if k != "wall_time_s"}


def test_every_gradient_goes_with_every_selection() -> None:
    finals = {}
    for gradient in ("exact", "first-order", "hessian-free", "plain"):
        for selection in ("uniform", "top-contribution"):
            state, records = train(simulation(algorithm={"gradient": gradient, "selection": selection}))
            assert len(records) == 3
            finals[gradient, selection] = torch.cat([v.flatten() for v in state.parameters.values()])
    assert len({tuple(value.tolist()) for value in finals.values()}) == 8  # all differ
    exact = finals["exact", "uniform"]
    near = float((finals["hessian-free", "uniform"] - exact).norm())
    assert near < float((finals["first-order", "uniform"] - exact).norm())


def test_devices_chosen_beyond_the_kept_models_are_computed_again() -> None:
    sim = simulation()
    state, _ = train(sim)

    class KeepsOne:
        """Selects four devices but lets only one model be kept."""

        max_models = 1

        def __init__(self, inner: object) -> None:
            self.computing, self.schedule = inner.computing, inner.schedule

    object.__setattr__(sim, "scheduler", KeepsOne(sim.scheduler))
    again, _ = train(sim)
    for name, value in state.parameters.items():
        torch.testing.assert_close(again.parameters[name], value, rtol=1e-5, atol=1e-7)


def test_evaluation_happens_when_asked_and_after_the_last_round() -> None:
    _, records = train(simulation(num_rounds=5, evaluation={"every": 2}))
    assert [record.heldout is not None for record in records] == [False, True, False, True, True]
    tested = records[-1].heldout
    assert tested is not None
    assert len(tested.device_ids) == 4
    assert records[-1].columns["heldout_accuracy"] == tested.accuracy.mean()
    assert records[-1].columns["heldout_accuracy_pooled"] == tested.pooled_accuracy


def test_evaluation_adapts_for_the_asked_number_of_steps() -> None:
    losses = []
    for num_steps in (0, 1, 5):
        sim = simulation(evaluation={"num_steps": num_steps, "inner_lr": 0.1})
        with Workers(1) as workers:
            losses.append(sim.test(sim.initial_state().parameters, workers).mean_loss)
    assert losses[0] > losses[1] > losses[2]


def test_a_loss_that_is_not_finite_on_a_held_out_device_stops_the_run_too() -> None:
    sim = simulation(algorithm={"meta_lr": 1e30}, num_rounds=1)
    with pytest.raises(DivergenceError, match=r"not finite in round 0 on held-out device \d+, got"):
        train(sim)


def test_a_round_that_is_not_tested_finds_the_divergence_in_the_next() -> None:
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
    penalties = {"similarity_penalty": 0.5, "variance_penalty": 0.5}
    low = train(simulation(algorithm={**penalties, "meta_lr": 0.001}))[1][0]
    norms = low.device_columns["gradient_norm_0"]
    assert low.columns["gradient_norm_min"] == norms.min()
    assert low.columns["gradient_norm_mean"] == pytest.approx(norms.mean())
    assert low.columns["gradient_norm_max"] == norms.max()
    # A turning point between the norms: put lambda_1 at their median and leave lambda_2 out.
    middle = float(np.median(norms)) * (1 + 1e-9)
    split = train(simulation(algorithm={"similarity_penalty": middle, "variance_penalty": 0.0}))[1][0]
    assert split.columns["share_below_turning_point"] == np.mean(norms < middle)
    all_below = train(simulation(algorithm={"similarity_penalty": 1e6}))[1][0]
    assert all_below.columns["share_below_turning_point"] == 1.0


def test_drawn_batches_differ_between_rounds_and_steps_but_not_with_the_company() -> None:
    sim = simulation(algorithm={"query_batch_size": 2, "num_local_steps": 2})
    sizes = np.array([len(device.query) for device in sim.train.devices])
    position = int(np.argmax(sizes))

    def drawn(round_index: int, positions: list[int]) -> list[torch.Tensor]:
        row = positions.index(position)
        return [batch.inputs[row] for batch in sim._local_batches(round_index, np.array(positions))]

    alone = drawn(0, [position])
    assert all(torch.equal(a, b) for a, b in zip(alone, drawn(0, [position, 0, 1]), strict=True))
    assert not torch.equal(alone[0], alone[1])
    assert not torch.equal(alone[0], drawn(1, [position])[0])


def test_pooled_accuracy_weighs_devices_by_their_samples() -> None:
    tested = HeldOut(np.array([1, 2]), np.array([1, 3]), np.array([1.0, 3.0]), np.array([1.0, 1 / 3]))
    assert tested.mean_accuracy == pytest.approx(2 / 3)
    assert tested.pooled_accuracy == pytest.approx(2 / 4)
    assert tested.mean_loss == 2.0
