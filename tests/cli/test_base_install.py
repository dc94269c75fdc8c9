"""Every command with numpy, scipy and the command line alone: it works, or says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from fedwave.cli.app import app
from tests.cli.test_account import TABLE
from tests.cli.test_calibrate import MEASURED
from tests.runs.written_runs import write_run
from tools.docs.pages import ROOT

EXTRAS = (
    "torch", "safetensors", "sklearn", "pooch", "PIL", "matplotlib", "pandas", "polars", "ray", "flwr",
    "tensorboard", "mlflow", "sqlalchemy", "alembic", "wandb", "starlette", "uvicorn", "sionna",
)  # fmt: skip
# Each command as one would type it, its exit code, and what it prints or gives as its error.
NEEDS_TORCH = (
    "which cannot be imported (No module named 'torch'). Install it with: pip install \"fedwave[learn]\""
)
NEEDS_PICTURES = "Plotting needs matplotlib"
CASES: dict[str, list[tuple[str, int, str]]] = {
    "account": [("account messages.csv", 0, "downlink")],
    "allocate": [
        ("allocate --example", 0, "energy_weight"),
        ("allocate problem.toml", 0, "Proven: no allocation is better"),
        ("allocate problem.toml --compare", 0, "All methods on this problem"),
        ("allocate problem.toml --pareto", 0, "Optimum for each pair of weights"),
        ("allocate problem.toml --plot x.png", 2, NEEDS_PICTURES),
    ],
    "calibrate": [("calibrate watts.csv --cell umi-3.5ghz", 0, "amplifier_efficiency")],
    "cell": [
        ("cell", 0, "umi-3.5ghz"),
        ("cell umi-3.5ghz", 0, "median"),
        ("cell umi-3.5ghz --plot x.png", 2, NEEDS_PICTURES),
    ],
    "compare": [
        ("compare a b", 0, f"No picture: {NEEDS_PICTURES}"),
        ("compare a b --plot x.png", 2, NEEDS_PICTURES),
        ("compare own a", 0, "mine"),
    ],
    "datasets": [("datasets", 0, "digits"), ("datasets download fashion-mnist", 2, "needs pooch")],
    "demo": [("demo", 2, f"Training needs torch, {NEEDS_TORCH}")],
    "explore": [
        ("explore umi-3.5ghz --json", 0, '"optimal"'),
        ("explore own --json", 2, "got run folders alone"),
        ("explore", 2, 'pip install "fedwave[explore]"'),
    ],
    "longterm": [("longterm a", 2, f"Replaying a run needs torch, {NEEDS_TORCH}")],
    "new": [("new project", 0, "Start with:")],
    "presets": [("presets", 0, "digits/nufm"), ("presets digits/nufm", 0, 'scheme = "nufm"')],
    "report": [("report a own", 0, "Report: report.html")],
    "reproduce": [
        ("reproduce --quick", 2, f"Training needs torch, {NEEDS_TORCH}"),
        ("reproduce --list", 2, f"Training needs torch, {NEEDS_TORCH}"),
    ],
    "resume": [("resume a", 2, f"Training needs torch, {NEEDS_TORCH}")],
    "run": [("run", 2, f"Training needs torch, {NEEDS_TORCH}")],
    "runs": [("runs .", 0, "mine")],
    "sweep": [("sweep digits/nufm -s algorithm.meta_lr=0.1,0.2", 2, f"Training needs torch, {NEEDS_TORCH}")],
    "theory": [("theory a", 2, f"Measuring a model needs torch, {NEEDS_TORCH}")],
}
LINES = [(words, code, text) for cases in CASES.values() for words, code, text in cases]
# One process for all of them: each would take half a second to begin.
SCRIPT = """
import contextlib, io, json, sys, traceback
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {extras!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from fedwave.__main__ import main
answers = []
for words in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), None
    sys.argv = ["fedwave", *words.split()]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
    answers.append((code, out.getvalue(), err.getvalue()))
import fedwave
answers.append((0, fedwave.read_run("own").metric.name, repr(sorted(sys.modules.keys() & {extras!r}))))
print(json.dumps(answers))
"""


def fill(folder: Path) -> None:
    """Write what the commands ask for: files, and runs, one of them with parts that nobody has."""
    from fedwave.allocation import example_problem

    for name in ("a", "b"):
        write_run(folder / name, name, [0.2, 0.4], over_cell=True)
    write_run(folder / "own", "mine", [0.5, 0.4], over_cell=True)
    config = folder / "own" / "config.toml"
    text = config.read_text()
    for known, own in (
        ('policy = "top-contribution"', 'policy = "fair"'),  # added to POLICIES by whoever ran it
        ('rule = "exact"', 'rule = "absent.module:Rule"'),
        ('method = "optimal"', 'method = "absent.module:method"'),
    ):
        assert known in text
        text = text.replace(known, own)
    config.write_text(text)
    (folder / "problem.toml").write_text(example_problem())
    (folder / "watts.csv").write_text(MEASURED)
    (folder / "messages.csv").write_text(TABLE)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command line answers."""
    folder = tmp_path_factory.mktemp("base")
    fill(folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", "HOME": str(folder)}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            SCRIPT.format(extras=set(EXTRAS)),
            json.dumps([words for words, _, _ in LINES]),
        ],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=folder,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return dict(zip([*(words for words, _, _ in LINES), "read_run"], found, strict=True))


def test_every_command_is_tried() -> None:
    commands: Any = typer.main.get_command(app)
    assert set(CASES) == set(commands.commands)


@pytest.mark.parametrize(("words", "code", "text"), LINES, ids=[words for words, _, _ in LINES])
def test_a_command_works_or_says_in_one_line_what_to_install(
    answers: dict[str, Any], words: str, code: int, text: str
) -> None:
    ended, out, err = answers[words]
    assert ended == code, err
    assert text in (out if code == 0 else err)
    if code != 0:
        assert err.startswith("error: ")
        assert err.count("\n") == 1


def test_a_finished_run_is_read_in_python_without_any_extra(answers: dict[str, Any]) -> None:
    assert answers["read_run"] == [0, "accuracy", "[]"]
