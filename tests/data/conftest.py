"""A search path that holds no dataset but those a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.data.sources import locate


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any dataset: no FEDWAVE_DATA, an empty cache (returned), no Debian package."""
    monkeypatch.delenv(locate.DATA_DIR_VARIABLE, raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setattr(locate, "cache_dir", lambda: cache)
    monkeypatch.setattr(locate, "DEBIAN_DATASETS_DIR", tmp_path / "debian")
    return cache
