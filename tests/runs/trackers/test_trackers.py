"""All trackers together: a missing library is said before a run begins; a killed run is held whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import MissingExtraError
from fedwave.runs.run import resume_run, run_experiment
from fedwave.runs.trackers import numbers_of
from tests.runs.small_runs import tiny
from tests.runs.trackers.logged import in_the_table, mlflow_runs, wandb_history, wandb_records
from tools.docs.pages import ROOT

MODULES = {"tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb"}
KILLED = """
import os, signal, sys
from fedwave.runs.run import run_experiment
from tests.runs.small_runs import Watcher, tiny

class Kill(Watcher):
    def round_done(self, record):
        if record.round_index == 3:
            os.kill(os.getpid(), signal.SIGKILL)

execution = {"mlflow": True, "wandb": True, "checkpoint_every": 2}
run_experiment(tiny(num_rounds=6, execution=execution), sys.argv[1], observers=[Kill()])
"""


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_library_is_one_line_before_the_run_begins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if one.split(".")[0] == name]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError) as error:
        run_experiment(tiny(execution={name: True}), tmp_path / "run")
    assert str(error.value).startswith(f"execution.{name} needs {name}, which cannot be imported (")
    assert str(error.value).endswith(f'Install it with: pip install "fedwave[{name}]"')
    assert not (tmp_path / "run").exists()


def test_numbers_are_counts_and_measures_and_nothing_that_was_not_measured() -> None:
    columns = {"a": 1, "b": 2.5, "c": np.int64(3), "d": float("nan"), "e": None, "f": "7", "g": [1, 2]}
    assert numbers_of(columns) == {"a": 1.0, "b": 2.5, "c": 3.0}


def test_a_run_that_was_killed_and_resumed_is_held_whole_and_no_round_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The observer kills in round 3, before the trackers hear of it; the checkpoint is of round 2."""
    for name in ("MLFLOW_TRACKING_URI", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("WANDB_SERVICE", raising=False)  # the killed process has one of its own
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "run")], env=environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    ((_, history),) = mlflow_runs(tmp_path / "run")
    assert [step for step, _ in history["round"]] == [0, 1, 2]
    resume_run(tmp_path / "run")
    table = in_the_table(tmp_path / "run")
    ((_, history),) = mlflow_runs(tmp_path / "run")
    assert [step for step, _ in history["wall_time_s"]] == [0, 1, 2, 3, 4, 5]
    assert wandb_history(wandb_records(tmp_path / "run")) == table
    del table["wall_time_s"]  # of round 2, which was computed twice, the first time is held
    assert {name: history[name] for name in table} == table
