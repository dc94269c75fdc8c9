"""Shared test set-up: numpy refuses silent NaN and overflow in every test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _numpy_errors_raise() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        yield
