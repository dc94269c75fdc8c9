"""A run's folder: where one may start, and a checkpoint that is damaged or gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import (
    StopAfter,
    contents,
    experiment,
    files_of,
    tiny,
)


@pytest.mark.parametrize(
    "name",
    [
        "rounds.csv",
        "devices.csv",
        "heldout.csv",
        "summary.json",
        "environment.json",
        "model.safetensors",
        "checkpoint.safetensors",
        "notes.txt",
        ".hidden",
    ],
)
def test_a_run_does_not_start_in_a_folder_that_holds_anything(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("precious\n")
    with pytest.raises(RunError) as caught:
        run_experiment(tiny(), tmp_path / "mine")
    assert f"is not empty, it holds {name}. A run starts in a new or empty folder" in str(caught.value)
    assert files_of(tmp_path / "mine") == {name: b"precious\n"}


def test_a_run_starts_in_an_empty_folder(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert contents(run_experiment(tiny(), tmp_path / "empty").path) == contents(tiny_run)


def test_a_new_run_never_goes_on_from_an_old_checkpoint(cut: Path) -> None:
    (cut / "config.toml").unlink()
    before = files_of(cut)
    with pytest.raises(RunError, match="is not empty, it holds"):
        run_experiment(tiny(seed=1), cut)
    assert files_of(cut) == before


def test_a_checkpoint_that_is_gone_means_from_the_start(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(tiny(), tmp_path / "cut", observers=[StopAfter(2)])
    (tmp_path / "cut" / "checkpoint.safetensors").unlink()
    assert contents(resume_run(tmp_path / "cut").path) == contents(tiny_run)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = run_experiment(experiment(num_rounds=1), tmp_path / "run").path
    (path / "checkpoint.safetensors").write_bytes(b"not tensors")
    with pytest.raises(RunError, match="the checkpoint .* cannot be read"):
        resume_run(path)
