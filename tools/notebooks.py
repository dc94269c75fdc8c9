"""Builds the notebooks: notebooks/NAME.py is the text that people edit, NAME.ipynb what others open.

    python -m tools.notebooks

The .ipynb has no outputs, so that it changes only when its text does; a test compares them.
"""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat

from tools.docs.pages import ROOT

FOLDER = ROOT / "notebooks"


def sources() -> list[Path]:
    """Return the notebooks as text."""
    return sorted(FOLDER.glob("*.py"))


def built(source: Path) -> nbformat.NotebookNode:
    """Return a notebook made of its text; cells are numbered, where jupytext would draw names for them."""
    notebook = jupytext.read(source)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.metadata.pop("jupytext", None)
    return notebook


def text(notebook: nbformat.NotebookNode) -> str:
    """Return a notebook as its file has it."""
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    """Write every .ipynb."""
    for source in sources():
        source.with_suffix(".ipynb").write_text(text(built(source)), encoding="utf-8")


if __name__ == "__main__":
    main()
