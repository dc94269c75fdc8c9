"""Snapshots of the theory against plain loops over the same devices."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.errors import RunError
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning import meta_gradient
from fedwave.learning.objective import objective
from fedwave.rng import Stream, generator
from fedwave.runs.run import run_experiment
from fedwave.runs.theory_rows import Snapshot, read_snapshots, write_snapshots
from fedwave.runs.theory_snapshots import meta_gradients, open_run, take_snapshots
from fedwave.selection import contribution
from fedwave.simulation.simulation import Simulation
from fedwave.theory import Constants, meta_dissimilarity, meta_smoothness, variance_penalty
from fedwave.theory.estimates import Effort, estimate_constants
from fedwave.theory.learner import Learner
from tests.runs.small_runs import experiment

EFFORT = Effort(num_devices=3, num_iterations=2, num_probes=1)


def small(**changes: Any) -> Experiment:
    base: dict[str, Any] = {"data": {"dataset": {"shape": [6]}}, "model": {"kind": "softmax"}}
    base |= {"selection": {"num_selected": 2}, "algorithm": {"query_batch_size": None}}
    return experiment(**{**base, **changes})


def snapshots_of(settings: Experiment, **options: Any) -> tuple[Simulation, list[Snapshot]]:
    simulation = build_simulation(settings)
    return simulation, list(take_snapshots(settings, simulation, None, effort=EFFORT, **options))


def plain_gradients(simulation: Simulation, theta: dict[str, torch.Tensor]) -> tuple[Any, Any]:
    """Every device alone, by the meta-gradient itself."""
    loss, pool = objective(simulation.model, simulation.task), simulation.train
    rate = simulation.local.rule.inner_lr  # type: ignore[attr-defined]
    rows, losses = [], []
    for at in range(len(pool)):
        one = np.array([at])
        stacked = {name: value[None] for name, value in theta.items()}
        support, query = pool.support(one), pool.query(one)
        gradient = meta_gradient(loss, stacked, support, query, inner_lr=rate)
        rows.append(torch.cat([value.flatten() for value in gradient.values()]).double().numpy())
        leaves = {name: value.clone().requires_grad_() for name, value in stacked.items()}
        inner = torch.autograd.grad(loss(leaves, support).sum(), list(leaves.values()))
        adapted = {n: v - rate * g for (n, v), g in zip(stacked.items(), inner, strict=True)}
        losses.append(float(loss(adapted, query)[0]))
    return np.array(rows), np.array(losses)


def test_gradients_and_losses_are_those_of_each_device_alone() -> None:
    settings = small()
    simulation = build_simulation(settings)
    theta = simulation.initial_state().parameters
    rate = settings.algorithm.meta_lr
    found, losses = meta_gradients(simulation.local, 0, theta, meta_lr=rate)
    rows, expected = plain_gradients(simulation, theta)
    np.testing.assert_allclose(found, rows, atol=1e-3)  # a step in float32, divided by beta
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    several = replace(simulation.local, num_local_steps=3, query_batch_size=1)  # whole sets all the same
    np.testing.assert_array_equal(meta_gradients(several, 0, theta, meta_lr=rate)[0], found)


def test_a_snapshot_says_what_plain_loops_find() -> None:
    settings = small()
    simulation, (one,) = snapshots_of(settings, last=0)
    before = simulation.initial_state()
    with closing(simulation.open_devices()) as devices:
        after, record = simulation.run_round(before, devices)
    rows, losses = plain_gradients(simulation, before.parameters)
    _, later = plain_gradients(simulation, after.parameters)
    norms, mean = np.linalg.norm(rows, axis=1), rows.mean(0)
    assert one.round == 0
    assert one.seen == pytest.approx(losses.mean() - later.mean(), rel=1e-3)
    assert one.global_norm == pytest.approx(np.linalg.norm(mean), rel=1e-3)
    assert one.correlation == pytest.approx(np.corrcoef(norms, rows @ mean)[0, 1], abs=1e-3)
    apart = max(np.linalg.norm(i - j) for i in rows for j in rows)
    assert one.largest_distance == pytest.approx(apart, rel=1e-3)
    assert (one.norm_min, one.norm_median, one.norm_max) == pytest.approx(
        (norms.min(), np.median(norms), norms.max()), rel=1e-3
    )
    within = np.mean([np.linalg.norm(row) > 2 * np.linalg.norm(mean - row) for row in rows])
    assert one.within_30_degrees == within
    # Penalties and promises, by the formulas on the constants that the snapshot names.
    constants = Constants(**{field.name: getattr(one, field.name) for field in fields(Constants)})
    alpha, beta = settings.algorithm.inner_lr, settings.algorithm.meta_lr
    gamma = meta_dissimilarity(constants, inner_lr=alpha)
    smoothness = meta_smoothness(constants, inner_lr=alpha)
    assert (one.meta_dissimilarity, one.meta_smoothness) == (gamma, smoothness)
    assert one.rate_over_limit == pytest.approx(beta * smoothness)
    assert one.similarity_corrected == gamma
    learner = Learner.of(simulation.local, inner_lr=alpha, meta_lr=beta)
    noise = np.sqrt(learner.meta_variances(constants))
    drift = beta * math.sqrt(35 * (constants.gradient_dissimilarity**2 + 2 * noise.max() ** 2))
    assert one.similarity_printed == pytest.approx(math.sqrt(gamma) + drift)
    assert one.variance == variance_penalty(constants, inner_lr=alpha)
    samples = simulation.train.num_samples
    for name, first, second in (
        ("printed", one.similarity_printed, one.variance),
        ("corrected", gamma, one.variance),
        ("used", 1.0, 1.0),
    ):
        assert getattr(one, f"below_{name}") == np.mean(norms < first + second / np.sqrt(samples))
    ids = simulation.train.device_ids.tolist()
    chosen = [ids.index(device) for device in record.columns["selected_devices"]]
    gain = 1 - smoothness * beta / 2
    for name, apart in (("printed", math.sqrt(gamma)), ("corrected", gamma)):
        expected = beta * np.mean([gain * norms[i] ** 2 - (apart + noise[i]) * norms[i] for i in chosen])
        assert getattr(one, f"promised_{name}") == pytest.approx(expected, rel=1e-3)
    scores = contribution(norms[:, None], samples, similarity_penalty=1.0, variance_penalty=1.0)
    assert one.promised_used == pytest.approx(beta / 2 * scores[chosen].mean(), rel=1e-3)


def test_a_snapshot_has_the_spread_and_the_cost_of_its_constants() -> None:
    simulation, (one,) = snapshots_of(small(), last=0)
    local = simulation.local
    found = estimate_constants(
        simulation.model, simulation.task, simulation.train, simulation.initial_state().parameters,
        step_length=small().algorithm.meta_lr, effort=EFFORT, rng=generator(local.seed, Stream.THEORY, 0),
        chunk_samples=local.chunk_samples,
    )  # fmt: skip
    assert len(found.local_smoothness) == 3
    for field in fields(Constants):
        largest, median = getattr(one, field.name), getattr(one, f"{field.name}_median")
        assert (largest, median) == (
            getattr(found.constants(), field.name),
            getattr(found.medians(), field.name),
        )
        assert 0 < median < largest
    assert (one.num_gradients, one.num_products) == (found.num_gradients, found.num_products)
    assert one.seconds > 0


def test_a_preset_is_measured_on_the_way_and_a_run_at_its_two_ends(tmp_path: Path) -> None:
    settings = small()
    _, played = snapshots_of(settings, last=6, every=3)
    assert [one.round for one in played] == [0, 3, 6]
    path = run_experiment(settings, tmp_path / "run").path  # of six rounds
    _, simulation, states = open_run(path)
    ends = list(take_snapshots(settings, simulation, states, effort=EFFORT))
    for mine, theirs in zip(ends, (played[0], played[-1]), strict=True):
        one, other = asdict(mine), asdict(theirs)
        del one["seconds"], other["seconds"]
        assert one == other


def test_penalties_that_change_are_those_of_the_round_that_follows() -> None:
    penalties = {"kind": "calibrated", "num_devices": 3, "num_iterations": 1, "share_above": 1.0}
    _, (one,) = snapshots_of(small(selection={"num_selected": 2, "penalties": penalties}), last=0)
    assert one.below_used == 0.0
    assert one.similarity_used < one.similarity_corrected


def test_several_local_steps_have_no_theorem_1() -> None:
    _, (one,) = snapshots_of(small(algorithm={"num_local_steps": 2}), last=0)
    assert math.isnan(one.promised_printed)
    assert math.isnan(one.promised_corrected)
    assert math.isfinite(one.promised_used)
    assert one.similarity_corrected > one.meta_dissimilarity


def test_the_table_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    _, found = snapshots_of(small(algorithm={"num_local_steps": 2}), last=1, every=1)
    assert read_snapshots(tmp_path) == []
    write_snapshots(tmp_path, found)
    back = read_snapshots(tmp_path)
    assert [repr(one) for one in back] == [repr(one) for one in found]
    (tmp_path / "theory.csv").write_text((tmp_path / "theory.csv").read_text().replace("nan", "many"))
    with pytest.raises(RunError, match=r"theory\.csv holds what is no number .*many.* Make it again"):
        read_snapshots(tmp_path)


def test_a_run_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    path = run_experiment(small(num_rounds=1), tmp_path / "run").path
    (path / "checkpoint.safetensors").unlink()
    with pytest.raises(RunError, match="has no checkpoint yet"):
        open_run(path)
