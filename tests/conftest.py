"""Shared set-up: one core a process, numpy refuses silent NaN and overflow, hypothesis repeats itself."""

from __future__ import annotations

import os
from collections.abc import Iterator

# Before numpy and torch are loaded: `make test` runs several processes, and small matrices gain nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
