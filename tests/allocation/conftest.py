"""Problems here have any scale: a power that looks like dBm in watts is meant."""

from __future__ import annotations

import pytest

UNIT_WARNINGS = "ignore::fedwave.wireless.sanity.UnitWarning"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.filterwarnings(UNIT_WARNINGS))
