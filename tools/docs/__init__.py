"""What is generated in the documentation: `python -m tools.docs` writes it, tests/docs checks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tools.docs.api_table import api_tables
from tools.docs.columns_table import columns_table
from tools.docs.commands_table import commands_reference
from tools.docs.module_tree import imports_table, tree
from tools.docs.reproduced import verdicts
from tools.docs.settings_table import schemes_table, settings_tables

# (page, name of the part): what must stand there.
GENERATED: dict[tuple[str, str], Callable[[], str]] = {
    ("command-line.md", "commands"): commands_reference,
    ("training.md", "settings"): settings_tables,
    ("training.md", "schemes"): schemes_table,
    ("run-folder.md", "rounds"): partial(columns_table, "rounds.csv"),
    ("run-folder.md", "devices"): partial(columns_table, "devices.csv"),
    ("run-folder.md", "heldout"): partial(columns_table, "heldout.csv"),
    ("reproduction.md", "verdicts"): verdicts,
    ("api.md", "api"): api_tables,
    ("modules.md", "tree"): tree,
    ("modules.md", "imports"): imports_table,
}
