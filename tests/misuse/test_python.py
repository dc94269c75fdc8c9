"""Python calls with something else than was meant: what was expected is said, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedwave as fw
from fedwave.errors import FedwaveError
from fedwave.experiments.build import build_simulation
from fedwave.runs.run import resume_run, run_experiment
from fedwave.server import ContributionAudit
from fedwave.wireless.cell import Cell
from tests.runs.small_runs import Watcher, experiment


def problem(num_devices: int = 3, **changes: Any) -> fw.AllocationProblem:
    values: dict[str, Any] = {
        "contribution": np.ones(num_devices),
        "channel_gain": 1.0,
        "interference_w": np.full(2, 0.1),
        "max_power_w": 1.0,
        "workload_cycles": 1.0,
        "max_frequency_hz": 1.0,
        "capacitance": 1.0,
        "model_bits": 1.0,
        "bandwidth_hz": 1.0,
        "noise_psd_w_per_hz": 1.0,
        "energy_weight": 0.1,
        "delay_weight": 0.1,
    }
    return fw.AllocationProblem(**(values | changes))


def audit(trainable: Any) -> ContributionAudit:
    return ContributionAudit(meta_lr=0.1, similarity_penalty=1.0, variance_penalty=1.0, trainable=trainable)


CALLS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: run_experiment({"name": "x"}, "out"),
        "experiment must be of type Experiment, got {'name': 'x'}",
    ),  # type: ignore[arg-type]
    (lambda: run_experiment("digits/nufm", "out"), 'Make one with load_experiment("preset or file")'),  # type: ignore[arg-type]
    (lambda: run_experiment(("a", 1), "out"), "experiment must be of type Experiment"),  # type: ignore[arg-type]
    (lambda: run_experiment(experiment(), 3), "the run folder must be of type str or Path, got 3"),  # type: ignore[arg-type]
    (lambda: run_experiment(experiment(), "out", dataset=([], [])), "dataset must be of type Dataset"),  # type: ignore[arg-type]
    (lambda: run_experiment(experiment(), "out", split=[0, 1]), "split must be of type UserSplit"),  # type: ignore[arg-type]
    (lambda: run_experiment(experiment(), "out", observers=Watcher()), "Give a list of observers"),  # type: ignore[arg-type]
    (lambda: run_experiment(experiment(), "out", observers=[print]), "the methods started and round_done"),  # type: ignore[list-item]
    (lambda: resume_run(None), "the run folder must be of type str or Path, got None"),  # type: ignore[arg-type]
    (lambda: resume_run(experiment()), "the run folder must be of type str or Path"),  # type: ignore[arg-type]
    (lambda: build_simulation("digits/nufm"), "experiment must be of type Experiment"),  # type: ignore[arg-type]
    (lambda: fw.load_experiment({"seed": 1}), "source must be of type str or Path"),  # type: ignore[arg-type]
    (lambda: fw.load_experiment("digits/nufm", "seed=1"), "overrides must be a list of KEY=VALUE"),
    (lambda: fw.experiment_from("digits/nufm"), "settings must be of type Mapping"),  # type: ignore[arg-type]
    (lambda: fw.read_run(3), "the run folder must be of type str or Path"),  # type: ignore[arg-type]
    (lambda: fw.final_table(["a"]), "a run must be of type FinishedRun, got 'a'"),  # type: ignore[list-item]
    (lambda: fw.final_table([]), "no runs to compare"),
    (lambda: fw.cost_table([]), "no runs to compare"),
    (lambda: fw.plot_runs([], "x.png"), "no runs to compare"),
    (lambda: fw.plot_runs(["a"], "x.png"), "a run must be of type FinishedRun"),  # type: ignore[list-item]
    (lambda: fw.load_cell({"preset": "paper"}, num_devices=3), "the cell must be of type str or Path"),  # type: ignore[arg-type]
    (lambda: fw.load_cell("paper", num_devices=True), "num_devices must be a whole number >= 1, got True"),
    (lambda: fw.load_cell("paper", num_devices="3"), "num_devices must be a whole number >= 1, got '3'"),  # type: ignore[arg-type]
    (lambda: Cell.build({}, num_devices=3, seed=0), "config must be of type CellConfig"),  # type: ignore[arg-type]
    (lambda: fw.problem_of_cell("paper", [1.0]), "cell must be a cell, got 'paper'"),  # type: ignore[arg-type]
    (lambda: fw.problem_of_cell(fw.load_cell("paper", num_devices=2), [1.0]), "one entry for each"),
    (lambda: fw.problem_of_cell(fw.load_cell("paper", num_devices=2), [[1.0], [1, 2]]), "numbers only"),
    (lambda: fw.allocate({"contribution": [1]}), "problem must be of type AllocationProblem"),  # type: ignore[arg-type]
    (lambda: fw.allocate("paper"), "problem must be of type AllocationProblem, got 'paper'"),  # type: ignore[arg-type]
    (lambda: fw.allocate(problem(), ["optimal"]), "There is no method"),  # type: ignore[arg-type]
    (lambda: fw.allocate(problem(), "optimal", nope=1), "has no option 'nope'"),
    (lambda: fw.allocate(problem(), "random"), "draws at random and needs rng="),
    (lambda: fw.pareto_front("paper"), "problem must be of type AllocationProblem"),  # type: ignore[arg-type]
    (lambda: fw.pareto_front(problem(), [[1], [2, 3]]), "weights must hold numbers only"),  # type: ignore[list-item]
    (lambda: fw.total_cost(problem(4), fw.allocate(problem(3))), "The allocation is of another problem"),
    (lambda: fw.total_cost(fw.allocate(problem(3)), problem(3)), "The problem comes first"),  # type: ignore[arg-type]
    (lambda: fw.total_cost(problem(3), problem(3)), "Give what allocate(problem) returned"),  # type: ignore[arg-type]
    (lambda: fw.violations(problem(3), None), "Give what allocate(problem) returned"),  # type: ignore[arg-type]
    (lambda: problem(channel_gain=[[1, 2], [3]]), "channel_gain must hold numbers only, got [[1, 2], [3]]"),
    (lambda: problem(contribution=[1, "a", 3]), "contribution must hold numbers only"),
    (lambda: problem(contribution=[True, False, True]), "contribution must hold numbers only"),
    (lambda: problem(energy_weight=True), "energy_weight must be one number, got True"),
    (lambda: problem(model_bits=[1.0, 2.0]), "model_bits must be one number"),
    (lambda: problem(max_power_w={}), "max_power_w must hold numbers only"),
    (lambda: fw.dataset_from_arrays([[1, 2], [3]], [0, 1]), "inputs must be one array, got rows of unequal"),
    (lambda: fw.dataset_from_arrays([[1], [2]], [[0], [1, 2]]), "labels must be one array"),
    (lambda: fw.dataset_from_arrays([[1], [2]], [0, 10**12]), "got 1000000000000 for 2 samples"),
    (lambda: fw.dataset_from_arrays([[1], [2]], [0, 10**30]), "labels must be whole numbers"),
    (lambda: fw.dataset_from_arrays([[1], [2]], [0, 1], num_classes=10**12), "would need 58.2 TiB of memory"),
    (lambda: fw.dataset_from_arrays("digits", [0]), "inputs must be numbers"),
    (lambda: audit("weight"), "trainable must be a collection of names, got 'weight'. Write ['weight']"),
    (lambda: audit([]).require_names_of(["w"]), "trainable must name arrays of the model, got []"),
    (lambda: audit(["w", "b"]).require_names_of(["w"]), "trainable must name arrays of the model, got ['b']"),
    (lambda: fw.dataset_from_arrays({}, [0]), "inputs must be numbers"),
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[said[:50] for _, said in CALLS])
def test_a_call_with_something_else_says_what_was_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((FedwaveError, TypeError)) as caught:
        call()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
