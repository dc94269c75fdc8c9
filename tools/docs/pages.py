"""The pages of the documentation, and the parts of them that are written by a script."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))  # their prose shows measured numbers, too


def read(name: str) -> str:
    """Return the text of a page: of docs/, or README.md or CONTRIBUTING.md."""
    folder = ROOT if name in ("README.md", "CONTRIBUTING.md") else DOCS
    return (folder / name).read_text(encoding="utf-8")


def written_part(page: str, name: str) -> str:
    """Return what stands between the marks of a part that a script writes."""
    return _marks(name).search(read(page))[2]  # type: ignore[index]


def write_part(page: str, name: str, text: str) -> None:
    """Put ``text`` between the marks ``<!-- name:begin ... -->`` and ``<!-- name:end -->``."""
    path = DOCS / page
    new, count = _marks(name).subn(lambda found: found[1] + text + found[3], read(page))
    assert count == 1, f"{page} has {count} parts called {name}"
    path.write_text(new, encoding="utf-8")


def _marks(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}:begin [^>]*-->\n)(.*?)(<!-- {name}:end -->)", re.DOTALL)


def escape(text: str) -> str:
    """Return the text as it must stand in a cell of a table."""
    return text.replace("|", r"\|")
