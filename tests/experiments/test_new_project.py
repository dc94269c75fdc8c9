"""`fedwave new`: what it writes runs as it stands, and nothing is written over."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment, write_project
from fedwave.experiments.new_project import CELL_FILES, FILES
from fedwave.runs.run import run_experiment
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.settings.presets import preset_text


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "my project"
    assert [path.name for path in write_project(folder)] == list(FILES)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("my_model", None)
    return folder


def test_the_experiment_runs_with_its_own_model_and_cell(project: Path) -> None:
    experiment = load_experiment("experiment.toml", ["num_rounds=2"])
    assert experiment.cell is not None
    assert (experiment.cell.num_blocks, experiment.cell.description) == (10, "my street cell")
    summary = run_experiment(experiment, project / "runs" / "first").summary
    assert summary["scheme"] == "ural"
    assert summary["num_parameters"] == 8 * 9 + 8 + 2 * 8 + 10 * 8 * 64 + 10
    assert summary["cell"]["model_bits"] == 32 * summary["num_parameters"]
    # The number that cell.toml's comment gives to `fedwave cell`.
    assert f"--model-bits {summary['cell']['model_bits']:.0f} " in (project / "cell.toml").read_text()
    sys.modules.pop("my_model", None)


def test_the_experiment_runs_from_elsewhere_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    assert (
        load_experiment("my project/experiment.toml").cell
        == load_experiment(project / "experiment.toml").cell
    )


def test_the_cell_can_be_looked_at_by_itself(project: Path) -> None:
    assert load_cell("cell.toml", num_devices=30).num_blocks == 10


def test_every_setting_has_a_comment(project: Path) -> None:
    for name in ("experiment.toml", "cell.toml"):
        for line in (project / name).read_text().splitlines():
            if re.match(r"\w+ = ", line) and "description" not in line and "num_rounds" not in line:
                assert "#" in line or "placement" in line, line


def test_commands_of_the_readme_load(project: Path) -> None:
    text = (project / "README.md").read_text()
    for words in re.findall(r"fedwave run experiment\.toml(.*)", text):
        load_experiment("experiment.toml", re.findall(r"-s (\S+)", words))


def test_the_readme_of_a_cell_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path.name for path in write_project(tmp_path / "cell", cell=True)] == list(CELL_FILES)
    monkeypatch.chdir(tmp_path / "cell")
    text = Path("README.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for line in script.splitlines():
        done = CliRunner().invoke(app, line.split()[1:], catch_exceptions=False)
        assert done.exit_code == 0, line
    assert Path("problem.toml").is_file()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    cell = load_cell("cell.toml")
    assert (cell.num_devices, cell.num_blocks) == (12, 4)


@pytest.mark.slow
def test_the_readme_runs_as_it_is_written(project: Path) -> None:
    """Its commands in a shell, one round each, and its Python after them."""
    text = (project / "README.md").read_text()
    settings = (project / "experiment.toml").read_text()
    (project / "experiment.toml").write_text(settings.replace("num_rounds = 20", "num_rounds = 1"))
    (project / "bin").mkdir()
    command = project / "bin" / "fedwave"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fedwave "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    done = subprocess.run(
        ["bash", "-euc", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    reached = [line for line in done.stdout.splitlines() if line.split()[-3:] == ["3", "of", "3"]]
    assert sorted(line.split()[0] for line in reached) == ["NUFM-Greedy", "Threshold", "URAL"]
    assert "difference and ratio to URAL (optimal) on the same seeds" in done.stdout
    assert "warning" not in done.stderr
    assert len(list(project.glob("runs/*/summary.json"))) == 1
    assert len(list(project.glob("study/*/summary.json"))) == 9
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    subprocess.run([sys.executable, "-c", code], check=True, env={**environment, "MPLBACKEND": "agg"})
    assert (project / "runs" / "from-python" / "summary.json").is_file()


@pytest.mark.parametrize("taken", ["a file", "a folder with a file", "a project"])
def test_nothing_is_written_over(tmp_path: Path, taken: str) -> None:
    target = tmp_path / "there"
    if taken == "a file":
        target.write_text("mine")
    elif taken == "a folder with a file":
        target.mkdir()
        (target / "mine.txt").write_text("mine")
    else:
        write_project(target)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=r"there is (a file|not empty)\. Choose a new or empty folder"):
        write_project(target)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    write_project(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Choose another folder") as error:
        write_project(tmp_path / "file" / "project")
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="Choose another folder"):
        write_project(tmp_path / ("x" * 300))
    with pytest.raises(TypeError, match="the folder must be of type"):
        write_project(3)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# A cell file in an experiment -----------------------------------------------------------------------------


def test_a_cell_file_stands_for_its_keys(tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text('preset = "umi-3.5ghz"\nnum_blocks = 7\n')
    (tmp_path / "run.toml").write_text(
        'extends = "digits/ural"\n[cell]\npreset = "cell.toml"\ndelay_weight = 3.0\n'
    )
    (tmp_path / "spelt.toml").write_text(
        'extends = "digits/ural"\n[cell]\npreset = "umi-3.5ghz"\nnum_blocks = 7\ndelay_weight = 3.0\n'
    )
    found, spelt = load_experiment(tmp_path / "run.toml").cell, load_experiment(tmp_path / "spelt.toml").cell
    assert found is not None
    assert spelt is not None
    assert found.num_blocks == 10  # digits/ural says so, above whatever cell lies underneath
    assert found.preset is None  # the file may go: its keys are in the run folder
    assert spelt.model_copy(update={"preset": None, "num_blocks": 10}) == found


def test_a_whole_cell_file_leaves_nothing_of_an_earlier_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """digits/ural has the paper's normalised cell below; nothing of it may shine through."""
    monkeypatch.chdir(tmp_path)
    source = load_experiment("digits/ural", ["cell.preset=chen2020"])
    assert source.cell is not None
    Path("mine.toml").write_text(preset_text("chen2020"))
    found = load_experiment("digits/ural", ["cell.preset=mine.toml"]).cell
    assert found is not None
    assert not found.normalised
    assert found.model_copy(update={"preset": None}) == source.cell.model_copy(update={"preset": None})


def test_what_the_experiment_says_beats_the_cell_file(tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text('preset = "paper"\nnum_blocks = 7\n')
    (tmp_path / "run.toml").write_text(
        'extends = "digits/ural"\n[cell]\npreset = "cell.toml"\nnum_blocks = 5\n'
    )
    found = load_experiment(tmp_path / "run.toml", ["cell.bandwidth_hz=2.0"]).cell
    assert found is not None
    assert (found.num_blocks, found.bandwidth_hz) == (5, 2.0)


def test_a_cell_file_does_not_start_from_another(tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text('preset = "cell.toml"\n')
    with pytest.raises(ConfigError, match=r"starts from a named preset, got the file .*cell\.toml"):
        load_cell(tmp_path / "cell.toml", num_devices=3)
    with pytest.raises(ConfigError, match="starts from a named preset"):
        load_experiment("digits/ural", [f"cell.preset={tmp_path / 'cell.toml'}"])


def test_a_missing_cell_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"cell file .*nowhere\.toml"):
        load_experiment("digits/ural", ["cell.preset=nowhere.toml"])


def test_a_run_over_a_cell_file_resumes_without_it(project: Path) -> None:
    from fedwave.runs.run import resume_run

    run_experiment(load_experiment("experiment.toml", ["num_rounds=1"]), "runs/first")
    Path("cell.toml").unlink()
    assert resume_run("runs/first").summary["num_rounds"] == 1
    sys.modules.pop("my_model", None)
