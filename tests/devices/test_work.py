"""What a chunk of devices computes: against plain loops, and after a journey to another process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from examples.plain_nufm import Loss, evaluation, local_update, plain_devices, theta_of
from fedwave.devices import EvaluationWork, LocalWork
from fedwave.learning import LOCAL_RULES, Batch, LocalStep, Parameters
from fedwave.rng import Stream, generator
from tests.devices.plain_rules import gradient_by_hand
from tests.devices.pools import (
    DEVICE_IDS,
    INNER_LR,
    META_LR,
    NUM_DEVICES,
    PENALTIES,
    QUERY_SIZES,
    SUPPORT_SIZES,
    evaluation_work,
    local_work,
)

ROOT = Path(__file__).parents[2]
USER = "tests.learning.models.user_modules"
KINDS = ["cnn", "mlp", "softmax", f"{USER}:small_user_net", f"{USER}:RandomFeatures"]
LOSSES: dict[str, Loss] = {"classification": F.cross_entropy, "regression": F.mse_loss}


def first_model(work: LocalWork | EvaluationWork) -> Parameters:
    return work.model.initial_parameters(np.random.default_rng(2))


# Local updates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", LOCAL_RULES)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_chunk_is_each_devices_own_update_by_hand(gradient: str, task: str, kind: str) -> None:
    work = local_work(kind, gradient=gradient, task=task)
    theta = first_model(work)
    positions = np.array([5, 1, 3, 6])
    chunk = work.compute(4, theta, positions)
    assert chunk.positions is positions
    assert chunk.gradient_norms.dtype == chunk.loss.dtype == np.float64
    module = work.model.to_module({name: value.double() for name, value in theta.items()})
    devices = plain_devices(work.pool.dataset, work.pool.devices)
    # The Hessian-free product is off by half a per cent of itself in float32.
    tolerance = 1e-2 if gradient == "hessian-free" else 2e-5
    for row, position in enumerate(positions.tolist()):
        expected = local_update(
            module,
            theta_of(module),
            devices[position],
            gradient=gradient_by_hand(gradient, theta_of(module)),
            inner_lr=INNER_LR,
            meta_lr=META_LR,
            num_local_steps=2,
            loss=LOSSES[task],
        )
        own = {name: value[row] for name, value in chunk.parameters.items()}
        for name, value in work.model.to_state_dict(own).items():
            torch.testing.assert_close(
                value.double(), expected.theta[name], rtol=tolerance, atol=tolerance / 10
            )
        np.testing.assert_allclose(chunk.gradient_norms[row], expected.norms, rtol=tolerance)
        assert chunk.loss[row] == pytest.approx(expected.loss, rel=2e-5)


def test_reports_score_norms_and_samples_by_equation_21() -> None:
    norms, loss = np.array([[3.0, 5.0], [1.0, 0.5]]), np.array([0.25, 0.75])
    reports = local_work().reports(np.array([4, 2]), norms, loss)
    expected = [
        sum(g**2 - 2 * (0.7 + 1.3 / samples**0.5) * g for g in row)
        for row, samples in zip(norms.tolist(), (2 + 5, 3 + 2), strict=True)
    ]
    assert PENALTIES == {"similarity_penalty": 0.7, "variance_penalty": 1.3}
    np.testing.assert_allclose(reports.contribution, expected, rtol=1e-12)
    assert reports.device_index.tolist() == [4, 2]
    assert reports.num_samples.tolist() == [7, 5]
    assert reports.loss.tolist() == [0.25, 0.75]
    assert reports.gradient_norms.tolist() == norms.tolist()


@dataclass(frozen=True)
class Noting:
    """A rule that steps nowhere and notes the batches that it is given."""

    pools_samples: bool = False
    met: list[tuple[Batch | None, Batch]] = field(default_factory=list)

    def step(
        self, loss: Any, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        del loss
        self.met.append((support, query))
        zeros = torch.zeros(query.num_devices)
        return LocalStep(parameters, zeros, zeros)


def samples_of(work: LocalWork, batch: Batch, row: int) -> list[int]:
    """Return which samples of the dataset stand in a device's batch, found by their values."""
    whole = work.pool.standardiser(work.pool.dataset.inputs)
    found = []
    for values, weight in zip(batch.inputs[row].numpy(), batch.weights[row].tolist(), strict=True):
        if weight > 0:
            [index] = np.flatnonzero((whole == values).all(axis=(1, 2, 3)))
            found.append(int(index))
    return found


@pytest.mark.parametrize("pools_samples", [False, True])
def test_without_a_batch_size_every_step_takes_all_samples(pools_samples: bool) -> None:
    rule = Noting(pools_samples)
    work = local_work(rule=rule, num_local_steps=3)
    positions = np.array([2, 4])
    work.compute(0, first_model(work), positions)
    assert len(rule.met) == 3
    for support, query in rule.met:
        assert (support is None) is pools_samples
        for row, position in enumerate(positions):
            device = work.pool.devices[position]
            expected = [*device.support, *device.query] if pools_samples else [*device.query]
            assert samples_of(work, query, row) == expected
            if support is not None:
                assert samples_of(work, support, row) == [*device.support]


@pytest.mark.parametrize("pools_samples", [False, True])
def test_batches_are_drawn_by_seed_round_device_and_step(pools_samples: bool) -> None:
    for round_index in (0, 3):
        rule = Noting(pools_samples)
        work = local_work(rule=rule, num_local_steps=2, query_batch_size=3, seed=8)
        positions = np.array([1, 5, 3])
        work.compute(round_index, first_model(work), positions)
        for step, (_, query) in enumerate(rule.met):
            for row, position in enumerate(positions.tolist()):
                device = work.pool.devices[position]
                own = np.concatenate([device.support, device.query]) if pools_samples else device.query
                luck = generator(8, Stream.LOCAL_BATCHES, round_index, int(DEVICE_IDS[position]), step)
                expected = own if len(own) <= 3 else luck.choice(own, 3, replace=False)
                assert samples_of(work, query, row) == expected.tolist()


