"""Whatever is done to the files of a run: one line, or the right answer; never another result or a hang."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.cli.run_tables import cost_table, final_table
from fedwave.explore.api import Api
from fedwave.explore.run_view import RunView
from fedwave.explore.workbench import Workbench
from fedwave.pages.runs_page import runs_page
from fedwave.plots.runs import plot_runs
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.kept_runs import KeptRuns
from fedwave.runs.run import resume_run, run_experiment
from tests.fuzzing import answers, damaged, flipped, mutated, tries
from tests.runs.small_runs import AskToStopAfter, experiment, results

TABLES = ["rounds.csv", "devices.csv", "heldout.csv"]
FILES = [*TABLES, "checkpoint.safetensors", "environment.json", "config.toml"]
SETTINGS: dict[str, Any] = {
    "data": {"dataset": {"shape": [6]}},
    "model": {"kind": "softmax"},
    "num_rounds": 3,
    "cell": {"preset": "paper", "num_blocks": 2, "method": "greedy"},
    "selection": {"num_selected": 2},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after two rounds, another seed's, and one that went on to the end."""
    folder = tmp_path_factory.mktemp("made")
    for seed, name in ((0, "cut"), (1, "other")):
        settings = experiment(**SETTINGS, seed=seed)
        run_experiment(settings, folder / name, observers=[AskToStopAfter(2)])
    run_experiment(experiment(**SETTINGS), folder / "whole")
    return folder


def put(made: Path, folder: Path, name: str, content: bytes | None) -> Path:
    """The stopped run again, with one file of it changed."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made / "cut", folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    return folder


def show(folder: Path) -> None:
    """Whatever reads a run: the comparison, the report, the tables in Python."""
    run = read_run(folder)
    assert isinstance(run, FinishedRun)
    assert run.num_rounds > 0
    final_table([run])
    cost_table([run])
    runs_page([run])
    for table in TABLES:
        run.frame(table, library="polars")


def explore(folder: Path, other: Path) -> None:
    """The explorer lists all runs, whatever is wrong with one of them."""
    bad, good = RunView(folder), RunView(other)
    answer = Api(Workbench.of([]), [bad, good]).run_curves({})["runs"]
    json.dumps(answer, allow_nan=False)
    assert "error" not in answer[1]
    assert answer[1]["num_rounds"] == 2
    for question in (bad.devices, bad.places, lambda: bad.round(1)):
        if answers(lambda question=question: json.dumps(question(), allow_nan=False)):  # type: ignore[misc]
            continue


@pytest.mark.parametrize("examples", [5, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_a_run_folder_with_one_damaged_file(made: Path, tmp_path: Path, name: str, examples: int) -> None:
    others = [(made / "cut" / file).read_bytes() for file in FILES if file != name]
    others += [(made / "other" / name).read_bytes(), (made / "whole" / name).read_bytes()]
    undisturbed = results(made / "whole")

    @tries(examples)
    @given(damaged((made / "cut" / name).read_bytes(), others))
    def check(content: bytes | None) -> None:
        folder = put(made, tmp_path / "run", name, content)
        with np.errstate(all="ignore"):  # extreme numbers are the reader's matter
            answers(lambda: show(folder))
            explore(folder, made / "other")
        # Settings may say that the run has many rounds more.
        went_on = answers(lambda: resume_run(folder, observers=[AskToStopAfter(3)]))
        if went_on and name != "config.toml":
            assert results(folder) == undisturbed

    check()


def test_a_checkpoint_with_any_bit_flipped(made: Path, tmp_path: Path) -> None:
    undisturbed = results(made / "whole")

    @tries(12)
    @given(flipped((made / "cut" / "checkpoint.safetensors").read_bytes()))
    def check(content: bytes) -> None:
        folder = put(made, tmp_path / "run", "checkpoint.safetensors", content)
        if answers(lambda: resume_run(folder)):
            assert results(folder) == undisturbed

    check()


def test_a_table_with_any_bit_flipped_before_the_checkpoint_is_refused(made: Path, tmp_path: Path) -> None:
    @tries(12)
    @given(
        st.sampled_from(TABLES).flatmap(
            lambda name: st.tuples(st.just(name), flipped((made / "cut" / name).read_bytes()))
        )
    )
    def check(file: tuple[str, bytes]) -> None:
        folder = put(made, tmp_path / "run", *file)
        assert not answers(lambda: resume_run(folder))

    check()


def test_any_bytes_after_the_checkpoint_are_cut_off(made: Path, tmp_path: Path) -> None:
    undisturbed = results(made / "whole")

    @tries(4)
    @given(st.sampled_from(TABLES), st.binary(max_size=60) | st.just(b"2,0,1\n2"))
    def check(name: str, added: bytes) -> None:
        folder = put(made, tmp_path / "run", name, (made / "cut" / name).read_bytes() + added)
        assert answers(lambda: resume_run(folder))
        assert results(folder) == undisturbed

    check()


@pytest.mark.slow
def test_a_picture_of_any_numbers(made: Path, tmp_path: Path) -> None:
    @tries(30)
    @given(mutated((made / "cut" / "rounds.csv").read_bytes()))
    def check(content: bytes) -> None:
        folder = put(made, tmp_path / "run", "rounds.csv", content)
        with np.errstate(all="ignore"):
            answers(lambda: plot_runs([read_run(folder)], tmp_path / "picture.png"))

    check()


LINE = {
    "key": "k", "command": "fedwave run", "made_with": {"torch": "2"}, "num_rounds": 2, "seconds": 1.5,
    "num_remembered": 0, "figures": {"loss": 1.0}, "curves": {"heldout_loss": [0.5, None]},
    "probes": {"2": {"one step": {"accuracy": 0.5}}},
}  # fmt: skip
odd = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers() | st.just(10**400)
odd = st.recursive(
    odd, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner)
)


@pytest.mark.parametrize("is_gathered", [False, True])
def test_any_finished_run_of_a_reproduction(tmp_path: Path, is_gathered: bool) -> None:
    changed = st.tuples(st.sampled_from(sorted(LINE)), odd).map(
        lambda one: json.dumps(LINE | {one[0]: one[1]})
    )
    (tmp_path / "runs").mkdir()

    @tries(60)
    @given(mutated(json.dumps(LINE).encode()) | changed.map(str.encode))
    def check(content: bytes) -> None:
        path = tmp_path / "runs.jsonl" if is_gathered else tmp_path / "runs" / "k.json"
        path.write_bytes(content)
        answers(lambda: KeptRuns(tmp_path / "runs").find("k"))
        answers(lambda: KeptRuns(tmp_path / "runs").gather())

    check()
