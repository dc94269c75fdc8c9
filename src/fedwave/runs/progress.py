"""A progress bar that watches a run; where there is no terminal, a line now and then."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedwave.experiments.schema import Experiment
from fedwave.runs.compare import short_number
from fedwave.simulation.records import RoundRecord

SECONDS_BETWEEN_LINES = 30.0  # in a log file


class ProgressBar:
    """Shows the round, the loss and the held-out metric. Use as a context manager.

    A note that holds for many rounds is said when it begins and when it ends, not every time.
    """

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._metric = ""
        self._note = ""
        self._note_since = self._last_round = 0
        self._num_rounds = 0
        self._last_line_s = 0.0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_note()
        if self._progress.live.is_started:
            self._progress.stop()

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Show the bar where the run begins."""
        del folder, warnings  # the package logs them
        self._end_note()
        self._metric = ""
        self._num_rounds = experiment.num_rounds
        self._last_line_s = time.monotonic()
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
        self._say_note(record)
        loss = record.columns.get("train_loss")
        figures = ("" if loss is None else f"loss {loss:.3f}") + self._metric
        if "cumulative_delay_s" in record.columns:
            figures += (
                f"  {short_number(record.columns['cumulative_delay_s'])} s"
                f"  {short_number(record.columns['cumulative_energy_j'])} J"
            )
        self._progress.update(self._task, advance=1, figures=figures)
        self._say_how_far(record.round_index, figures)

    def _say_how_far(self, round_index: int, figures: str) -> None:
        now = time.monotonic()
        if not self._progress.disable or now - self._last_line_s < SECONDS_BETWEEN_LINES:
            return
        self._last_line_s = now
        self._print(f"round {round_index + 1} of {self._num_rounds}  {figures}")

    def _say_note(self, record: RoundRecord) -> None:
        is_worth_saying = record.columns.get("num_received") == 0
        note = str(record.columns.get("note", "")) if is_worth_saying else ""
        if note != self._note:
            self._end_note()
            if note:
                self._print(f"round {record.round_index}: {note}")
            self._note, self._note_since = note, record.round_index
        self._last_round = record.round_index

    def _end_note(self) -> None:
        """Say for how long the last note held."""
        if self._note and self._last_round > self._note_since:
            self._print(f"rounds {self._note_since} to {self._last_round}: the same")
        self._note = ""

    def _print(self, line: str) -> None:
        self._progress.console.print(escape(line), highlight=False, soft_wrap=True)