def test_drawn_batches_differ_between_rounds_and_steps_but_not_with_the_company() -> None:
    def drawn(round_index: int, positions: list[int]) -> list[list[int]]:
        rule = Noting()
        work = local_work(rule=rule, query_batch_size=4)
        work.compute(round_index, first_model(work), np.array(positions))
        return [samples_of(work, query, positions.index(1)) for _, query in rule.met]

    alone = drawn(0, [1])  # of its nine query samples
    assert alone == drawn(0, [0, 5, 1])
    assert alone[0] != alone[1]
    assert alone[0] != drawn(1, [1])[0]


def test_chunks_hold_every_device_once_and_no_more_samples_than_asked_for() -> None:
    work = local_work(chunk_samples=12)
    chunks = work.chunks(np.array([0, 2, 3, 4, 6]))
    assert sorted(np.concatenate(chunks).tolist()) == [0, 2, 3, 4, 6]
    sizes = np.add(SUPPORT_SIZES, QUERY_SIZES)
    assert all(len(chunk) == 1 or sizes[chunk].max() * len(chunk) <= 12 for chunk in chunks)
    assert len(local_work(chunk_samples=10**6).chunks(np.array([0, 4]))) == 1  # equal sizes


# Evaluation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_an_evaluation_is_each_devices_own_by_hand(task: str, kind: str, num_steps: int) -> None:
    work = evaluation_work(kind, task=task, num_steps=num_steps, inner_lr=0.15)
    theta = first_model(work)
    module = work.model.to_module({name: value.double() for name, value in theta.items()})
    devices = plain_devices(work.pool.dataset, work.pool.devices)
    positions = np.array([5, 0, 3, 1])
    loss, metric = work.compute(theta, positions)
    assert loss.dtype == metric.dtype == np.float64
    expected = [
        evaluation(
            module, theta_of(module), devices[p], num_steps=num_steps, inner_lr=0.15, loss=LOSSES[task]
        )
        for p in positions
    ]
    np.testing.assert_allclose(loss, [own for own, _ in expected], rtol=2e-5)
    if task == "classification":
        assert metric.tolist() == [share for _, share in expected]  # to the last bit: a count over a size
    else:
        np.testing.assert_allclose(metric, [error for _, error in expected], rtol=2e-5)


def test_all_held_out_devices_are_evaluated_once() -> None:
    chunks = evaluation_work(chunk_samples=14).chunks()
    assert len(chunks) > 1
    assert sorted(np.concatenate(chunks).tolist()) == list(range(NUM_DEVICES))


# To another process -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradient", ["exact", "plain"])
def test_local_work_travels_and_computes_the_same_bits(kind: str, gradient: str) -> None:
    work = local_work(kind, gradient=gradient, query_batch_size=4)
    theta = first_model(work)
    there = pickle.loads(pickle.dumps(work))  # noqa: S301 - our own bytes
    [chunk, *_] = work.chunks(np.arange(NUM_DEVICES))
    here, away = work.compute(3, theta, chunk), there.compute(3, theta, chunk)
    assert here.gradient_norms.tolist() == away.gradient_norms.tolist()
    assert here.loss.tolist() == away.loss.tolist()
    assert all(torch.equal(here.parameters[name], away.parameters[name]) for name in here.parameters)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_evaluation_work_travels_and_computes_the_same_bits(kind: str, task: str) -> None:
    work = evaluation_work(kind, task=task)
    theta = first_model(work)
    there = pickle.loads(pickle.dumps(work))  # noqa: S301 - our own bytes
    for chunk in work.chunks():
        for here, away in zip(work.compute(theta, chunk), there.compute(theta, chunk), strict=True):
            assert here.tolist() == away.tolist()


ELSEWHERE = """
import pickle, sys
import torch
torch.set_num_threads(1)
with open(sys.argv[1], "rb") as file:
    jobs = pickle.load(file)
answers = []
for local, evaluation, theta, local_chunk, evaluation_chunk in jobs:
    chunk = local.compute(1, theta, local_chunk)
    answers.append((chunk, local.reports(chunk.positions, chunk.gradient_norms, chunk.loss),
                    evaluation.compute(theta, evaluation_chunk)))
with open(sys.argv[1], "wb") as file:
    pickle.dump(answers, file)
"""


def test_work_and_its_outcome_travel_to_a_fresh_process_and_back(tmp_path: Path) -> None:
    jobs = []
    for kind in KINDS:
        local = local_work(kind, query_batch_size=4)
        evaluation = evaluation_work(kind, model=local.model)  # one model, as a run has
        jobs.append((local, evaluation, first_model(local), np.array([5, 0]), np.array([1, 2])))
    file = tmp_path / "work"
    file.write_bytes(pickle.dumps(jobs))
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(file)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    answers = pickle.loads(file.read_bytes())  # noqa: S301 - our own bytes
    for (local, evaluation, theta, at, also), (away, reports, results) in zip(jobs, answers, strict=True):
        here = local.compute(1, theta, at)
        assert all(torch.equal(here.parameters[n], away.parameters[n]) for n in here.parameters)
        assert here.loss.tolist() == away.loss.tolist() == reports.loss.tolist()
        assert here.gradient_norms.tolist() == away.gradient_norms.tolist()
        for mine, theirs in zip(evaluation.compute(theta, also), results, strict=True):
            assert mine.tolist() == theirs.tolist()
