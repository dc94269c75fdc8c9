from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.data import DATASETS
from fedwave.data.sources import locate
from fedwave.errors import ConfigError


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with an (empty) Tiny ImageNet zip, on a machine without other data."""
    monkeypatch.delenv(locate.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setattr(locate, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(locate, "DEBIAN_DATASETS_DIR", tmp_path / "debian")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tiny-imagenet-200.zip").touch()
    return tmp_path / "own"


def test_the_list_shows_every_dataset_and_where_it_is(data_dir):
    result = CliRunner().invoke(app, ["datasets", "--data-dir", str(data_dir)], catch_exceptions=False)
    assert result.exit_code == 0
    assert all(name in result.stdout for name in DATASETS)
    places = {line.split()[0]: line for line in reversed(result.stdout.splitlines()) if line}
    assert places["cifar-10"].rstrip().endswith("not found")
    assert places["tiny-imagenet"].rstrip().endswith("tiny-imagenet-200.zip")
    assert "fedwave datasets download NAME" in result.stdout
    assert "comes with scikit-learn" in result.stdout
    assert "MIT; Xiao" in result.stdout


def test_an_embedded_dataset_needs_no_download():
    result = CliRunner().invoke(app, ["datasets", "download", "digits"])
    assert isinstance(result.exception, ConfigError)
    assert (
        str(result.exception) == "Nothing to download for digits: comes with scikit-learn. Use it as it is."
    )


def test_a_dataset_that_is_there_is_not_fetched_again(data_dir):
    (data_dir / "tiny-imagenet").mkdir()
    (data_dir / "tiny-imagenet" / "tiny-imagenet-200.zip").touch()
    for arguments in (
        ["datasets", "download", "tiny-imagenet", "--data-dir", str(data_dir)],
        ["datasets", "--data-dir", str(data_dir), "download", "tiny-imagenet"],
    ):
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        assert f"tiny-imagenet is in {data_dir / 'tiny-imagenet'}" in result.stdout.replace("\n", "")


def test_a_failed_download_is_one_line_and_a_non_zero_exit_code(tmp_path):
    command = [sys.executable, "-m", "fedwave", "datasets", "download", "cifar-10"]
    environment = {
        "FEDWAVE_DOWNLOAD_URL": "http://127.0.0.1:9",  # the discard port: nobody listens
        "PYTHONPATH": str(Path(locate.__file__).parents[2]),
    }
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: Cannot download cifar-10-python.tar.gz (http://127.0.0.1:9/")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
