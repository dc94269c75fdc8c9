"""Measured numbers stand once, in docs/results.toml; pages show them between marks that name them.

Those of the group ``reproduction`` are computed from the tables in docs/reproduction/, those of ``theory``
from the two tables of that page in docs/figures/.

A page says ``<!--=round.seconds-->0.59 s<!--/=-->``; only the value is visible. A value of several lines (a
table) stands between its marks on lines of its own. To publish another measurement, change docs/results.toml
and run ``python -m tools.docs``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from tools.docs import reproduced, theory_page
from tools.docs.pages import DOCS

FILE = DOCS / "results.toml"
SHOWN = re.compile(r"<!--=([\w.-]+)-->(.*?)<!--/=-->", re.DOTALL)
ABOUT = ("command", "caveat")  # of a group; all its other keys are values


def measurements() -> dict[str, dict[str, str]]:
    """Return the groups of docs/results.toml, one command's values each, and those that are computed."""
    return tomllib.loads(FILE.read_text(encoding="utf-8")) | {
        "reproduction": reproduced.numbers(),
        "theory": theory_page.numbers(),
    }


def values() -> dict[str, str]:
    """Return every value as pages show it, by ``group.name``. A command is shown as code."""
    found = {}
    for group, entries in measurements().items():
        for name, text in entries.items():
            shown = f"`{text}`" if name == "command" else text.strip("\n")
            found[f"{group}.{name}"] = f"\n{shown}\n" if "\n" in shown else shown
    return found


def filled_in(page: str) -> str:
    """Return the text of a page with every marked value as docs/results.toml has it."""
    known = values()

    def shown(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise KeyError(f"docs/results.toml has no {found[1]}")
        return f"<!--={found[1]}-->{known[found[1]]}<!--/=-->"

    return SHOWN.sub(shown, page)


def marked(page: str) -> Iterator[str]:
    """Yield the names of the values that a page shows."""
    for found in SHOWN.finditer(page):
        yield found[1]
