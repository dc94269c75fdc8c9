"""A progress bar that watches a run."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedwave.experiments.schema import Experiment
from fedwave.runs.compare import short_number
from fedwave.simulation.records import RoundRecord


class ProgressBar:
    """Shows the round, the loss and the held-out metric. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._metric = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Show the bar where the run begins."""
        for warning in warnings:
            self._progress.console.print(f"[yellow]warning:[/yellow] {escape(warning)}", highlight=False)
        self._metric = ""
        self._progress.start()  # not earlier: an error in the settings should stand alone
        self._task = self._progress.add_task(
            escape(experiment.name), total=experiment.num_rounds, completed=next_round, figures=""
        )

    def round_done(self, record: RoundRecord) -> None:
        """Move on by one round."""
        if record.heldout is not None:
            shown, value = record.heldout.measured, record.heldout.mean_metric
            figure = f"{value:.1%}" if shown.is_share else f"{value:.4g}"
            self._metric = f"  {shown.name.replace('_', ' ')} {figure}"
        if record.columns.get("num_received") == 0:
            note = escape(str(record.columns.get("note", "")))
            self._progress.console.print(f"round {record.round_index}: {note}", highlight=False)
        cost = ""
        if "cumulative_delay_s" in record.columns:
            cost = (
                f"  {short_number(record.columns['cumulative_delay_s'])} s"
                f"  {short_number(record.columns['cumulative_energy_j'])} J"
            )
        self._progress.update(
            self._task, advance=1, figures=f"loss {record.columns['train_loss']:.3f}{self._metric}{cost}"
        )
