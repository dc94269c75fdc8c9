"""`fedwave compare` and `fedwave report` on runs that are written by hand."""

from __future__ import annotations

import csv
import io
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
    assert "Δ, ×: difference and ratio to a on the same seeds." in costs
    assert costs.splitlines()[-1] == f"Picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_of_runs_means_all_of_them(tmp_path: Path, folders: list[str]) -> None:
    words = ["compare", str(tmp_path), "--format", "csv"]
    done = CliRunner().invoke(app, [*words, "--baseline", "b"])
    base = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["run"], row["baseline"]) for row in base] == [("a", "b"), ("b", "b")]
    assert float(base[0]["heldout_accuracy_difference"]) == pytest.approx(-0.2)
    page = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(page)]).exit_code == 0
    assert "2 runs" in page.read_text(encoding="utf-8")
    assert len(folders) == 2


@pytest.mark.parametrize(
    ("form", "begins"), [("latex", "% \\usepackage{booktabs}"), ("markdown", "| run |"), ("json", "{")]
)
def test_a_table_for_a_paper_is_all_that_is_printed(
    tmp_path: Path, folders: list[str], monkeypatch: pytest.MonkeyPatch, form: str, begins: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["compare", *folders, "--format", form])
    assert done.exit_code == 0
    assert done.stdout.startswith(begins)
    assert not (tmp_path / "comparison.png").exists()


def test_a_figure_for_a_paper_has_its_axes_and_width(tmp_path: Path, folders: list[str]) -> None:
    figure = tmp_path / "figure.svg"
    words = ["--style", "paper", "--width", "column", "--by", "joules", "--metric", "accuracy"]
    done = CliRunner().invoke(app, ["compare", *folders, "--plot", str(figure), *words])
    assert done.exit_code == 0, done.output
    assert 'width="252pt"' in figure.read_text()  # 3.5 inches of 72 points
    assert figure.read_text().count('id="axes_') == 1


def test_an_unknown_format_is_one_line(folders: list[str]) -> None:
    done = CliRunner().invoke(app, ["compare", *folders, "--format", "latx"])
    assert str(done.exception) == 'there is no format "latx". Did you mean "latex"?'


def test_runs_are_listed_with_how_far_they_are(tmp_path: Path, folders: list[str]) -> None:
    (Path(folders[1]) / "rounds.csv").write_text("what\n")
    done = CliRunner().invoke(app, ["runs", str(tmp_path)])
    assert done.exit_code == 0
    header, row, fault = done.stdout.splitlines()
    assert header.split() == ["folder", "seed", "rounds", "finished", "held", "out", "run"]
    assert row.split() == [folders[0], "0", "2", "of", "50", "no", "40.0%", "a"]
    assert fault.startswith("Cannot be read: ")


def test_a_report_of_runs_is_one_page(tmp_path: Path, folders: list[str]) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", *folders, "--out", str(page)])
    assert (done.exit_code, done.stdout) == (0, f"Report: {page}\n")
    assert "<title>fedwave: a, b</title>" in page.read_text(encoding="utf-8")
