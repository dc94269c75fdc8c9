"""The training commands as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.in_process import Command

ROOT = Path(__file__).parents[2]
SMALL = [
    "-s",
    "num_rounds=3",
    "-s",
    "partition.num_devices=12",
    "-s",
    "selection.num_selected=2",
    "-s",
    "model.kind=softmax",
]


@pytest.fixture
def fedwave(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    return Command(monkeypatch, capsys, tmp_path, columns=120)


def test_run_compare_and_resume_from_the_command_line(fedwave: Command, tmp_path: Path) -> None:
    first = fedwave("run", "digits/nufm", *SMALL, "-q")
    assert "NUFM" in first.stdout
    assert "runs/digits-nufm-seed0" in first.stdout
    second = fedwave("run", "digits/nufm", *SMALL, "-q")  # takes the next free folder
    assert "runs/digits-nufm-seed0-2" in second.stdout
    fedwave("run", "digits/per-fedavg", *SMALL, "--seed", "4", "-q", "--out", "other")
    compared = fedwave("compare", "runs/digits-nufm-seed0", "other", "--plot", "both.png")
    assert "Per-FedAvg" in compared.stdout
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "other" / "learning_curve.png").exists()
    fedwave("resume", "other", "-q")


def test_an_override_beats_a_preset_also_over_a_cell(fedwave: Command, tmp_path: Path) -> None:
    overrides = [
        "-s",
        "cell.method=fedl-power",
        "-s",
        "selection.policy=uniform",
        "-s",
        "selection.num_selected=auto",
    ]
    done = fedwave("run", "digits/ural", *SMALL, "-s", "cell.num_blocks=2", *overrides, "-q", "-o", "out")
    assert done.code == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["cell"]["method"], summary["selection"], summary["scheme"]) == (
        "fedl-power",
        "uniform",
        None,
    )
    assert summary["cell"]["uploads"] == 3 * 2


def test_a_regression_is_run_and_compared_by_its_error(fedwave: Command, tmp_path: Path) -> None:
    sines = [
        "data.dataset=sinusoids",
        "data.dataset.num_devices=8",
        "partition.kind=given",
        "model.kind=mlp",
        "selection.num_selected=2",
        "num_rounds=2",
    ]
    words = [word for setting in sines for word in ("-s", setting)]
    for seed, out in (("0", "a"), ("1", "b")):
        done = fedwave("run", *words, "--seed", seed, "-q", "-o", out)
        assert "mean absolute error" in done.stdout
    compared = fedwave("compare", "a", "b", "--target", "100")
    assert "rounds to 100" in compared.stdout
    assert "2 of 2" in compared.stdout
    assert (tmp_path / "comparison.png").exists()
    fedwave("run", "digits/nufm", *SMALL, "-q", "-o", "digits")
    mixed = fedwave("compare", "a", "digits")
    assert mixed.code == 2
    assert "judged by different metrics, accuracy and mean_absolute_error" in mixed.stderr


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.processes),
        pytest.param(signal.SIGHUP, marks=pytest.mark.processes),
    ],
)
def test_a_signal_leaves_a_resumable_run_and_says_how_to_resume_it(
    fedwave: Command, tmp_path: Path, number: signal.Signals
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fedwave",
            "run",
            "digits/nufm",
            *SMALL,
            "-s",
            "num_rounds=100000",
            "-q",
            "-o",
            "cut",
        ],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # tests in the background may ignore it
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "cut" / "rounds.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(10):  # impatient
        process.send_signal(number)
        time.sleep(0.005)
    _, errors = process.communicate(timeout=60)
    assert errors.count("\n") == 1
    assert process.returncode == 3
    assert "Go on with: fedwave resume cut" in errors
    assert "Traceback" not in errors
    config = tmp_path / "cut" / "config.toml"
    rows = len((tmp_path / "cut" / "rounds.csv").read_text().splitlines())
    config.write_text(config.read_text().replace("num_rounds = 100000", f"num_rounds = {rows + 2}"))
    fedwave("resume", "cut", "-q")
    assert len((tmp_path / "cut" / "rounds.csv").read_text().splitlines()) == rows + 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run paper/nuffm", 'Did you mean "paper/nufm"'),
        ("run -s selection.numselected=3", 'Did you mean "num_selected"'),
        ("run digits/nufm -s selection.num_selected=99", "number of training devices (30), got 99"),
        ("run paper/nufm --data-dir nowhere", "--data-dir must name an existing folder"),
        ("run paper/nufm -s data.dataset=cifar-10 --data-dir .", "fedwave datasets download cifar-10"),
        ("run digits/nufm -s data.dataset=digitz", 'Did you mean "digits"'),
        ("run digits/nufm -s partition.num_devices=500", "Use fewer devices"),
        ("run digits/nufm -s model.kind=nowhere.at_all:net", 'cannot import "nowhere.at_all"'),
        ("run digits/nufm -s execution.device=cuda:99", 'torch cannot use "cuda:99"'),
        ("run digits/nufm --engine steam", "execution.engine must be 'threads' or 'ray', got 'steam'"),
        ("run digits/nufm --address 10.0.0.1", "execution.address: it must be HOST:PORT as `ray start"),
        ("run digits/nufm --engine threads --address h:1", "execution.address belongs to engine ray, got"),
        ("run digits/nufm -s execution.wait_s=3", "execution.wait_s belongs to engine ray, got engine"),
        ("run digits/nufm -s selection.policy=best", 'selection.policy: there is no selection policy "best"'),
        ("run digits/nufm -s algorithm.selection=uniform", "it is selection.policy now. Use that."),
        ("run digits/nufm -s algorithm.rule=exakt", 'algorithm.rule: there is no local rule "exakt"'),
        (
            "run digits/nufm -s algorithm.server_step=avg",
            'algorithm.server_step: there is no server step "avg"',
        ),
        ("run digits/nufm -s algorithm.task=regress", 'algorithm.task: there is no task "regress"'),
        ("run digits/nufm -s model.path=none.safetensors", "none.safetensors does not exist"),
        ("run digits/nufm -s partition.kind=given", "digits does not say which device owns which sample"),
        ("run digits/nufm -s scheme=ural", "cell needs a preset or a channel of its own, got neither"),
        ("run digits/ural -s cell.num_blocks=true", "cell.num_blocks must be a valid integer, got True"),
        ("run digits/nufm --out /proc/fedwave", "cannot write to the output folder /proc/fedwave"),
        ("resume absent", "absent is not a run folder"),
        ("compare absent", "there is no folder absent here. `fedwave run digits/nufm` makes a run in runs/."),
        ("presets absent", "neither a preset nor"),
    ],
)
def test_bad_input_is_one_clear_line_and_a_failing_exit_code(
    arguments: str, message: str, fedwave: Command
) -> None:
    done = fedwave(*arguments.split())
    assert done.code == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_run_that_diverges_ends_with_a_code_of_its_own(fedwave: Command) -> None:
    done = fedwave("run", "digits/nufm", "-q", "-s", "algorithm.meta_lr=1e30", "--out", "bad")
    assert done.code == 4
    assert "not finite in round 0 on held-out device" in done.stderr
    assert "Folder: bad" in done.stderr
    assert done.stderr.count("\n") == 1
