"""Runs in a notebook: frames hold what the tables hold, names stay text, pictures are pictures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fedwave import draw_runs, read_run, run_experiment
from fedwave.errors import ConfigError, MissingExtraError, RunError
from fedwave.runs import notebook
from fedwave.runs.notebook import to_frame
from fedwave.runs.run import RunResult
from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS, read_table
from tests.experiments.cell_tables import PAPER_CELL, experiment

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("notebook") / "run"
    return run_experiment(experiment(PAPER_CELL, num_rounds=2, name="<b>mine</b> & yours"), folder)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("table", [ROUNDS, DEVICES, HELDOUT])
def test_a_frame_holds_the_table(result: RunResult, library: str, table: str) -> None:
    frame = result.frame(table, library=library)  # type: ignore[arg-type]
    assert type(frame).__module__.split(".")[0] == library
    columns = read_table(result.path / table)
    assert list(frame.columns) == list(columns)
    for name, values in columns.items():
        if isinstance(values, list):
            assert [list(value) for value in frame[name]] == [list(value) for value in values]
        else:
            assert_array_equal(np.asarray(frame[name]), values)
            assert np.asarray(frame[name]).dtype == values.dtype


def test_a_run_that_ended_and_one_that_is_read_have_the_same_frames(result: RunResult) -> None:
    read = read_run(result.path)
    for name in ("rounds", "devices", "heldout"):
        assert getattr(result, name).equals(getattr(read, name))
    tables = {"rounds": ROUNDS, "devices": DEVICES, "heldout": HELDOUT}
    for name, table in tables.items():
        assert list(getattr(result, name).columns) == list(read_table(result.path / table))
    assert len(result.rounds) == 2
    assert set(result.devices["round"]) == {0, 1}


def test_without_pandas_polars_is_taken(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(notebook, "find_spec", lambda name: None if name == "pandas" else real(name))
    assert type(result.rounds).__module__.startswith("polars")


def test_without_either_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'A table as a frame needs pandas.*"fedwave\[frames\]"'):
        to_frame({"round": np.arange(2)})


def test_another_library_is_refused() -> None:
    with pytest.raises(ConfigError, match='There is no library "panda" here. Did you mean "pandas"'):
        to_frame({"round": np.arange(2)}, library="panda")  # type: ignore[arg-type]


def test_a_run_shows_its_figures_as_html_and_its_name_as_text(result: RunResult) -> None:
    for run in (result, read_run(result.path)):
        text = run._repr_html_()
        assert f"&lt;b&gt;mine&lt;/b&gt; &amp; yours, seed {result.summary['seed']}" in text
        assert "<b>" not in text
        assert f"{result.summary['final']['heldout_accuracy']:.4g}" in text
        assert f"{result.summary['cell']['energy_j']:.4g}" in text


def test_a_stopped_run_says_why(result: RunResult) -> None:
    assert "enough" in RunResult(result.path, result.summary, "enough")._repr_html_()
    assert "stopped" not in result._repr_html_()


def test_plot_is_a_picture_that_can_be_saved(result: RunResult, tmp_path: Path) -> None:
    picture = result.plot()
    assert picture._repr_png_().startswith(PNG)
    assert picture.save(tmp_path / "run.png").read_bytes().startswith(PNG)
    assert len(picture.figure.axes) == 6  # loss and accuracy, against rounds, seconds and joules
    assert draw_runs([read_run(result.path)])._repr_png_() == result.plot()._repr_png_()


def test_drawing_leaves_the_notebooks_own_way_of_showing_figures_alone(result: RunResult) -> None:
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("svg")
    result.plot()
    assert matplotlib.get_backend().lower() == "svg"
    assert pyplot.get_fignums() == []


def test_a_run_without_an_evaluation_has_no_heldout_table(tmp_path: Path) -> None:
    done = run_experiment(experiment(num_rounds=1), tmp_path / "run")
    (tmp_path / "run" / HELDOUT).unlink()
    with pytest.raises(RunError, match=r"cannot read .*heldout\.csv"):
        _ = done.heldout
