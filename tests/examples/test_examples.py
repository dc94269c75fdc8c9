"""The short examples run as they stand. The demo is longer and has `make demo`."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_own_data_and_model_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name = "own_data_and_model"
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(name, None)
    __import__(name)
    sys.modules[name].main()
    assert "held-out accuracy" in capsys.readouterr().out


def test_own_server_runs_with_numpy_and_scipy_alone() -> None:
    source = Path(__file__).parents[2] / "src"
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(source)!r}); "
        f"runpy.run_path({str(EXAMPLES / 'own_server.py')!r}, run_name='__main__'); "
        "print([name for name in ('torch', 'pydantic', 'fedwave.simulation') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    *plans, loaded = done.stdout.splitlines()
    assert sum("uploads on block" in line for line in plans) == 12  # four blocks in each of three rounds
    assert sum("optimal, the round takes" in line for line in plans) == 3
    assert loaded == "[]"


def test_every_example_is_named_here_or_is_the_demo() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"demo", "own_data_and_model", "own_server"}
    assert callable(runpy.run_path(str(EXAMPLES / "demo.py"))["main"])
