"""The notebooks: what is opened is what is edited, and each runs in a kernel in little time."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tools.docs.pages import ROOT
from tools.release import repository

# They have an extra of their own, which Flower's environment lacks.
nbclient = pytest.importorskip("nbclient")
from tools.notebooks import built, sources, text  # noqa: E402 - needs jupytext

LONGEST_S = 180  # of one cell, on a busy machine


def by_name(source: Path) -> str:
    return source.stem


def test_there_are_three_of_them():
    assert [source.stem for source in sources()] == ["learning", "paper_in_ten_minutes", "radio"]


@pytest.mark.parametrize("source", sources(), ids=by_name)
def test_what_is_opened_is_what_is_edited(source):
    made = text(built(source))
    assert source.with_suffix(".ipynb").read_text(encoding="utf-8") == made, "run: python -m tools.notebooks"
    assert '"outputs": []' in made


@pytest.mark.parametrize("source", sources(), ids=by_name)
def test_its_badges_open_it_elsewhere(source):
    first = built(source).cells[0]
    slug = repository().removeprefix("https://github.com/")
    opened = re.findall(r"\)\]\((https://[^)]*)\)", first.source)
    assert opened[:2] == [
        f"https://colab.research.google.com/github/{slug}/blob/main/notebooks/{source.stem}.ipynb",
        f"https://mybinder.org/v2/gh/{slug}/main?labpath=notebooks/{source.stem}.ipynb",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("source", sources(), ids=by_name)
def test_it_runs_from_the_first_cell_to_the_last(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = built(source)
    client = nbclient.NotebookClient(
        notebook, timeout=LONGEST_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    shown: list[Any] = [output.data for output in outputs if "data" in output]
    if source.stem == "radio":
        assert sum("image/png" in data for data in shown) == 2
    else:  # a bar that came to its end
        bars = [data["text/html"] for data in shown if "<progress" in data.get("text/html", "")]
        assert bars
        for bar in bars:
            assert re.search(r'value="(\d+)" max="\1"', bar), bar
