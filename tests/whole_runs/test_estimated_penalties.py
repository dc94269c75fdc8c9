"""Whole runs whose penalties are estimated as they go on: the same bits after a kill, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from fedwave.errors import ConfigError
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import StopAfter, experiment, results

BASE: dict[str, Any] = {"data": {"dataset": {"shape": [6]}}, "model": {"kind": "softmax"}}
OPTIONS = {"every": 2, "num_devices": 3, "num_iterations": 2}


def with_penalties(kind: str, **execution: Any) -> Experiment:
    selection = {"num_selected": 2, "penalties": {"kind": kind, **OPTIONS}}
    return experiment(**BASE, selection=selection, execution=execution)


@pytest.mark.parametrize("kind", ["estimated", "calibrated"])
def test_a_killed_run_resumes_to_the_same_bits_on_any_number_of_cores(tmp_path: Path, kind: str) -> None:
    whole = run_experiment(with_penalties(kind, workers=1), tmp_path / "whole").path
    saved = load_file(whole / "checkpoint.safetensors")
    columns = RunFolder(whole).table()
    for name, at in (("used", ""), ("theory", "theory_")):
        last = [columns[f"{at}{which}_penalty"][-1] for which in ("similarity", "variance")]
        assert saved[f"penalties.{name}"].tolist() == last
    first = columns["theory_similarity_penalty"]
    assert [first[k] == first[k - 1] for k in range(1, 6)] == [True, False, True, False, True]
    for rounds in (1, 3, 4):  # before and after an estimate
        with pytest.raises(KeyboardInterrupt):
            run_experiment(
                with_penalties(kind, workers=2), tmp_path / f"cut{rounds}", observers=[StopAfter(rounds)]
            )
        assert results(resume_run(tmp_path / f"cut{rounds}").path) == results(whole)


def test_the_summary_says_how_often_everybody_was_below_the_theorys_turning_point(tmp_path: Path) -> None:
    run = run_experiment(with_penalties("estimated"), tmp_path / "run")
    columns = RunFolder(run.path).table()
    share = columns["theory_share_below_turning_point"]
    told = run.summary["penalties"]
    assert told["rounds_with_everybody_below"] == int((share == 1.0).sum())
    assert told["similarity_penalty"] == columns["similarity_penalty"][-1]
    np.testing.assert_array_equal(share, columns["share_below_turning_point"])
    fixed = run_experiment(experiment(**BASE), tmp_path / "fixed")
    assert "penalties" not in fixed.summary
    assert "similarity_penalty" not in RunFolder(fixed.path).table()


def test_penalties_have_one_source_and_two_devices() -> None:
    with pytest.raises(
        ConfigError, match=r'"estimated" takes the place of .*, got 2.0, 1.0\. Leave those out'
    ):
        experiment(**BASE, selection={"penalties": "estimated", "similarity_penalty": 2.0})
    with pytest.raises(ConfigError, match=r"share_above must be above 0 and at most 1, got 2\.0"):
        build_simulation(
            experiment(**BASE, selection={"penalties": {"kind": "calibrated", "share_above": 2.0}})
        )
