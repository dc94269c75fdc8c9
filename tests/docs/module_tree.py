"""The tree of modules and the table of imports in docs/one-round.md, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.docs.pages import ROOT

SOURCE = ROOT / "src" / "fedwave"
# In the order in which imports point: each part may use those before it.
PARTS = (
    "errors",
    "rng",
    "units",
    "memory",
    "toml_text",
    "numerics",
    "console",
    "settings",
    "learning",
    "wireless",
    "data",
    "selection",
    "allocation",
    "server",
    "simulation",
    "experiments",
    "runs",
    "plots",
    "pages",
    "reproduce",
    "flower",
    "explore",
    "cli",
    "__main__",
)
NUM_GROUND = 7  # single files that stand on their own


def tree() -> str:
    """Return every module with the first line of its docstring, folder by folder."""
    lines = ["```text"]
    for part in PARTS:
        path = SOURCE / part
        lines += (
            _folder(path, "") if path.is_dir() else [_line(path.with_suffix(".py"), "", path.name + ".py")]
        )
    return "\n".join([*lines, "```", ""])


def imports_table() -> str:
    """Return what each part imports of the others."""
    rows = []
    for part in PARTS:
        path = SOURCE / part
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        used = set().union(*(imported_parts(file) for file in files)) - {part, "fedwave"}
        ordered = [f"`{other}`" for other in PARTS if other in used and other not in PARTS[:NUM_GROUND]]
        rows.append(f"| `{part}` | {', '.join(ordered) or '–'} |")
    return "\n".join(["| part | imports |", "|---|---|", *rows[NUM_GROUND:-1], ""])


def imported_parts(file: Path) -> set[str]:
    """Return the parts of fedwave that a file imports, at its top or inside functions."""
    parts = set()
    for node in ast.walk(_without_type_checking(ast.parse(file.read_text(encoding="utf-8")))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        parts |= {[*name.split("."), "fedwave"][1] for name in names if name.split(".")[0] == "fedwave"}
    return parts


def _without_type_checking(module: ast.Module) -> ast.Module:
    kept = [
        node
        for node in module.body
        if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    ]
    return ast.Module(body=kept, type_ignores=[])


def _folder(folder: Path, indent: str) -> list[str]:
    lines = [_line(folder / "__init__.py", indent, folder.name + "/")]
    inner = indent + "  "
    for file in sorted(folder.glob("*.py")):
        if file.name != "__init__.py":
            lines.append(_line(file, inner, file.name))
    for sub in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines += _folder(sub, inner)
    return lines


def _line(file: Path, indent: str, shown: str) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return f"{indent + shown:28} {docstring.splitlines()[0]}"
