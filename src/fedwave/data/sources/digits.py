"""The handwritten digits that come inside scikit-learn: nothing to download."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.sources.load_request import LoadRequest
from fedwave.errors import import_extra
from fedwave.files import open_file
from fedwave.units import FloatArray

# scikit-learn stores the grey levels 0..16; times 15 they are the bytes 0..240, without rounding.
BYTES_PER_LEVEL = 15


def load_digits(request: LoadRequest) -> Dataset:
    """Return the 1,797 digits as uint8 images of shape (1, 8, 8)."""
    del request  # embedded: no folder, no seed, no split
    rows = _rows()
    images = (rows[:, :-1] * BYTES_PER_LEVEL).astype(np.uint8).reshape(-1, 1, 8, 8)
    return Dataset(
        name="digits",
        inputs=images,
        labels=rows[:, -1].astype(np.int64),
        num_classes=10,
        class_names=tuple(str(digit) for digit in range(10)),
        source=f"scikit-learn's embedded digits ({len(images):,} images)",
    )


def _rows() -> FloatArray:
    """Return each digit's 64 grey levels and its label, (1797, 65).

    scikit-learn's own file is read where it is known to be: importing scikit-learn takes longer than torch.
    """
    package = find_spec("sklearn")
    for folder in (package.submodule_search_locations or ()) if package else ():
        file = Path(folder) / "datasets" / "data" / "digits.csv.gz"
        if file.is_file():
            with open_file(file) as stream, gzip.open(stream, "rt") as lines:
                return np.loadtxt(lines, delimiter=",")
    sklearn_datasets = import_extra("sklearn.datasets", purpose="The digits dataset", extra="learn")
    bunch = sklearn_datasets.load_digits()
    return np.column_stack([bunch.data, bunch.target])
