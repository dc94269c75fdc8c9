"""Settings with every key, as a run leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.experiments import experiment_to_toml, load_experiment


@pytest.fixture
def resolved(tmp_path: Path) -> Path:
    """The settings that a run of digits/ural leaves in its folder: every key is there."""
    file = tmp_path / "config.toml"
    file.write_text(experiment_to_toml(load_experiment("digits/ural")))
    return file
