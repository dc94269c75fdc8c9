"""The datasets fedwave knows by name, and the one function that loads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from fedwave.data.dataset import Dataset, Split
from fedwave.data.sources.cifar import CIFAR_10, CIFAR_100
from fedwave.data.sources.digits import load_digits
from fedwave.data.sources.fashion_mnist import find_fashion_mnist, load_fashion_mnist
from fedwave.data.sources.load_request import LoadRequest
from fedwave.data.sources.sinusoids import load_sinusoids
from fedwave.data.sources.synthetic import load_synthetic
from fedwave.data.sources.tiny_imagenet import find_tiny_imagenet, load_tiny_imagenet
from fedwave.data.sources.user_data import load_arrays, load_image_folder
from fedwave.errors import ConfigError, DataError, shown
from fedwave.parts import PartKind, signature_of


@dataclass(frozen=True, kw_only=True)
class Entry:
    """How to load one dataset, and what to tell people about it."""

    load: Callable[..., Dataset]
    num_samples: str
    num_classes: str
    sample: str
    licence: str
    # Returns the file or folder that would be read, or None when there is none.
    find: Callable[[Path | None], Path | None] | None = None
    # Where data that is not looked for comes from.
    origin: str = ""


DATASETS: dict[str, Entry] = {
    "digits": Entry(
        load=load_digits,
        num_samples="1,797",
        num_classes="10",
        sample="8x8 grey",
        licence="CC BY 4.0; Alpaydin and Kaynak 1998 (UCI)",
        origin="comes with scikit-learn",
    ),
    "fashion-mnist": Entry(
        load=load_fashion_mnist,
        find=find_fashion_mnist,
        num_samples="70,000",
        num_classes="10",
        sample="28x28 grey",
        licence="MIT; Xiao, Rasul and Vollgraf 2017 (arXiv:1708.07747)",
    ),
    "cifar-10": Entry(
        load=CIFAR_10.load,
        find=CIFAR_10.find,
        num_samples="60,000",
        num_classes="10",
        sample="32x32 RGB",
        licence="for research; cite Krizhevsky 2009",
    ),
    "cifar-100": Entry(
        load=CIFAR_100.load,
        find=CIFAR_100.find,
        num_samples="60,000",
        num_classes="100",
        sample="32x32 RGB",
        licence="for research; cite Krizhevsky 2009",
    ),
    "tiny-imagenet": Entry(
        load=load_tiny_imagenet,
        find=find_tiny_imagenet,
        num_samples="110,000",
        num_classes="200",
        sample="64x64 RGB",
        licence="non-commercial research (ImageNet terms); cite Le and Yang 2015",
    ),
    "synthetic": Entry(
        load=load_synthetic,
        num_samples="any",
        num_classes="any",
        sample="any",
        licence="none needed",
        origin="drawn from the seed",
    ),
    "sinusoids": Entry(
        load=load_sinusoids,
        num_samples="any",
        num_classes="1 real output",
        sample="1 number",
        licence="none needed; cite Finn, Abbeel and Levine 2017 (arXiv:1703.03400)",
        origin="drawn from the seed",
    ),
    "arrays": Entry(
        load=load_arrays,
        num_samples="yours",
        num_classes="yours",
        sample="any",
        licence="yours",
        origin="option path = FILE.npz",
    ),
    "image-folder": Entry(
        load=load_image_folder,
        num_samples="yours",
        num_classes="yours",
        sample="grey or RGB",
        licence="yours",
        origin="option path = DIR, a sub-folder per class",
    ),
}
# A loader is called with those of these that it names; a user's own need not be an ``Entry``.
DATASET = PartKind(
    "dataset",
    DATASETS,
    fills_in=("request", "data_dir", "seed", "split"),
    function_of=lambda entry: entry.load if isinstance(entry, Entry) else entry,
)


def load_dataset(
    name: str, *, data_dir: Path | str | None = None, seed: int = 0, split: Split = "all", **options: Any
) -> Dataset:
    """Return a dataset by name, or by ``package.module:loader``.

    ``split="all"`` pools every labelled file that is found: held-out devices do the testing, so the
    publisher's train/test border has no meaning here. ``options`` are the dataset's own, see
    ``dataset_options``.
    """
    DATASET.require_options(name, options)
    entry = DATASET.find(name)
    if split not in get_args(Split):
        raise ConfigError(f'split must be "all", "train" or "test", got "{split}". Change it.')
    if split != "all" and not _has_splits(entry):
        raise ConfigError(f'Dataset {name} has no published split, got split="{split}". Use split="all".')
    folder = None if data_dir is None else Path(data_dir)
    request = LoadRequest(data_dir=folder, seed=seed, split=split)
    loaded = DATASET.call(entry, options, request=request, data_dir=folder, seed=seed, split=split)
    if not isinstance(loaded, Dataset):
        raise DataError(
            f"{name} must return a Dataset, got {shown(loaded)}. Make one with dataset_from_arrays(...)."
        )
    return loaded


def _has_splits(entry: Any) -> bool:
    if isinstance(entry, Entry):
        return entry.find is not None
    return bool({"split", "request"} & set(signature_of(entry).parameters))


def dataset_options(name: str) -> tuple[str, ...]:
    """Return the options of one dataset: the keyword arguments of its loader."""
    return DATASET.options(name)
