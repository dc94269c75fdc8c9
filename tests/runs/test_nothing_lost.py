"""Nothing is overwritten or mixed up in silence: what is refused, in which words; and no file changes."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fedwave.data import dataset_from_arrays
from fedwave.errors import RunError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.compare import group_by_name
from fedwave.runs.lock import locked
from fedwave.runs.provenance import processor
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, StopAfter, contents, experiment, results
from tests.runs.written_runs import write_run

TINY: dict[str, Any] = {
    "data": {"dataset": {"shape": [6]}},
    "model": {"kind": "softmax"},
    "num_rounds": 4,
}


def tiny(**changes: Any) -> Any:
    return experiment(**{**TINY, **changes})


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file in a folder but its lock, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment(tiny(), tmp_path_factory.mktemp("run") / "whole").path


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A run that was stopped after two of its four rounds."""
    return run_experiment(tiny(), tmp_path / "cut", observers=[AskToStopAfter(2)]).path


# 1, 2: where a run may start ------------------------------------------------------------------------------


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


def test_a_run_starts_in_an_empty_folder(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert contents(run_experiment(tiny(), tmp_path / "empty").path) == contents(whole)


def test_a_new_run_never_goes_on_from_an_old_checkpoint(cut: Path) -> None:
    (cut / "config.toml").unlink()
    before = files_of(cut)
    with pytest.raises(RunError, match="is not empty, it holds"):
        run_experiment(tiny(seed=1), cut)
    assert files_of(cut) == before


# 3: one writer --------------------------------------------------------------------------------------------


def test_two_writers_are_one_too_many(cut: Path) -> None:
    before = files_of(cut)
    with locked(cut), pytest.raises(RunError, match=r"is being written by process \d+ on .*Wait until it"):
        resume_run(cut)
    assert files_of(cut) == before
    assert resume_run(cut).summary["num_rounds"] == 4  # the lock went with its holder


def test_a_killed_process_does_not_keep_the_lock(cut: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from fedwave.runs.lock import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    source = str(Path(__file__).parents[2] / "src")
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(cut)], stdout=subprocess.PIPE, env={"PYTHONPATH": source}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(RunError, match=f"is being written by process {process.pid} on"):
        resume_run(cut)
    process.kill()
    process.communicate()
    assert resume_run(cut).summary["num_rounds"] == 4


def test_a_disk_without_locks_is_said(
    cut: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    assert resume_run(cut).summary["num_rounds"] == 4
    assert "cannot be locked (No locks available): make sure that no other process writes" in caplog.text


# 4: what may change ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 0", "seed = 1", "seed was 0, is 1"),
        ("meta_lr = 0.02", "meta_lr = 0.2", "algorithm.meta_lr was 0.02, is 0.2"),
        ("num_devices = 12", "num_devices = 16", "partition.num_devices was 12, is 16"),
        ("num_selected = 3", "num_selected = 4", "selection.num_selected was 3, is 4"),
        ('kind = "softmax"', 'kind = "mlp"', "model.kind was 'softmax', is 'mlp'"),
        ("num_steps = 1", "num_steps = 2", "evaluation.num_steps was 1, is 2"),
        ('"float32"', '"bfloat16"', "execution.precision was 'float32', is 'bfloat16'"),
        ("[evaluation]", '[cell]\npreset = "paper"\n\n[evaluation]', "cell.bandwidth_hz was None, is 1.0"),
    ],
)
def test_settings_that_make_the_run_may_not_change(cut: Path, old: str, new: str, said: str) -> None:
    edit(cut / "config.toml", old, new)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert "config.toml is not what the run was started with: " in str(caught.value)
    assert said in str(caught.value)
    assert "Only name, num_rounds, execution, evaluation.every may change" in str(caught.value)
    assert files_of(cut) == before


def test_many_changes_are_counted(cut: Path) -> None:
    for old, new in (("seed = 0", "seed = 1"), ("num_devices = 12", "num_devices = 16")):
        edit(cut / "config.toml", old, new)
    for old, new in (("meta_lr = 0.02", "meta_lr = 1.0"), ("num_steps = 1", "num_steps = 2")):
        edit(cut / "config.toml", old, new)
    with pytest.raises(RunError, match="and 1 more. Only name"):
        resume_run(cut)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "small"', 'name = "other"'),
        ("num_rounds = 4", "num_rounds = 5"),
        ("workers = 0", "workers = 2"),
        ("checkpoint_every = 1", "checkpoint_every = 3"),
        ("every = 1", "every = 2"),
    ],
)
def test_settings_that_do_not_make_the_run_may_change(cut: Path, old: str, new: str) -> None:
    edit(cut / "config.toml", old, new)
    assert resume_run(cut).stopped is None


