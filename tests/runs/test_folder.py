"""A run's folder: where one may start, and a checkpoint that is damaged or gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from fedwave.server import Plan
from fedwave.simulation.records import RoundRecord
from tests.runs.small_runs import (
    AskToStopAfter,
    StopAfter,
    contents,
    edit,
    experiment,
    files_of,
    results,
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


def test_a_round_with_other_columns_than_those_before_it_is_refused(tmp_path: Path) -> None:
    def round_with(k: int, *names: str) -> RoundRecord:
        nobody = Plan(selected=np.zeros(0, dtype=np.int64))
        columns = {name: np.array([0.5]) for name in names}
        return RoundRecord(k, {"train_loss": 1.0}, np.array([4]), columns, None, nobody)

    folder = RunFolder(tmp_path)
    folder.append(round_with(0, "train_loss", "planner_price_per_j"))
    folder.append(round_with(1, "train_loss", "planner_price_per_j"))
    table = (tmp_path / "devices.csv").read_text()
    assert table == "round,device,train_loss,planner_price_per_j\n0,4,0.5,0.5\n1,4,0.5,0.5\n"
    for again in (folder, RunFolder(tmp_path)):  # also of a run that is gone on with
        with pytest.raises(RunError, match="in earlier rounds: planner_price_per_j, planner_rank changed"):
            again.append(round_with(2, "train_loss", "planner_rank"))
        with pytest.raises(RunError, match="in earlier rounds: their order changed"):
            again.append(round_with(2, "planner_price_per_j", "train_loss"))
    assert (tmp_path / "devices.csv").read_text() == table


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


def test_a_checkpoint_of_an_earlier_round_does_not_fit_rows_that_were_edited_since(cut: Path) -> None:
    edit(cut / "rounds.csv", "\n1,", "\n7,")
    before = files_of(cut)
    with pytest.raises(RunError, match=r"rounds\.csv is not as the run wrote it .*bytes were changed"):
        resume_run(cut)
    assert files_of(cut) == before


@pytest.mark.parametrize("at", [9, 200, -1])
def test_a_checkpoint_with_a_flipped_bit_is_refused_with_a_way_out(
    tiny_run: Path, cut: Path, at: int
) -> None:
    path = cut / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match="the checkpoint .* cannot be read: ") as caught:
        resume_run(cut)
    assert f"fedwave resume {cut} --from-start" in str(caught.value)
    assert contents(resume_run(cut, from_start=True).path) == contents(tiny_run)


def test_rows_after_the_checkpoint_do_not_count(tiny_run: Path, tmp_path: Path) -> None:
    settings = tiny(execution={"checkpoint_every": 3})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    for name in ("rounds.csv", "devices.csv", "heldout.csv"):
        (tmp_path / "cut" / name).write_bytes(b"\0 not even text")
    assert results(resume_run(tmp_path / "cut").path) == results(tiny_run)


def test_a_resumed_run_can_be_resumed_again(tmp_path: Path) -> None:
    path = run_experiment(tiny(), tmp_path / "run", observers=[AskToStopAfter(1)]).path
    resume_run(path, observers=[AskToStopAfter(1)])
    resume_run(path)
    assert results(resume_run(path).path) == results(run_experiment(tiny(), tmp_path / "whole").path)


@pytest.mark.parametrize("lacking", ["name", "seed", "data", "partition", "evaluation", "execution"])
def test_settings_that_were_cut_off_are_not_filled_in(cut: Path, lacking: str) -> None:
    path = cut / "config.toml"
    text = path.read_text()
    at = text.index(f"[{lacking}]") if f"[{lacking}]" in text else text.index(f"{lacking} =")
    path.write_text(text[:at])
    with pytest.raises(RunError, match=r"config\.toml is not as the run wrote it: it lacks \w+\. Restore it"):
        RunFolder.open(cut).experiment()
