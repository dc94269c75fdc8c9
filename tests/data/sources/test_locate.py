from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.data import load_dataset
from fedwave.data.sources import locate
from fedwave.errors import ConfigError
from tests.data.dataset_files import write_fashion_mnist


@pytest.fixture
def places(empty_machine: Path, monkeypatch, tmp_path) -> dict[str, Path]:
    """Four places, each with a Fashion-MNIST of its own size."""
    folders = {
        "argument": tmp_path / "argument",
        "environment": tmp_path / "environment",
        "cache": empty_machine,
        "debian": tmp_path / "debian",
    }
    for num_images, folder in zip((10, 20, 30, 40), folders.values(), strict=True):
        write_fashion_mnist(folder / "fashion-mnist", num_images=num_images)
    monkeypatch.setenv(locate.DATA_DIR_VARIABLE, str(folders["environment"]))
    return folders


def test_folders_are_searched_in_the_documented_order(places, monkeypatch):
    import shutil

    assert load_dataset("fashion-mnist", data_dir=places["argument"]).num_samples == 10
    assert load_dataset("fashion-mnist").num_samples == 20
    monkeypatch.delenv(locate.DATA_DIR_VARIABLE)
    assert load_dataset("fashion-mnist").num_samples == 30
    shutil.rmtree(places["cache"])
    assert load_dataset("fashion-mnist").num_samples == 40


@pytest.mark.parametrize("layout", ["fashion-mnist", "FashionMNIST/raw", "."])
def test_our_layout_torchvisions_and_bare_files_are_accepted(layout, empty_machine, tmp_path):
    write_fashion_mnist(tmp_path / "own" / layout)
    assert load_dataset("fashion-mnist", data_dir=tmp_path / "own").num_samples == 20


def test_a_data_dir_without_the_dataset_does_not_hide_the_other_places(places, tmp_path):
    (tmp_path / "bare").mkdir()
    assert load_dataset("fashion-mnist", data_dir=tmp_path / "bare").num_samples == 20


def test_a_data_dir_that_does_not_exist_is_refused(empty_machine, tmp_path):
    with pytest.raises(ConfigError, match=r"--data-dir must name an existing folder, got .*nowhere"):
        load_dataset("fashion-mnist", data_dir=tmp_path / "nowhere")


def test_an_environment_variable_that_names_no_folder_is_refused(empty_machine, monkeypatch, tmp_path):
    monkeypatch.setenv(locate.DATA_DIR_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"FEDWAVE_DATA must name an existing folder, got .*nowhere"):
        load_dataset("fashion-mnist")


def test_the_debian_package_is_looked_for_where_it_installs():
    assert Path("/usr/share/datasets") == locate.DEBIAN_DATASETS_DIR
