"""The arms of ``steps``: plain ones are the runs of their presets, followers step as far as their leaders."""

from __future__ import annotations

import math
from contextlib import closing

import numpy as np
import pytest
import torch

from fedwave.errors import DivergenceError, RunError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning.parameters import distance
from fedwave.reproduce.single_run import CURVES, single_run
from fedwave.reproduce.steps import (
    ARMS,
    NUM_SKETCHED,
    Situation,
    aligned,
    alikeness,
    along_last_step,
    arm_key,
    arm_run,
    as_evaluated,
    everybody,
    herding,
    leader_norms,
    rescaled,
    sketch,
)
from fedwave.runs.kept_runs import KeptRuns

SMALL = ["num_rounds=4", "partition.num_devices=16", "model.channels=[4]", "execution.workers=1",
         "selection.num_selected=3", "evaluation.training_devices=true"]  # fmt: skip


def small(scheme: str = "nufm", *settings: str):
    return load_experiment(f"digits/{scheme}", [*SMALL, *settings])


def situation(changes: list[list[float]], **given) -> Situation:
    rows = torch.tensor(changes)
    known = {
        "planned": np.array([0]),
        "changes": rows,
        "products": (rows @ rows.T).numpy().astype(np.float64),
        "last_step": None,
        "num_selected": 2,
        "rng": np.random.default_rng(0),
    }
    return Situation(**{**known, **given})


@pytest.mark.parametrize(
    ("arm", "alone"),
    [
        ("NUFM", small()),
        ("uniform", small("per-fedavg", "selection.everyone_computes=true")),
        ("everybody", small("per-fedavg", "selection.num_selected=8")),
    ],
)
def test_plain_arms_are_runs_of_their_presets_to_the_bit(arm: str, alone) -> None:
    own, expected = arm_run(small(), arm), single_run(alone)
    curves = dict(expected.curves)
    # Between the rounds the devices report losses alone; after the last one they are evaluated.
    *between, last = own.curve("training_accuracy")
    assert np.isnan(between).all()
    assert last == curves.pop("training_accuracy")[-1]
    assert {name: own.curves[name] for name in curves} == curves
    assert set(expected.curves) == set(CURVES) - {"energy_j", "delay_s"}
    for name in ("accuracy", "accuracy_pooled", "loss", "training_loss", "training_loss_weighted",
                 "training_accuracy", "update_norm", "received", "gradient_norm", "never_chosen",
                 "accuracy_worst_tenth", "rounds_played"):  # fmt: skip
        assert own.figures[name] == expected.figures[name], name


def test_reports_say_what_an_evaluation_of_the_training_devices_does() -> None:
    simulation = build_simulation(small())
    parameters, everyone = simulation.initial_state().parameters, np.arange(len(simulation.train))
    with closing(simulation.open_devices()) as devices:
        expected = devices.evaluate(parameters, on_training=True)
        found = as_evaluated(simulation, devices.report(0, parameters, everyone, max_models=0))
    assert expected is not None
    assert found.loss.tolist() == expected.loss.tolist()
    assert found.device_ids.tolist() == expected.device_ids.tolist()
    assert (found.mean_loss, found.pooled_loss) == (expected.mean_loss, expected.pooled_loss)
    assert expected.mean_loss != expected.pooled_loss


def test_a_follower_steps_as_far_as_its_leader_and_elsewhere(tmp_path) -> None:
    kept = KeptRuns(tmp_path / "runs")
    with pytest.raises(RunError, match='"uniform at NUFM\'s norms" needs the finished run of NUFM'):
        leader_norms(small(), "uniform at NUFM's norms", kept)
    for arm in ("NUFM", "uniform"):
        kept.add(arm_run(small(), arm))
    assert leader_norms(small(), "NUFM", kept) is None
    for arm, leader in (("uniform at NUFM's norms", "NUFM"), ("NUFM at uniform's norms", "uniform")):
        norms = leader_norms(small(), arm, kept)
        led = kept.find(arm_key(small(), leader))
        assert led is not None
        assert norms == led.curves["update_norm"]
        own = arm_run(small(), arm, norms=norms)
        np.testing.assert_allclose(own.curve("update_norm"), norms, rtol=1e-5)
        assert own.curves["heldout_loss"] != led.curves["heldout_loss"]


