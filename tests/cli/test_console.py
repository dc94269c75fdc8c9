"""Tables on a terminal of any width: nothing is cut off."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from fedwave.cli.console import print_tables
from fedwave.cli.run_tables import cost_table, final_table
from tests.runs.written_runs import write_run


def test_at_80_columns_nothing_is_cut_off(tmp_path: Path) -> None:
    name = "a rather long name of a run with [markup] and everything in it"
    runs = [
        write_run(tmp_path / "a", name, [0.5], over_cell=True),
        write_run(tmp_path / "b", "b", [0.25, 0.75], over_cell=True),
    ]
    for width in (20, 40, 80, 200):
        file = io.StringIO()
        console = Console(file=file, width=width, force_terminal=True, color_system=None)
        print_tables(console, final_table(runs), cost_table(runs))
        text = file.getvalue()
        assert "…" not in text
        assert all(len(line.rstrip()) <= max(width, 34) for line in text.splitlines())
        if width < 80:  # there, headings and numbers are wrapped too
            continue
        everything = "".join(text.split())
        assert all(word in text for word in name.split())
        for table in (final_table(runs), cost_table(runs)):
            for column in table.columns:
                shown = [cell.plain if isinstance(cell, Text) else str(cell) for cell in column.cells]
                for cell in (str(column.header), *shown):
                    assert cell == name or "".join(cell.split()) in everything
