"""The short examples run as they stand. The demo is longer and has `make demo`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["own_data_and_model"])
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(name, None)
    __import__(name)
    sys.modules[name].main()
    assert "held-out accuracy" in capsys.readouterr().out


def test_every_example_is_named_here_or_is_the_demo() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"demo", "own_data_and_model"}
    assert callable(runpy.run_path(str(EXAMPLES / "demo.py"))["main"])
