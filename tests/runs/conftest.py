"""A tiny run, whole and cut off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fedwave.runs.run import run_experiment
from tests.runs.small_runs import AskToStopAfter, tiny


@pytest.fixture(scope="package")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment(tiny(), tmp_path_factory.mktemp("run") / "whole").path


@pytest.fixture(scope="package")
def _cut_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment(tiny(), tmp_path_factory.mktemp("run") / "cut", observers=[AskToStopAfter(2)]).path


@pytest.fixture
def cut(_cut_run: Path, tmp_path: Path) -> Path:
    """A run that was stopped after two of its four rounds."""
    return Path(shutil.copytree(_cut_run, tmp_path / "cut"))
