"""Imports point one way, and importing fedwave is light."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fedwave"

# Single files under all: they may use the errors, and nothing else.
GROUND = {file.stem for file in SOURCE.glob("*.py")} - {"__init__", "__main__"}
DISCIPLINES = {"settings", "learning", "wireless", "data", "selection", "allocation"}
# What each part may import besides itself and the package's own name and version.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    **{name: {"errors"} for name in sorted(GROUND - {"errors"})},
    "files": {"ram"},
    "csv_table": {"errors", "files", "units"},
    "native_library": {"user_cache"},
    "__main__": {"cli"},
    "settings": GROUND,
    "learning": GROUND | {"settings"},
    "wireless": GROUND | {"settings"},
    "data": GROUND | {"settings"},
    "selection": GROUND,
    "allocation": GROUND | {"wireless"},
    "server": GROUND | {"wireless", "selection", "allocation"},
    "devices": GROUND | {"learning", "data", "selection", "server"},
    "theory": GROUND | {"learning", "selection", "server", "devices"},
    "simulation": GROUND | {"learning", "wireless", "allocation", "selection", "server", "devices", "theory"},
    "experiments": GROUND | DISCIPLINES | {"server", "devices", "theory", "simulation"},
    "runs": GROUND | DISCIPLINES | {"server", "devices", "theory", "simulation", "experiments"},
    "longterm": GROUND
    | {"selection", "wireless", "allocation", "server", "simulation", "experiments", "runs"},
    "plots": GROUND | {"wireless", "allocation", "runs", "longterm"},
    "pages": GROUND | {"experiments", "runs", "plots"},
    "demo": GROUND | {"runs", "plots"},
    "reproduce": GROUND
    | DISCIPLINES
    | {"server", "devices", "simulation", "experiments", "runs", "plots", "pages"},
    "cli": GROUND
    | DISCIPLINES
    | {"server", "theory", "simulation", "experiments", "runs", "longterm", "plots", "pages", "reproduce"}
    | {"explore", "demo"},
    "flower": GROUND | DISCIPLINES | {"server", "devices", "simulation", "experiments", "runs"},
    "explore": GROUND | {"settings", "wireless", "allocation", "server", "experiments", "runs", "plots"},
    "testing": GROUND | DISCIPLINES | {"server"},
}


def files_of(part: str) -> list[Path]:
    return sorted((SOURCE / part).rglob("*.py")) or [SOURCE / f"{part}.py"]


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0] == "fedwave":
                parts.add([*name.split("."), "fedwave"][1])
    return parts


def test_every_part_of_the_package_has_its_place() -> None:
    here = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert here - {"__init__"} == set(ALLOWED)


def test_no_part_may_import_what_may_import_it() -> None:
    for part, others in ALLOWED.items():
        assert not [other for other in others if part in ALLOWED[other]]


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    for file in files_of(part):
        forbidden = imported_parts(file) - ALLOWED[part] - {part, "fedwave"}
        assert not forbidden, f"{file.relative_to(SOURCE)} imports {sorted(forbidden)}"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import fedwave", ("numpy", "torch", "scipy", "matplotlib", "pydantic", "typer")),
        (
            "import fedwave.cli.app",
            ("torch", "sklearn", "matplotlib", "PIL", "pooch", "starlette", "uvicorn", "fedwave.explore"),
        ),
        ("import fedwave.explore.workbench, fedwave.explore.api", ("torch", "sklearn", "starlette", "rich")),
        ("import fedwave.data, fedwave.selection", ("torch", "sklearn", "matplotlib", "PIL", "pydantic")),
        ("import fedwave.allocation, fedwave.server", ("torch", "pydantic", "sklearn", "matplotlib", "rich")),
        ("import fedwave.wireless.settings.load", ("torch", "sklearn", "matplotlib", "rich")),
        ("import fedwave.theory", ("torch", "pydantic", "sklearn", "matplotlib", "rich")),
        ("import fedwave.experiments", ("torch", "sklearn", "matplotlib", "rich")),
        (
            "import fedwave.runs.run, fedwave.runs.observers",
            ("scipy.stats", "scipy.optimize", "scipy.special"),
        ),
    ],
)
def test_heavy_libraries_are_not_loaded_until_needed(statement: str, absent: tuple[str, ...]) -> None:
    code = f"{statement}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"


HEAVY = ("torch", "matplotlib", "sklearn", "pandas", "PIL", "scipy.stats", "scipy.optimize", "scipy.special")


@pytest.mark.parametrize(
    ("words", "absent", "most"),
    [
        ("--help", (*HEAVY, "numpy"), 500),
        ("--version", (*HEAVY, "numpy"), 500),
        ("presets", (*HEAVY, "numpy"), 500),
        ("presets paper/nufm", (*HEAVY, "numpy"), 500),
        ("run --help", (*HEAVY, "numpy"), 500),
        ("demo --help", (*HEAVY, "numpy"), 500),
        ("datasets --help", (*HEAVY, "numpy"), 500),
        ("cell", (*HEAVY, "numpy"), 500),
        ("cell --help", (*HEAVY, "numpy"), 500),
        ("cell umi-3.5ghz", HEAVY, 750),
        ("allocate --help", (*HEAVY, "numpy"), 500),
        ("allocate --example", HEAVY, 650),
        ("allocate problem.toml", HEAVY, 650),
        ("allocate problem.toml --compare", HEAVY, 650),
    ],
)
def test_a_command_loads_only_what_it_needs(
    words: str, absent: tuple[str, ...], most: int, tmp_path: Path
) -> None:
    """Modules are counted, as times would depend on the machine."""
    from fedwave.allocation import example_problem

    (tmp_path / "problem.toml").write_text(example_problem())
    code = (
        f"import sys; sys.argv = ['fedwave', *{words.split()!r}]\n"
        "from fedwave.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print([name for name in {absent!r} if name in sys.modules], len(sys.modules), file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=tmp_path,
    )
    loaded, count = done.stderr.strip().splitlines()[-1].rsplit(" ", 1)
    assert loaded == "[]"
    assert int(count) < most


def test_names_in_the_help_are_those_of_the_package() -> None:
    from fedwave.allocation import METHODS
    from fedwave.cli.allocate import allocate_command
    from fedwave.cli.datasets import DOWNLOAD_NAMES
    from fedwave.data.sources.download import DOWNLOADS

    named = re.findall(r"\*([\w-]+)\*", allocate_command.__doc__ or "")
    assert sorted(named) == sorted(METHODS)
    assert tuple(DOWNLOADS) == DOWNLOAD_NAMES


@pytest.mark.parametrize("part", ALLOWED)
def test_no_part_reaches_what_stands_above_it_through_the_package(part: str) -> None:
    """The package loads its public names from anywhere, so inside only its version is asked for."""
    for file in files_of(part):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "fedwave":
                assert {alias.name for alias in node.names} <= {"__version__"}, file.relative_to(SOURCE)
