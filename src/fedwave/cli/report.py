"""``fedwave report``."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR", help="Folders of runs, finished or not."),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Page to write."),
) -> None:
    """Make one HTML page of runs: it opens offline, and its charts answer to the mouse.

    Curves by rounds and, over a cell, by seconds and joules; who was selected how often; energy by phase and
    by device; the terms of the allocation's objective; settings, and what differs between the runs.
    """
    from fedwave.pages.page import write_page
    from fedwave.pages.runs_page import runs_page
    from fedwave.runs.compare import read_run

    typer.echo(f"Report: {write_page(out, runs_page([read_run(path) for path in paths]))}")
