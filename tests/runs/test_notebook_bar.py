"""The bar of a notebook: what it shows after each round, and where it is chosen."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fedwave import load_experiment, resume_run, run_experiment
from fedwave.runs import notebook_bar
from fedwave.runs.notebook_bar import in_notebook

SETTINGS = ["num_rounds=3", "model.kind=softmax", "partition.num_devices=8", "selection.num_selected=2"]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook would show, in the order of its updates."""
    found: list[str] = []

    def display(text: str, **options: Any) -> Any:
        assert options == {"display_id": True}
        found.append(text)
        return SimpleNamespace(update=found.append)

    monkeypatch.setattr(notebook_bar, "_display", display)
    monkeypatch.setattr(notebook_bar, "_html", str)
    monkeypatch.setattr(notebook_bar, "in_notebook", lambda: True)
    return found


def test_it_counts_the_rounds_and_says_the_metric(shown, tmp_path):
    experiment = load_experiment("digits/nufm", [*SETTINGS, 'name="a <b>"'])
    result = run_experiment(experiment, tmp_path / "run", progress=True)
    assert shown[0] == '<progress value="0" max="3"></progress> a &lt;b&gt;: round 0 of 3 '
    assert [text.split('"')[1] for text in shown] == ["0", "1", "2", "3"]
    accuracy = result.summary["final"]["heldout_accuracy"]
    assert shown[-1].endswith(f"round 3 of 3 accuracy {accuracy:.1%}")


def test_without_being_asked_for_there_is_none(shown, tmp_path):
    run_experiment(load_experiment("digits/nufm", SETTINGS), tmp_path / "run")
    assert shown == []


def test_outside_of_a_notebook_it_goes_to_standard_error(tmp_path, capsys):
    run_experiment(load_experiment("digits/nufm", SETTINGS), tmp_path / "run", progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert "round 3 of 3" in said.err


def test_a_bar_moves_no_bit_and_the_run_can_be_resumed(shown, tmp_path):
    experiment = load_experiment("digits/nufm", SETTINGS)
    for name, progress in (("with", True), ("without", False)):
        run_experiment(experiment, tmp_path / name, progress=progress)
    with_bar, without = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("with", "without"))
    assert with_bar == without
    assert resume_run(tmp_path / "with").stopped is None


@pytest.mark.parametrize(
    ("shell", "expected"), [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)]
)
def test_only_a_kernel_is_a_notebook(monkeypatch, shell, expected):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook() is expected


def test_without_ipython_it_is_none(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
