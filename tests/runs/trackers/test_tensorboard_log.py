"""TensorBoard's event files, read with its own reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import StopAfter, experiment


def test_tensorboard_logs_every_round_once_also_of_a_resumed_run(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = experiment(num_rounds=3, execution={"tensorboard": True, "checkpoint_every": 3})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "run", observers=[StopAfter(2)])
    resume_run(tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    logged = events.Scalars("train_loss")
    assert [event.step for event in logged] == [0, 1, 2]
    losses = RunFolder(tmp_path / "run").table()["train_loss"]
    assert [event.value for event in logged] == pytest.approx(losses.tolist(), rel=1e-6)  # float32
