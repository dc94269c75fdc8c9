"""What holds with Flower and without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def test_flower_is_installed() -> None:
    if find_spec("flwr") is None:
        pytest.skip('tests/flower needs pip install "fedwave[flower]"; make test-processes runs them')


def test_without_flower_the_package_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['flwr'] = None\n"
        "from fedwave.errors import MissingExtraError\n"
        "try:\n    import fedwave.flower\nexcept MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert done.stdout.startswith("training on real devices needs flwr, which cannot be imported")
    assert 'pip install "fedwave[flower]"' in done.stdout


def test_flower_is_imported_in_its_own_part_alone() -> None:
    for file in (SOURCE / "fedwave").rglob("*.py"):
        if file.parent.name != "flower":
            text = file.read_text(encoding="utf-8")
            assert "import flwr" not in text
            assert "from flwr" not in text
