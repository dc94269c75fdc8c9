from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from fedwave.data import DATASETS, dataset_options, load_dataset
from fedwave.data.sources.download import DOWNLOADS
from fedwave.errors import ConfigError, DataError, MissingExtraError
from fedwave.testing import check_dataset


def test_the_digits_are_whole_and_keep_every_grey_level():
    digits = load_dataset("digits")
    assert digits.inputs.shape == (1797, 1, 8, 8)
    assert digits.inputs.dtype == np.uint8
    assert set(np.unique(digits.inputs)) == {15 * level for level in range(17)}
    assert np.bincount(digits.labels).min() == 174


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_that_is_here_keeps_the_contract(name, tmp_path):
    options = {}
    if name == "arrays":
        np.savez(tmp_path / "own.npz", inputs=np.zeros((6, 2)), labels=np.arange(6) % 3)
        options = {"path": tmp_path / "own.npz"}
    elif name == "image-folder":
        image = pytest.importorskip("PIL.Image")
        for label in ("cat", "dog"):
            (tmp_path / label).mkdir()
            image.new("L", (5, 4)).save(tmp_path / label / "one.png")
        options = {"path": tmp_path}
    elif DATASETS[name].find is not None:
        pytest.skip("large: read by the tests of its own file")
    check_dataset(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fashion-minst", {}, 'There is no dataset "fashion-minst". Did you mean "fashion-mnist"?'),
        ("zzz", {}, 'There is no dataset "zzz". Choose one of: digits, fashion-mnist'),
        (
            "synthetic",
            {"num_sample": 3},
            'dataset "synthetic" has no option \'num_sample\'. Did you mean "num_samples"?',
        ),
        (
            "digits",
            {"size": 3},
            'dataset "digits" has no option \'size\'. "digits" has no options. Leave it out.',
        ),
        (
            "digits",
            {"num_classes": 3},
            'It is an option of synthetic and arrays, not of "digits". Leave it out.',
        ),
        (
            "digits",
            {"split": "train"},
            'Dataset digits has no published split, got split="train". Use split="all".',
        ),
        ("cifar-10", {"split": "val"}, 'split must be "all", "train" or "test", got "val"'),
        ("arrays", {}, 'Dataset arrays needs the option path, got none. Give e.g. path = "samples.npz".'),
        (
            "image-folder",
            {},
            'Dataset image-folder needs the option path, got none. Give e.g. path = "pictures/".',
        ),
    ],
)
def test_a_bad_request_is_answered_with_the_fix(name, options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_dataset(name, **options)


def test_the_options_of_a_dataset_are_the_keyword_arguments_of_its_loader():
    assert {name: set(dataset_options(name)) for name in DATASETS} == {
        "digits": set(),
        "fashion-mnist": set(),
        "cifar-10": set(),
        "cifar-100": set(),
        "tiny-imagenet": {"images_per_class"},
        "synthetic": {"num_samples", "num_classes", "shape"},
        "sinusoids": {"num_devices", "samples_per_device"},
        "arrays": {"path", "num_classes"},
        "image-folder": {"path", "image_size"},
    }
    with pytest.raises(ConfigError, match='There is no dataset "digit". Did you mean "digits"?'):
        dataset_options("digit")


@pytest.mark.parametrize("name", DOWNLOADS)
def test_a_missing_dataset_names_exactly_three_ways_to_get_it(name, empty_machine):
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    message = str(caught.value)
    assert f"Dataset {name} not found in: no existing folder" in message
    assert f"(1) fedwave datasets download {name};" in message
    assert "(2) pass --data-dir DIR" in message
    assert "FEDWAVE_DATA=DIR" in message
    assert "(3)" in message
    assert "(4)" not in message
    assert "\n" not in message


def test_a_missing_fashion_mnist_points_to_the_debian_package(empty_machine):
    with pytest.raises(DataError, match="apt install dataset-fashion-mnist"):
        load_dataset("fashion-mnist")


def test_every_dataset_that_is_looked_for_can_be_downloaded():
    assert {name for name, entry in DATASETS.items() if entry.find is not None} == set(DOWNLOADS)


def test_a_missing_library_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("fedwave.data.sources.digits.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "fedwave\[learn\]"'):
        load_dataset("digits")


def test_the_digits_are_those_that_scikit_learn_loads():
    bunch = pytest.importorskip("sklearn.datasets").load_digits()
    found = load_dataset("digits")
    np.testing.assert_array_equal(found.inputs[:, 0], bunch.images * 15)
    np.testing.assert_array_equal(found.labels, bunch.target)


def test_the_digits_come_from_scikit_learn_itself_where_its_file_is_elsewhere(monkeypatch):
    found = load_dataset("digits")
    monkeypatch.setattr("fedwave.data.sources.digits.find_spec", lambda name: None)
    np.testing.assert_array_equal(load_dataset("digits").inputs, found.inputs)
