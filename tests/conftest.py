"""Shared test set-up: numpy refuses silent NaN and overflow; hypothesis repeats its examples, untimed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test, and a red test must be red again.
settings.register_profile(
    "fedwave", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fedwave")


@pytest.fixture(autouse=True)
def _numpy_errors_raise() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        yield