def test_every_arm_has_a_key_of_its_own_and_follows_one_before_it() -> None:
    keys = [arm_key(small(), arm) for arm in ARMS]
    assert len(set(keys)) == len(keys) == 10
    assert arm_key(small("nufm", "seed=1"), "NUFM") not in keys
    before: list[str] = []
    for name, arm in ARMS.items():
        assert arm.leader == "" or arm.leader in before
        before.append(name)


def test_the_leaders_divergence_ends_a_follower() -> None:
    norms = [0.01, math.nan, 0.01, 0.01]
    own = arm_run(small(), "uniform at NUFM's norms", norms=norms)
    assert own.figures["rounds_played"] == 1.0
    assert math.isnan(own.figures["accuracy"])
    assert np.isfinite(own.curve("heldout_loss")).tolist() == [True, False, False, False]


def test_gain_and_last_step_choose_by_inner_products() -> None:
    changes = [[1.0, 0.0], [0.0, 5.0], [2.0, 0.0], [3.0, -1.0], [-4.0, -1.0]]  # mean (0.4, 0.6)
    now = situation(changes)
    assert aligned(now).tolist() == [1, 2]  # 0.4, 3, 0.8, 0.6, -2.2
    assert along_last_step(now).tolist() == [0]  # the policy's, as there is no last step
    assert along_last_step(situation(changes, last_step=torch.tensor([1.0, -9.0]))).tolist() == [3, 4]
    assert everybody(now).tolist() == [0, 1, 2, 3, 4]


def test_herding_finds_a_set_whose_mean_is_everybodys() -> None:
    rng = np.random.default_rng(3)
    one, far, farther = rng.normal(size=(3, 3000)).astype(np.float32)
    aim = 5.0 * one
    changes = [aim + far, aim - far, aim + 3.0 * farther, aim - 3.0 * farther, -0.2 * aim, 2.2 * aim]
    assert herding(situation(np.array(changes).tolist(), num_selected=2)).tolist() == [0, 1]
    assert herding(situation(np.array(changes).tolist(), num_selected=4)).tolist() == [0, 1, 2, 3]


def test_herding_takes_nobody_twice() -> None:
    changes = [[0.0] * 500, [1.0] * 500, [-1.0] * 500, [0.5] * 500]
    changes[3] = [-0.5] * 500
    assert herding(situation([*changes, [0.5] * 500], num_selected=3)).tolist() in ([0, 3, 4], [0, 1, 2])


def test_sketches_keep_inner_products_about() -> None:
    rows = torch.from_numpy(np.random.default_rng(5).normal(size=(2, 20_000)).astype(np.float32))
    rows[1] += rows[0]
    rng = np.random.default_rng(6)
    products = [np.prod(sketch(rows, rng=rng), axis=0).sum() for _ in range(60)]
    exact = float(rows[0] @ rows[1])
    assert sketch(rows, rng=rng).shape == (2, NUM_SKETCHED)
    # Each is off by about sqrt(3 / 64) of the exact product; the mean of sixty by 0.028 of it.
    assert np.mean(products) == pytest.approx(exact, rel=0.11)


def test_a_rescaled_model_lies_on_the_same_line_at_the_distance_asked_for() -> None:
    before, after = ({"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([4.0, 6.0])})
    made = rescaled(before, after, 10.0)
    assert made["w"].tolist() == [7.0, 10.0]
    assert distance(before, made) == 10.0
    assert rescaled(before, before, 10.0)["w"].tolist() == [1.0, 2.0]
    with pytest.raises(DivergenceError, match="the leader's step is not finite, got nan"):
        rescaled(before, after, math.nan)


def test_alikeness_is_that_of_the_gradients() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(6, 9)) * np.arange(1.0, 7.0)[:, None]
    found = alikeness(rows @ rows.T)
    norms, gains = np.linalg.norm(rows, axis=1), rows @ rows.mean(0)
    assert found["gain_correlation"] == pytest.approx(np.corrcoef(norms, gains)[0, 1])
    cosines = [rows[i] @ rows[j] / norms[i] / norms[j] for i in range(6) for j in range(i)]
    assert found["mean_cosine"] == pytest.approx(np.mean(cosines))
    assert math.isnan(alikeness(np.zeros((3, 3)))["mean_cosine"])
