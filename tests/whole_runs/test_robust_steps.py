"""Whole runs with a server step that withstands liars: the same bits however they are computed or cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedwave.experiments import Experiment
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, experiment, results

STEPS: dict[str, Any] = {
    "clipped": {"kind": "clip-norm", "max_norm": 0.002},
    "clipped at the median": "clip-norm",
    "trimmed": {"kind": "trimmed-mean", "num_trimmed": 1},
    "median": "median",
}


def robust(step: Any, **execution: Any) -> Experiment:
    cell = {"preset": "paper", "num_blocks": 5, "method": "greedy", "bits_per_parameter": 16}
    return experiment(
        algorithm={"server_step": step}, selection={"num_selected": 5}, cell=cell, execution=execution
    )


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_robust_run_has_the_same_bits_with_other_threads_and_when_it_is_resumed(
    step: Any, tmp_path: Path
) -> None:
    alone = results(run_experiment(robust(step, workers=1, chunk_samples=7), tmp_path / "alone").path)
    many = results(run_experiment(robust(step, workers=3, chunk_samples=7), tmp_path / "many").path)
    assert many == alone
    cut = run_experiment(
        robust(step, workers=2, chunk_samples=7), tmp_path / "cut", observers=[AskToStopAfter(3)]
    )
    assert results(resume_run(cut.path).path) == alone
    plain = results(run_experiment(robust("mean", workers=1, chunk_samples=7), tmp_path / "plain").path)
    assert plain["model"] != alone["model"]  # the step was asked


@pytest.mark.processes
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_robust_run_on_ray_has_the_bits_of_threads(step: Any, tmp_path: Path) -> None:
    here = run_experiment(robust(step), tmp_path / "threads").path
    there = run_experiment(robust(step, engine="ray", workers=2), tmp_path / "ray").path
    assert results(there) == results(here)
