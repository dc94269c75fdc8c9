"""Tables on a terminal of any width: what does not fit goes below, nothing is cut off."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

WIDE = 1_000  # characters; more than any table needs
MINUTE_S = 60.0
_GAP = 2  # between columns


def print_tables(console: Console, *tables: Table, first_share: float = 1 / 3) -> None:
    """Print tables one below the other; a pipe has no width, so there each stays in one piece.

    ``first_share`` of the width may be the first column's, where a table must be split.
    """
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for index, table in enumerate(tables):
        if index:
            console.print()
        for part_index, part in enumerate(split_to_width(console, table, first_share)):
            if part_index:
                console.print()
            console.print(part)


def short_time(seconds: float) -> str:
    """Return seconds as people say them: 40 s, 12 min, 3 h 05 min."""
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = round(seconds / MINUTE_S)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def split_to_width(console: Console, table: Table, first_share: float = 1 / 3) -> list[Table]:
    """Return the table in parts that fit the console, each with the first column; a long name is wrapped."""
    widths = [_width(console, column) for column in table.columns]
    if sum(widths) + _GAP * (len(widths) - 1) <= console.width:
        return [table]
    first = min(widths[0], max(int(console.width * first_share), 8))
    groups: list[list[int]] = [[]]
    used = first
    for index in range(1, len(widths)):
        if groups[-1] and used + _GAP + widths[index] > console.width:
            groups.append([])
            used = first
        groups[-1].append(index)
        used += _GAP + widths[index]
    return [_part(table, first, group) for group in groups]


def _part(table: Table, first_width: int, group: list[int]) -> Table:
    columns = [
        Column(table.columns[index].header, justify=table.columns[index].justify, overflow="fold")
        for index in (0, *group)
    ]
    columns[0].max_width = first_width
    part = Table(*columns, box=None, header_style=table.header_style, pad_edge=False, padding=(0, _GAP, 0, 0))
    cells = [list(table.columns[index].cells) for index in (0, *group)]
    for row in zip(*cells, strict=True):
        part.add_row(*row)
    return part


def _width(console: Console, column: Column) -> int:
    shown = (column.header, *column.cells)
    return max(Measurement.get(console, console.options.update(width=WIDE), one).maximum for one in shown)
