"""Which runs lie in a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.listing import is_finished, list_runs, read_runs, run_folders
from tests.runs.written_runs import write_run


def test_a_folder_of_runs_is_all_of_its_runs_by_number_and_each_once(tmp_path: Path) -> None:
    for name in ("seed10", "seed2", "study/deep/run", ".hidden"):
        write_run(tmp_path / "runs" / name, "a", [0.5], seed=len(name))
    (tmp_path / "runs" / "notes").mkdir()
    folder = tmp_path / "runs"
    found = run_folders([folder / "seed10", folder])
    assert [path.relative_to(folder).as_posix() for path in found] == ["seed10", "seed2", "study/deep/run"]
    assert [path.name for path in run_folders([folder])] == ["seed2", "seed10", "run"]
    assert [run.path for run in read_runs([str(folder)])] == run_folders([folder])


def test_a_folder_too_deep_is_not_looked_into(tmp_path: Path) -> None:
    write_run(tmp_path / "a/b/c", "a", [0.5])
    write_run(tmp_path / "a/b/d/e", "a", [0.5])
    assert [path.name for path in run_folders([tmp_path])] == ["c"]


def test_no_run_at_all_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"empty is not a run folder, and there is none in it\. Give"):
        run_folders([tmp_path / "empty"])
    with pytest.raises(RunError, match=r"there is no folder .*missing here\. `fedwave run"):
        read_runs([tmp_path / "missing"])


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    with pytest.raises(RunError, match="cannot look into"):
        run_folders([tmp_path])


@pytest.mark.parametrize(("summary", "expected"), [(None, "no"), (1, "no"), (2, "ended early"), (50, "no")])
def test_a_run_is_finished_with_its_summary(tmp_path: Path, summary: int | None, expected: str) -> None:
    run = write_run(tmp_path / "a", "a", [0.5, 0.6])  # 2 of 50 rounds
    if summary is not None:
        (run.path / "summary.json").write_text(json.dumps({"num_rounds": summary}))
    assert is_finished(run) == expected


def test_all_rounds_are_the_end(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "a", [0.5] * 50)
    assert is_finished(run) == "no"  # killed before it wrote what it came to
    (run.path / "summary.json").write_text(json.dumps({"num_rounds": 50}))
    assert is_finished(run) == "yes"


def test_a_run_that_cannot_be_read_spoils_no_list(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "a", [0.5])
    write_run(tmp_path / "b", "b", [0.5])
    (tmp_path / "b" / "rounds.csv").write_text("what\n")
    first, second = list_runs(tmp_path)
    assert first.run is not None
    assert second.run is None
    assert "rounds.csv" in second.fault


def test_a_run_that_never_began_spoils_no_comparison(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_run(tmp_path / "a", "a", [0.5])
    write_run(tmp_path / "b", "b", [0.5])
    (tmp_path / "b" / "rounds.csv").unlink()
    assert [run.path.name for run in read_runs([tmp_path])] == ["a"]
    assert caplog.messages == [f"{tmp_path / 'b'} has no round yet: it is left out."]
    with pytest.raises(RunError, match=r"b has no round yet\. Let the run finish one first\.$"):
        read_runs([tmp_path / "a", tmp_path / "b"])  # who names it wants it
    (tmp_path / "a" / "rounds.csv").unlink()
    with pytest.raises(RunError, match="no run in .* has a round yet"):
        read_runs([tmp_path])
