"""Imports point one way, and importing fedwave is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fedwave"

GROUND = {"errors", "rng", "units", "overrides", "fedwave"}
ALLOWED = {
    "errors": set(),
    "rng": set(),
    "units": set(),
    "overrides": {"errors"},
    "learning": GROUND,
    "wireless": GROUND,
    "data": GROUND,
    "selection": GROUND | {"learning", "wireless", "data"},
    "allocation": GROUND | {"wireless"},
    "simulation": GROUND | {"learning", "wireless", "data", "selection", "allocation"},
    "experiments": GROUND | {"learning", "wireless", "data", "selection", "allocation", "simulation"},
    "plots": GROUND | {"wireless", "allocation", "simulation"},
}


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
        for name in names:
            if name.split(".")[0] == "fedwave":
                parts.add([*name.split("."), "fedwave"][1])
    return parts


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    files = (
        [SOURCE / f"{part}.py"] if (SOURCE / f"{part}.py").exists() else list((SOURCE / part).rglob("*.py"))
    )
    for file in files:
        forbidden = imported_parts(file) - ALLOWED[part] - {part}
        assert not forbidden, f"{file.relative_to(SOURCE)} imports {sorted(forbidden)}"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fedwave", ("torch", "scipy", "matplotlib", "pydantic", "typer")),
        ("import fedwave.cli.app", ("torch", "sklearn", "matplotlib", "PIL")),
        ("import fedwave.data, fedwave.selection", ("torch", "sklearn", "matplotlib", "PIL")),
    ],
)
def test_heavy_libraries_are_not_loaded_until_needed(statement: str, absent: tuple[str, ...]) -> None:
    code = f"{statement}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_of_the_package_are_those_of_their_modules() -> None:
    import fedwave

    assert set(fedwave.__all__) == {*fedwave._HOME, "__version__"}
    for name, home in fedwave._HOME.items():
        assert getattr(fedwave, name) is getattr(sys.modules[home], name)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        fedwave.absent  # noqa: B018 - the look-up is what is tested
