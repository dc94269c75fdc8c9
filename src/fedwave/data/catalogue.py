"""The datasets fedwave knows by name, and the one function that loads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from fedwave.data.dataset import Dataset, Split
from fedwave.data.digits import load_digits
from fedwave.data.fashion_mnist import find_fashion_mnist, load_fashion_mnist
from fedwave.data.request import Request
from fedwave.data.synthetic import load_synthetic
from fedwave.errors import ConfigError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Entry:
    """How to load one dataset, and what to tell people about it."""

    load: Callable[..., Dataset]
    num_samples: str
    num_classes: str
    sample_shape: str
    licence: str
    options: tuple[str, ...] = ()
    # Returns the file or folder that would be read, or None. Without it, no files are looked for.
    find: Callable[[Path | None], Path | None] | None = None


DATASETS: dict[str, Entry] = {
    "digits": Entry(
        load=load_digits,
        num_samples="1,797",
        num_classes="10",
        sample_shape="8x8 grey",
        licence="CC BY 4.0; UCI, Alpaydin and Kaynak 1998",
    ),
    "fashion-mnist": Entry(
        load=load_fashion_mnist,
        find=find_fashion_mnist,
        num_samples="70,000",
        num_classes="10",
        sample_shape="28x28 grey",
        licence="MIT; Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747",
    ),
    "synthetic": Entry(
        load=load_synthetic,
        options=("num_samples", "num_classes", "shape"),
        num_samples="any",
        num_classes="any",
        sample_shape="any",
        licence="none needed",
    ),
}


def load_dataset(
    name: str, *, data_dir: Path | str | None = None, seed: int = 0, split: Split = "all", **options: Any
) -> Dataset:
    """Return a dataset by name.

    ``split="all"`` pools every labelled file that is found: held-out devices do the testing, so the
    publisher's train/test border has no meaning here. ``options`` depend on the dataset, see ``DATASETS``.
    """
    if name not in DATASETS:
        raise ConfigError(f'Unknown dataset "{name}". {did_you_mean(name, DATASETS)}')
    entry = DATASETS[name]
    for option in options:
        if option not in entry.options:
            hint = did_you_mean(option, entry.options) if entry.options else "It has none; remove it."
            raise ConfigError(f'Unknown option "{option}" of dataset {name}. {hint}')
    if split not in get_args(Split):
        raise ConfigError(f'split must be "all", "train" or "test", got "{split}". Change it.')
    if split != "all" and entry.find is None:
        raise ConfigError(f'Dataset {name} has no published split, got split="{split}". Use split="all".')
    folder = None if data_dir is None else Path(data_dir)
    return entry.load(Request(data_dir=folder, seed=seed, split=split), **options)
