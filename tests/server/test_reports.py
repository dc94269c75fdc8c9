"""Reports: one entry of each column for each device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.server import Reports

COLUMNS: dict[str, Any] = {
    "device_index": np.array([2, 5]),
    "contribution": np.array([1.0, 2.0]),
    "loss": np.array([0.1, 0.2]),
    "num_samples": np.array([10, 20]),
    "gradient_norms": np.ones((2, 3)),
}


def test_as_many_reports_as_devices() -> None:
    assert len(Reports(**COLUMNS)) == 2


@pytest.mark.parametrize("name", ["contribution", "loss", "num_samples", "gradient_norms"])
def test_a_column_of_another_length_is_named(name: str) -> None:
    with pytest.raises(ProblemError) as caught:
        Reports(**{**COLUMNS, name: np.ones((3, 3))})
    assert str(caught.value) == (
        f"reports need one {name} for each of the 2 devices, got 3. "
        "Give all columns the order of device_index."
    )
