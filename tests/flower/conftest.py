"""Flower is an extra with pins of its own: without it, one test says that the others are left out."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

if find_spec("flwr") is None:
    collect_ignore = [
        file.name for file in Path(__file__).parent.glob("test_*.py") if file.stem != "test_extra"
    ]


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the strategy logs, line by line."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, logger = Keep(), logging.getLogger("flwr")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)
