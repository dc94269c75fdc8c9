"""The short examples run as they stand. The demo is longer and has `make demo`."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedwave import read_run
from fedwave.experiments import preset_names
from fedwave.wireless.settings.presets import CELL_PRESETS

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


def test_every_example_is_run_by_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "demo",
        "own_data_and_model",
        "own_server",
        "plain_nufm",  # in a file of its own
    }


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("demo", None)
    return importlib.import_module("demo")


def test_a_run_of_the_demo_is_as_its_settings_say(demo: Any, tmp_path: Path) -> None:
    changes = ["num_rounds=1", "cell.radio.power_set=measured-x55"]
    run = read_run(demo.run_one("ural", 3, tmp_path, changes))
    assert (run.experiment.name, run.experiment.seed, run.num_rounds) == ("URAL (optimal)", 3, 1)
    assert run.experiment.cell is not None
    assert run.experiment.cell.radio.power_set == "measured-x55"  # what was asked for on the command line
    assert run.experiment.cell.contribution_scale == "normalised"
    assert not run.experiment.cell.normalised  # seconds and joules, not the paper's numbers without units


def test_the_demo_says_what_the_same_accuracy_cost_the_others(demo: Any) -> None:
    from tests.runs.paid_runs import OURS, THEIRS, paid_runs

    text = demo.in_words([*paid_runs("URAL", OURS), *paid_runs("Greedy", THEIRS)])
    assert text.splitlines() == [
        "Until 80%, the best that all 8 runs reach, on the same seeds (95 %):",
        "  Greedy: 4.0 × (0.71–22) the seconds, 1.0 × (1.0–1.0) the joules of URAL",
    ]


def test_what_the_demo_prints_fits_80_columns(demo: Any) -> None:
    for text in (demo.INTRODUCTION.replace("[bold]", "").replace("[/bold]", ""), demo.NEXT):
        assert max(map(len, text.splitlines())) <= 80
    tried = re.findall(r"^  fedwave (\w+) (\S+)", demo.NEXT, re.MULTILINE)
    assert len(tried) == 3
    assert dict(tried)["run"] in preset_names()
    assert dict(tried)["cell"] in CELL_PRESETS


@pytest.mark.slow
def test_the_demo_runs_from_start_to_end(tmp_path: Path) -> None:
    """Two seeds of two rounds, in processes of their own, as `make demo` has them."""
    code = (
        f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
        "import demo\n"
        "demo.SEEDS = range(2)\n"
        "if __name__ == '__main__':\n    demo.main()\n"
    )
    (tmp_path / "short.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "short.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "Try next" in done.stdout
    assert (tmp_path / "demo" / "comparison.png").exists()
    assert len(list((tmp_path / "demo").glob("*-seed*"))) == 10  # five schemes
