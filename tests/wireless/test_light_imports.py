"""What a server needs of the radio loads with numpy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedwave

# A new process must import the package under test, not another installed copy.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fedwave.__file__).parents[1])}
SERVER_SIDE = ("fleet", "channel_draw", "link", "delivery", "phases", "terms")
HEAVY = ("pydantic", "scipy", "torch", "matplotlib", "typer", "rich")


@pytest.mark.parametrize("names", [SERVER_SIDE, *((name,) for name in SERVER_SIDE)], ids=" ".join)
def test_the_server_side_needs_numpy_alone(names):
    statement = "import " + ", ".join(f"fedwave.wireless.{name}" for name in names)
    code = f"{statement}; import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout.strip() == "[]"


def test_settings_load_no_deep_learning_and_no_command_line():
    code = "import sys, fedwave.wireless.cell, fedwave.wireless.description; print('torch' in sys.modules)"
    code += "; print('rich' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout.split() == ["False"] * 3
