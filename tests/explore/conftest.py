"""A page, and finished runs to show on it, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave import load_experiment, run_experiment
from tests.explore.asking import Page

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="session")
def street_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of three rounds in a street cell where every tenth device drops out."""
    settings = [
        "num_rounds=3",
        f"name='{HOSTILE}'",
        "cell.preset=umi-3.5ghz",
        "cell.energy_weight=0.1",
        "cell.delay_weight=2.0",
        "cell.losses.dropout_probability=0.3",
    ]
    folder = tmp_path_factory.mktemp("runs") / "street"
    return run_experiment(load_experiment("digits/ural", settings), folder).path


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of two rounds without a cell."""
    folder = tmp_path_factory.mktemp("runs") / "plain"
    return run_experiment(load_experiment("digits/nufm", ["num_rounds=2"]), folder).path


@pytest.fixture(scope="module")
def page() -> Page:
    return Page()