def test_more_rounds_are_as_if_they_had_been_asked_for_at_once(cut: Path, tmp_path: Path) -> None:
    edit(cut / "config.toml", "num_rounds = 4", "num_rounds = 6")
    longer = run_experiment(tiny(num_rounds=6), tmp_path / "longer").path
    assert results(resume_run(cut).path) == results(longer)


def test_fewer_rounds_than_were_done_are_refused(cut: Path) -> None:
    edit(cut / "config.toml", "num_rounds = 4", "num_rounds = 1")
    before = files_of(cut)
    with pytest.raises(
        RunError, match="stands before round 2, but the run has 1 rounds. num_rounds may only"
    ):
        resume_run(cut)
    assert files_of(cut) == before


def test_a_changed_fleet_file_is_refused(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("max_power_w\n" + "0.2\n" * 6)
    settings = tiny(
        cell={"preset": "paper", "num_blocks": 2, "fleet": {"path": str(fleet)}},
        selection={"num_selected": 2},
    )
    path = run_experiment(settings, tmp_path / "run", observers=[AskToStopAfter(1)]).path
    fleet.write_text("max_power_w\n" + "0.3\n" * 6)
    with pytest.raises(RunError, match=r"was started with another file cell\.fleet\.path: fingerprint"):
        resume_run(path)
    fleet.unlink()
    with pytest.raises(RunError, match=r"cannot read .*fleet\.csv: No such file"):
        resume_run(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"versions": {"torch": "1.0"}}, "was started with torch 1.0, now"),
        ({"versions": []}, "was started with torch None, now"),
        ({"torch_device": "cuda:0"}, "was started on cuda:0, now cpu: its bits may differ"),
        ({"processor": "Z80"}, "was started on a processor Z80, now"),
    ],
)
def test_another_version_or_device_is_said(
    cut: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any], said: str
) -> None:
    file = cut / "environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    resume_run(cut)
    assert said in caplog.text


def test_the_kind_of_processor_tells_two_makes_apart(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    text = (
        "processor: 0\nmodel name\t: Fast One\ncpu family\t: {}\nmodel\t\t: 1\n\nprocessor: 1\nmodel\t: 9\n"
    )
    described.write_text(text.format(25))
    assert processor(described) == "Fast One, family 25, model 1"
    described.write_text(text.format(6))
    assert processor(described) == "Fast One, family 6, model 1"
    assert processor(tmp_path / "absent") == (platform.processor() or platform.machine())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "it holds a list, not a table"),
        ("{}", "does not say what its run was started with"),
        ("{", "cannot read"),
        ("[" * 100_000, "cannot read"),
        ("\x00", "cannot read"),
        ('{"settings": {}}', "is not what the run was started with"),
        ('{"settings": []}', "environment.json has no settings"),
    ],
)
def test_a_damaged_environment_file_is_one_line(cut: Path, content: str, said: str) -> None:
    (cut / "environment.json").write_text(content)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert files_of(cut) == before


# 5: tables ------------------------------------------------------------------------------------------------


def drop_last_line(text: str) -> str:
    return "".join(text.splitlines(keepends=True)[:-1])


def cut_last_line(text: str) -> str:
    return text[:-5]


def as_a_spreadsheet(text: str) -> str:
    return "\ufeff" + text.replace(",", ";")


@pytest.mark.parametrize("table", ["rounds.csv", "devices.csv", "heldout.csv"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (drop_last_line, "rows of round 1, which the checkpoint contains"),
        (cut_last_line, "rows of round 1, which the checkpoint contains"),
        (as_a_spreadsheet, "is not as the run wrote it (it begins with"),
        (lambda text: "", "is not as the run wrote it"),
        (lambda text: text.replace("\n", "\r\n"), "is not as the run wrote it"),
        (None, "is gone"),
    ],
)
def test_a_table_that_lacks_rows_is_refused_and_can_be_computed_again(
    whole: Path, cut: Path, table: str, damage: Callable[[str], str] | None, said: str
) -> None:
    file = cut / table
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_text()).encode())
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert f"fedwave resume {cut} --from-start" in str(caught.value)
    assert files_of(cut) == before
    assert contents(resume_run(cut, from_start=True).path) == contents(whole)


# 6: comparisons -------------------------------------------------------------------------------------------


def test_one_run_given_twice_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.5])
    with pytest.raises(RunError, match="are the same run .seed 0.: it would count as two seeds"):
        group_by_name([run, run])
    with pytest.raises(RunError, match="Give each run once"):
        group_by_name([run, write_run(tmp_path / "copy", "a", [0.5])])


