"""The readings of the test against a plain loop over devices, and against the run's own evaluation."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning.evaluate import adapt
from fedwave.reproduce.judgements import JUDGEMENTS, read_test


@pytest.fixture(scope="module")
def simulation():
    settings = ["partition.num_devices=12", "model.channels=[4]", "selection.num_selected=2", "num_rounds=1"]
    return build_simulation(load_experiment("digits/nufm", settings))


def test_the_usual_judgement_is_the_runs_own_evaluation(simulation) -> None:
    parameters = simulation.initial_state().parameters
    with closing(simulation.open_devices()) as devices:
        own = devices.evaluate(parameters)
    found = read_test(simulation, parameters)["one step"]
    assert found["accuracy"] == own.mean_metric
    assert found["accuracy_pooled"] == pytest.approx(own.pooled_metric, rel=1e-12)
    assert found["loss"] == pytest.approx(own.mean_loss, rel=1e-12)


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_every_judgement_is_a_plain_loop_over_devices(simulation, name: str) -> None:
    how = JUDGEMENTS[name]
    parameters = simulation.initial_state().parameters
    pool = simulation.train if how.on_training_devices else simulation.heldout
    right, right_own, losses, counts = [], [], [], []
    for at in range(len(pool)):
        module = simulation.model.to_module(parameters)
        (support, query) = (part(np.array([at])) for part in (pool.support, pool.query))
        for _ in range(how.num_steps):
            module.zero_grad()
            F.cross_entropy(module(support.inputs[0]), support.targets[0]).backward()
            with torch.no_grad():
                for weight in module.parameters():
                    weight -= how.rate_factor * simulation.evaluation.inner_lr * weight.grad
        with torch.no_grad():
            outputs, targets = module(query.inputs[0]), query.targets[0]
        classes = sorted({*support.targets[0].tolist(), *targets.tolist()})
        chosen = [classes[row.index(max(row))] for row in outputs[:, classes].tolist()]
        losses.append(F.cross_entropy(outputs, targets).item())
        right.append(int((outputs.argmax(1) == targets).sum()))
        right_own.append(sum(a == b for a, b in zip(chosen, targets.tolist(), strict=True)))
        counts.append(len(targets))
    found = read_test(simulation, parameters)[name]
    assert found["accuracy"] == pytest.approx(np.mean(np.divide(right, counts)))
    assert found["accuracy_pooled"] == pytest.approx(sum(right) / sum(counts))
    assert found["accuracy_own"] == pytest.approx(np.mean(np.divide(right_own, counts)))
    assert found["accuracy_own_pooled"] == pytest.approx(sum(right_own) / sum(counts))
    assert found["loss"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_models_are_judged_on_one_core_whatever_the_machine_has(simulation, monkeypatch) -> None:
    """On three, the accuracies of some models of CIFAR-100 were others in their last bits."""
    before, seen = torch.get_num_threads(), set()

    def noting(*args, **options):
        seen.add(torch.get_num_threads())
        return adapt(*args, **options)

    monkeypatch.setattr("fedwave.reproduce.judgements.adapt", noting)
    torch.set_num_threads(3)
    try:
        read_test(simulation, simulation.initial_state().parameters)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == {1}


def test_a_judgement_is_what_its_name_says() -> None:
    terms = {
        name: (how.num_steps, how.rate_factor, how.on_training_devices) for name, how in JUDGEMENTS.items()
    }
    assert terms == {
        "one step": (1, 1.0, False), "no adaptation": (0, 1.0, False), "5 steps": (5, 1.0, False),
        "10 steps": (10, 1.0, False), "one step, rate x 10": (1, 10.0, False),
        "training devices": (1, 1.0, True),
    }  # fmt: skip
