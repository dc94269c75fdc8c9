"""`fedwave compare` and `fedwave report` on runs that are written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from tests.runs.written_runs import write_run


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    values = {"a": [0.2, 0.4], "b": [0.3, 0.6]}
    return [str(write_run(tmp_path / name, name, own, over_cell=True).path) for name, own in values.items()]


def test_runs_are_compared_in_tables_and_a_picture(tmp_path: Path, folders: list[str]) -> None:
    picture = tmp_path / "both.png"
    words = ["compare", *folders, "--plot", str(picture), "--target", "0.35"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    final, costs = done.stdout.split("\n\n", 1)
    assert [line.split()[0] for line in final.splitlines()] == ["run", "a", "b"]
    assert "rounds to 35%" in costs
    assert costs.splitlines()[-1] == f"Picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_report_of_runs_is_one_page(tmp_path: Path, folders: list[str]) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", *folders, "--out", str(page)])
    assert (done.exit_code, done.stdout) == (0, f"Report: {page}\n")
    assert "<title>fedwave: a, b</title>" in page.read_text(encoding="utf-8")
