"""``fedwave datasets``: what data is known, where it was found, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from fedwave.cli.plain import HELP, PlainCommand, PlainGroup
from fedwave.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from fedwave.data.sources import Entry

DOWNLOAD_NAMES = (
    "fashion-mnist",
    "cifar-10",
    "cifar-100",
    "tiny-imagenet",
)  # of DOWNLOADS, for the help alone

datasets_app = typer.Typer(
    help="""List the datasets and where they were found, or download one.

    Examples:

    `fedwave datasets`

    `fedwave datasets download fashion-mnist`
    """,
    cls=PlainGroup,
    context_settings=HELP,
)

_DATA_DIR_HELP = "Folder that holds datasets; searched before FEDWAVE_DATA and the user cache."


@datasets_app.callback(invoke_without_command=True)
def list_datasets(
    context: typer.Context,
    data_dir: Path | None = typer.Option(None, "--data-dir", metavar="DIR", help=_DATA_DIR_HELP),
) -> None:
    """List the datasets and where they were found."""
    if context.invoked_subcommand is not None:
        return
    from fedwave.data.sources import DATASETS

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("dataset", "samples", "classes", "sample"):
        table.add_column(heading, no_wrap=True)
    table.add_column("where", overflow="fold")
    terms = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    terms.add_column("dataset", no_wrap=True)
    terms.add_column("licence and citation")
    for name, entry in DATASETS.items():
        where = _where(entry, data_dir)
        table.add_row(name, entry.num_samples, entry.num_classes, entry.sample, where)
        terms.add_row(name, entry.licence)
    console = Console(markup=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # a pipe has no width; keep each dataset on one line
    console.print(table)
    console.print()
    console.print(terms)
    console.print("\nFetch one that is not found with: fedwave datasets download NAME")


@datasets_app.command("download", cls=PlainCommand, context_settings=HELP)
def download(
    context: typer.Context,
    name: str = typer.Argument(metavar="NAME", help=f"One of: {', '.join(DOWNLOAD_NAMES)}."),
    data_dir: Path | None = typer.Option(
        None, "--data-dir", metavar="DIR", help="Folder to download to; without it, the per-user cache."
    ),
    force: bool = typer.Option(False, "--force", help="Fetch it again even if it is there."),
) -> None:
    """Download a dataset from its publisher and verify its checksums.

    Examples:

    `fedwave datasets download cifar-10`

    `fedwave datasets download cifar-10 --data-dir my-data`
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from fedwave.data.sources import DATASETS
    from fedwave.data.sources.download import DOWNLOADS, download_dataset

    if name not in DOWNLOADS and name not in DATASETS:  # before a bar is shown
        raise ConfigError(f'There is no download for "{name}". {did_you_mean(name, DOWNLOADS)}')
    if name not in DOWNLOADS:
        raise ConfigError(f"Nothing to download for {name}: {DATASETS[name].origin}. Use it as it is.")
    if data_dir is None and context.parent is not None:
        given = context.parent.params.get("data_dir")
        data_dir = None if given is None else Path(given)
    console = Console(markup=False)
    console.print(f"{name}: about {DOWNLOADS[name].size_mb} MB. Licence: {DATASETS[name].licence}.")
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        folder = download_dataset(
            name, target=data_dir, force=force, progress=lambda file: _FileProgress(bars, bars.add_task(file))
        )
    console.print(f"{name} is in {folder}", soft_wrap=True)


def _where(entry: Entry, data_dir: Path | None) -> str:
    if entry.find is None:
        return entry.origin
    found = entry.find(data_dir)
    return str(found) if found else "not found"


class _FileProgress:
    """One file's bar, with the few methods that pooch calls on a progress bar."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    @property
    def total(self) -> int:
        """The number of bytes to come."""
        return int(self._bars.tasks[self._task].total or 0)

    @total.setter
    def total(self, num_bytes: int) -> None:
        self._bars.update(self._task, total=num_bytes)

    def update(self, num_bytes: int) -> None:
        """Count bytes that have arrived."""
        self._bars.advance(self._task, num_bytes)

    def reset(self) -> None:
        """Start over; pooch does so before it fills the bar."""
        self._bars.reset(self._task)

    def close(self) -> None:
        """Leave the bar as it is."""
