"""Wheel and sdist have what they need, and the wheel runs in an environment with nothing else in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from fedwave import __version__
from fedwave.experiments import load_experiment
from fedwave.runs.run import run_experiment
from tests.cli.test_base_install import CASES, LINES, fill
from tools.docs.pages import ROOT
from tools.release import repository

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, the wheel made of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    call([sys.executable, "-m", "build", "--outdir", folder, ROOT], cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"fedwave-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        return message_from_bytes(opened.read(f"fedwave-{__version__}.dist-info/METADATA"))


def start(words: list[object], *, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that sees neither the repository's sources nor our environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FEDWAVE_DATA")}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=kept | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


def call(words: list[object], *, cwd: Path) -> str:
    """Run such a command, and return what it prints."""
    done = start(words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    listed = subprocess.run(
        ["git", "ls-files", "fedwave"], cwd=source, capture_output=True, text=True, check=True
    )
    assert names == set(listed.stdout.split())


def test_the_sdist_builds_the_wheel_and_brings_no_measured_runs(built):
    with tarfile.open(built / f"fedwave-{__version__}.tar.gz") as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "constraints.txt"} <= names
    assert not any(name.startswith(("docs/", "tests/", "benchmarks/")) for name in names)


def test_the_description_has_full_addresses_only(metadata):
    text = metadata.get_payload()
    assert metadata["Version"] == __version__
    assert "# fedwave" in text
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert f"{repository()}/blob/v{__version__}/CONTRIBUTING.md" in targets


def every_command_works_or_names_its_extra(fedwave: Path, python: Path, folder: Path) -> None:
    """Run every command where no extra is installed; some of the runs that it reads torch has made."""
    fill(folder)
    for name, preset in (("trained", "digits/ural"), ("plain", "digits/nufm")):
        run_experiment(load_experiment(preset, ["num_rounds=2"]), folder / name)
    of_trained = [
        ("compare trained plain --format markdown", 0, "URAL"),
        ("report trained plain", 0, "Report: report.html"),
        ("runs .", 0, "2 of 2"),
        ("account plain --operations 1e6", 0, "joules"),
        ("resume trained", 2, 'pip install "fedwave[learn]"'),
        ("theory trained", 2, 'pip install "fedwave[learn]"'),
        *((f"{name} --help".strip(), 0, "Usage: fedwave") for name in ("", *CASES)),
    ]
    for words, code, text in [*LINES, *of_trained]:
        done = start([fedwave, *words.split()], cwd=folder)
        assert done.returncode == code, (words, done.stderr)
        assert text in (done.stdout if code == 0 else done.stderr), words
        assert "Traceback" not in done.stderr, words
        if code:
            assert done.stderr.startswith("error: "), words
            assert done.stderr.count("\n") == 1, words
    read = "import fedwave; run = fedwave.read_run('trained'); print(run.num_rounds, run.metric.name)"
    assert call([python, "-c", read], cwd=folder) == "2 accuracy\n"
    installed = {
        one["name"] for one in json.loads(call([python, "-m", "pip", "list", "--format=json"], cwd=folder))
    }
    assert installed & {"torch", "scikit-learn", "matplotlib", "pandas", "safetensors"} == set()


def test_the_wheel_runs_in_an_empty_environment(wheel, tmp_path):
    """First with nothing but numpy, scipy and the command line; then with what learning needs."""
    venv.create(tmp_path / "empty", with_pip=True)
    python, fedwave = tmp_path / "empty/bin/python", tmp_path / "empty/bin/fedwave"
    pip = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--constraint",
        ROOT / "constraints.txt",
    ]
    call([*pip, wheel], cwd=tmp_path)
    assert call([fedwave, "--version"], cwd=tmp_path).startswith(f"fedwave {__version__}\n")
    every_command_works_or_names_its_extra(fedwave, python, tmp_path)
    assert str(tmp_path) in call([python, "-c", "import fedwave; print(fedwave.__file__)"], cwd=tmp_path)

    call([*pip, f"{wheel}[learn]"], cwd=tmp_path)
    listed = call([fedwave, "reproduce", "--list"], cwd=tmp_path)
    assert "table-2" in listed
    call([fedwave, "run", "digits/ural", "-s", "num_rounds=3", "--out", "first"], cwd=tmp_path)
    assert "URAL" in call([fedwave, "compare", "first"], cwd=tmp_path)
    (tmp_path / "nothing").mkdir()
    words = [fedwave, "demo", "--seeds", "0-1", "-s", "num_rounds=2"]
    assert "the best that all 10 runs reach" in call(words, cwd=tmp_path / "nothing")
    assert (tmp_path / "nothing" / "demo" / "comparison.png").is_file()
    call([python, "-m", "pip", "check"], cwd=tmp_path)
