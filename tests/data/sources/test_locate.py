from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedwave.data import load_dataset
from fedwave.data.sources import locate
from fedwave.errors import ConfigError, DataError
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


def test_the_cache_is_where_the_standard_says(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert locate.cache_dir() == Path("/caches/fedwave")


def test_a_machine_without_home_has_no_cache(monkeypatch):
    def none() -> Path:
        raise FileNotFoundError

    monkeypatch.delenv(locate.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setattr(locate, "cache_dir", none)
    monkeypatch.setattr(locate, "DEBIAN_DATASETS_DIR", Path("/nowhere"))
    assert locate.search_dirs(None) == []


@pytest.mark.parametrize("place", [".", "fashion-mnist"])
def test_what_others_can_change_in_the_cache_is_refused(place, empty_machine):
    write_fashion_mnist(empty_machine / "fashion-mnist")
    assert load_dataset("fashion-mnist").num_samples == 20
    folder = empty_machine / place
    folder.chmod(0o777)
    with pytest.raises(DataError) as caught:
        load_dataset("fashion-mnist")
    reason = f"others can write to {folder}: chmod go-w {folder}"
    assert str(caught.value) == (
        f"the data in {empty_machine / 'fashion-mnist'} is not used ({reason}). Mend the folder, or download "
        "the data again with --data-dir to one of your own."
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_what_another_user_put_into_the_cache_is_refused_but_a_named_folder_is_the_users_choice(
    empty_machine, tmp_path
):
    for root in (empty_machine, tmp_path / "named"):
        write_fashion_mnist(root / "fashion-mnist")
        os.chown(root, 65534, 65534)
    with pytest.raises(DataError, match=r"is not used \(.* belongs to another user"):
        load_dataset("fashion-mnist")
    assert load_dataset("fashion-mnist", data_dir=tmp_path / "named").num_samples == 20


def test_a_system_without_owners_uses_its_cache_as_it_is(empty_machine, monkeypatch):
    write_fashion_mnist(empty_machine / "fashion-mnist")
    empty_machine.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert load_dataset("fashion-mnist").num_samples == 20
    locate.require_own(empty_machine / "new", is_made=True)
    assert (empty_machine / "new").is_dir()