def test_runs_of_one_name_and_other_settings_are_told_apart(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", "a", [0.5], seed=0),
        write_run(tmp_path / "b", "a", [0.5], seed=1),
        write_run(tmp_path / "c", "a", [0.5], seed=0),
    ]
    edit(tmp_path / "c" / "config.toml", "meta_lr = 0.001", "meta_lr = 0.5")
    from fedwave.runs.compare import read_run

    groups = group_by_name([*runs[:2], read_run(tmp_path / "c")])
    assert [(name, len(group)) for name, group in groups.items()] == [
        ("a (meta_lr=0.001)", 2),
        ("a (meta_lr=0.5)", 1),
    ]


# 7: arrays from Python ------------------------------------------------------------------------------------


def test_a_run_on_arrays_does_not_pretend_to_have_used_a_dataset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = dataset_from_arrays(rng.normal(size=(400, 6)), rng.integers(0, 3, 400), name="mine")
    result = run_experiment(tiny(), tmp_path / "own", dataset=data, observers=[AskToStopAfter(1)])
    recorded = json.loads((result.path / "environment.json").read_text())
    assert recorded["dataset"] == "mine"
    assert recorded["dataset_fingerprint"] == data.fingerprint()
    settings = load_experiment(result.path / "config.toml")
    assert settings.data.dataset.kind == "passed-from-python"
    for call in (
        lambda: run_experiment(settings, tmp_path / "again"),
        lambda: resume_run(result.path),
    ):
        with pytest.raises(Exception, match="passed from Python|passed-from-python") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "again").exists()
    assert resume_run(result.path, dataset=data).stopped is None


# Checkpoints that are not of this run ---------------------------------------------------------------------


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Write the checkpoint anew, with its own name, after a change."""
    from safetensors import safe_open

    path = folder / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata)


def change_next_round(folder: Path, next_round: object) -> None:
    from safetensors import safe_open

    path = folder / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["run"])
    save_file(load_file(path), path, {"run": json.dumps(about | {"next_round": next_round})})


WEIGHT = "parameters.linear1.weight"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop(WEIGHT), f"it lacks {WEIGHT}"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT].double()}), "as torch.float64 of shape"),
        (lambda tensors: tensors.update({WEIGHT: tensors[WEIGHT][:1]}), "as torch.float32 of shape"),
        (lambda tensors: tensors[WEIGHT].fill_(float("nan")), "that are not finite"),
        (lambda tensors: tensors.update({"parameters.x": torch.zeros(1)}), "holds parameters.x, which the"),
        (lambda tensors: tensors.update({"stranger": torch.zeros(1)}), "which is no part of a state"),
        (lambda tensors: tensors.update({"ledger.elapsed_s": torch.zeros(1)}), "checkpoint"),
        (lambda tensors: tensors.update({"planner.x": torch.zeros(1, dtype=torch.bfloat16)}), "checkpoint"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    cut: Path, change: Callable[[dict[str, torch.Tensor]], None], said: str
) -> None:
    change_tensors(cut, change)
    before = files_of(cut)
    with pytest.raises(RunError) as caught:
        resume_run(cut)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert files_of(cut) == before


@pytest.mark.parametrize("next_round", [-1, 99, 5, 10**30, "2", 2.0, None, True, [2]])
def test_a_checkpoint_of_a_round_that_cannot_be_is_refused(cut: Path, next_round: object) -> None:
    change_next_round(cut, next_round)
    before = files_of(cut)
    with pytest.raises(RunError, match=r"num_rounds may only grow|does not say which run and round"):
        resume_run(cut)
    assert files_of(cut) == before


def test_the_checkpoint_of_another_run_is_refused(cut: Path, tmp_path: Path) -> None:
    other = run_experiment(tiny(seed=5), tmp_path / "other", observers=[AskToStopAfter(1)]).path
    (cut / "checkpoint.safetensors").write_bytes((other / "checkpoint.safetensors").read_bytes())
    before = files_of(cut)
    with pytest.raises(RunError, match="belongs to another run. Restore the right one, or compute"):
        resume_run(cut)
    assert files_of(cut) == before


def test_a_checkpoint_that_is_gone_means_from_the_start(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(tiny(), tmp_path / "cut", observers=[StopAfter(2)])
    (tmp_path / "cut" / "checkpoint.safetensors").unlink()
    assert contents(resume_run(tmp_path / "cut").path) == contents(whole)


# 10: warnings ---------------------------------------------------------------------------------------------


def test_warnings_of_units_reach_python_and_the_summary(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cell = {"preset": "umi-3.5ghz", "num_blocks": 2, "fleet": {"max_power_w": 23.0}}
    settings = tiny(cell=cell, num_rounds=1, selection={"num_selected": "auto"})
    said = build_simulation(settings).warnings
    assert any("23" in warning for warning in said)
    result = run_experiment(settings, tmp_path / "run")
    assert result.summary["warnings"] == list(said)
    assert all(warning in caplog.text for warning in said)
