"""The handwritten digits that come inside scikit-learn: nothing to download."""

from __future__ import annotations

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.request import Request
from fedwave.errors import import_extra

# scikit-learn stores the grey levels 0..16; times 15 they are the bytes 0..240, without rounding.
BYTES_PER_LEVEL = 15


def load_digits(request: Request) -> Dataset:
    """Return the 1,797 digits as uint8 images of shape (1, 8, 8)."""
    del request  # embedded: no folder, no seed, no split
    sklearn_datasets = import_extra("sklearn.datasets", purpose="The digits dataset", extra="learn")
    bunch = sklearn_datasets.load_digits()
    images = (bunch.images * BYTES_PER_LEVEL).astype(np.uint8)[:, None, :, :]
    return Dataset(
        name="digits",
        inputs=images,
        labels=bunch.target.astype(np.int64),
        num_classes=10,
        class_names=tuple(str(digit) for digit in range(10)),
        source=f"scikit-learn's embedded digits ({len(images):,} images)",
    )
