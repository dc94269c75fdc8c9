"""The contracts of datasets and partitions: the same samples from the same seed, each with one owner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedwave.data import (
    DATASET,
    PARTITION,
    Dataset,
    UserSplit,
    dataset_from_arrays,
    deal,
    devices_of_split,
    divide,
    load_dataset,
)
from fedwave.errors import FedwaveError
from fedwave.testing.contract import Contract, ContractError, difference, named


def check_dataset(part: Any, /, *, data_dir: Path | str | None = None, **options: Any) -> None:
    """Raise unless a dataset keeps its contract: it is a ``Dataset``, and its seed alone decides on it.

    It is called with its options and with those of ``seed``, ``data_dir`` and ``split`` that it names.
    """
    contract = Contract.of(part)
    with named(DATASET, part) as name:
        first, again, other = (
            contract.call("load", load_dataset, name, data_dir=data_dir, seed=seed, **options)
            for seed in (0, 0, 1)
        )
    for arrays in ("inputs", "labels", "targets", "device_of_sample"):
        what = f" must load the same {arrays} again from the same seed"
        contract.same(getattr(first, arrays), getattr(again, arrays), what)
    _check_samples(contract, first)
    _check_samples(contract, other)
    fix = "A seed may change which samples there are, not what they are."
    for what, one, two in (
        ("input_shape", first.input_shape, other.input_shape),
        ("num_outputs", first.num_outputs, other.num_outputs),
        ("is_regression", first.is_regression, other.is_regression),
    ):
        contract.require(one == two, f".{what} must not depend on the seed", f"{one} and {two}", fix)


def _check_samples(contract: Contract, dataset: Dataset) -> None:
    inputs, fix = dataset.inputs, "Make it with fedwave.dataset_from_arrays(inputs, labels)."
    known = inputs.dtype == np.float32 or inputs.dtype.kind in "ui"
    what = ".inputs must be float32, bytes of images, or token ids"
    contract.require(known, what, str(inputs.dtype), fix)
    contract.require(inputs.ndim >= 2, ".inputs must have shape (samples, ...)", inputs.shape, fix)
    finite = inputs.dtype.kind != "f" or bool(np.isfinite(inputs).all())
    contract.require(finite, ".inputs must be finite", "NaN or infinite values", "Leave such samples out.")
    labels = dataset.labels
    contract.require(labels.dtype == np.int64, ".labels must be int64", str(labels.dtype), fix)
    enough = dataset.num_samples >= 2
    contract.require(
        enough, " must have a sample to adapt to and one to be judged by", dataset.num_samples, fix
    )


def check_partition(part: Any, /, *, num_samples: int = 3000, num_classes: int = 10, **options: Any) -> None:
    """Raise unless a partition keeps its contract: every sample has at most one owner, by rng alone.

    It shares out that many samples of that many classes; the last class has none.
    """
    contract = Contract.of(part)
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.arange(num_samples) % (num_classes - 1))
    owners = rng.integers(0, 20, num_samples)  # for a partition that asks the dataset who owns what
    inputs = rng.normal(size=(num_samples, 2))
    dataset = dataset_from_arrays(inputs, labels, num_classes=num_classes, device_of_sample=owners)
    with named(PARTITION, part) as name:
        for seed in range(3):
            given = {"num_classes": num_classes, "dataset": dataset, **options}
            made = contract.answer("divide", divide, labels, kind=name, seed=seed, **given)
            try:
                luck = np.random.default_rng(seed)
                if isinstance(made, UserSplit):
                    devices = devices_of_split(made, labels, shots=1, rng=luck)
                else:
                    devices = deal(labels, made, shots=1, rng=luck)
            except FedwaveError as error:
                raise ContractError(
                    f"{contract.name} must be such that it can be dealt out: {error}"
                ) from error
            owned = np.concatenate([np.concatenate([one.support, one.query]) for one in devices])
            fix = "Give every sample one owner at most."
            contract.require(len(np.unique(owned)) == len(owned), " must not give a sample twice", owned, fix)
            if not isinstance(made, UserSplit):
                dealt = np.array([one.num_samples for one in devices])
                contract.require(not difference(dealt, made.sum(1)), " must count what is dealt", dealt, fix)
