"""The equations of the radio load with numpy alone, and settings without learning or a command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedwave

ROOM = Path(fedwave.__file__).parent / "wireless"
# A new process must import the package under test, not another installed copy.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fedwave.__file__).parents[1])}
# A cell is built from settings; a kind of interference or harvest is one.
SETTINGS_ARE_PARTS = {"cell", "interference", "harvest"}
PHYSICS = sorted({file.stem for file in ROOM.glob("*.py")} - {"__init__"} - SETTINGS_ARE_PARTS)
HEAVY = ("pydantic", "scipy", "torch", "matplotlib", "typer", "rich")


def loaded(statement: str, names: tuple[str, ...]) -> str:
    code = f"{statement}; import sys; print([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    return done.stdout.strip()


def test_the_physics_needs_numpy_alone():
    assert {"link", "rate", "terms", "phases", "delivery", "path_loss", "multipath"} < set(PHYSICS)
    assert loaded("import " + ", ".join(f"fedwave.wireless.{name}" for name in PHYSICS), HEAVY) == "[]"


@pytest.mark.parametrize("room", ["settings", "channels", "."])
def test_nothing_that_is_computed_asks_what_is_shown(room):
    for file in (ROOM / room).glob("*.py"):
        assert "fedwave.wireless.describe" not in file.read_text(encoding="utf-8"), file


def test_the_names_of_presets_load_nothing():
    assert loaded("import fedwave.wireless.settings.presets", ("numpy", "pydantic")) == "[]"


def test_settings_load_no_deep_learning_and_no_command_line():
    statement = "import fedwave.wireless.settings.load, fedwave.wireless.describe.cell"
    assert loaded(statement, ("torch", "rich", "typer")) == "[]"
