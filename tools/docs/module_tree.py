"""The tree of modules and the table of imports in docs/modules.md, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.docs.pages import ROOT

SOURCE = ROOT / "src" / "fedwave"
# Single files that stand on their own: the ground under all.
GROUND = tuple(sorted({file.stem for file in SOURCE.glob("*.py")} - {"__init__", "__main__"}))
# In the order in which imports point: each part may use those before it.
FOLDERS = (
    "settings",
    "learning",
    "wireless",
    "data",
    "selection",
    "allocation",
    "server",
    "testing",
    "devices",
    "theory",
    "simulation",
    "experiments",
    "runs",
    "longterm",
    "plots",
    "pages",
    "demo",
    "reproduce",
    "flower",
    "explore",
    "cli",
)


def tree() -> str:
    """Return every module with the first line of its docstring, folder by folder."""
    lines = ["```text"]
    lines += [_line(SOURCE / f"{name}.py", "", f"{name}.py") for name in GROUND]
    for folder in FOLDERS:
        lines += _folder(SOURCE / folder, "")
    lines.append(_line(SOURCE / "__main__.py", "", "__main__.py"))
    return "\n".join([*lines, "```", ""])


def imports_table() -> str:
    """Return what each folder imports of the others; all may use the ground."""
    rows = []
    for folder in FOLDERS:
        files = (SOURCE / folder).rglob("*.py")
        used = set().union(*(imported_parts(file) for file in files)) - {folder}
        ordered = [f"`{other}`" for other in FOLDERS if other in used]
        rows.append(f"| `{folder}` | {', '.join(ordered) or '–'} |")
    return "\n".join(["| part | imports |", "|---|---|", *rows, ""])


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
