"""Watches a run: a progress bar, or lines now and then where there is no terminal."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedwave.experiments.schema import Experiment
from fedwave.intervals import short_number
from fedwave.simulation.records import RoundRecord

if TYPE_CHECKING:
    from fedwave.devices.base import HeldOutResult

SECONDS_BETWEEN_LINES = 30.0  # in a log file
MAX_SPANS = 6  # stretches of rounds in one line
_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")


class ProgressBar:
    """Shows the round, the loss and the held-out metric. Use as a context manager.

    Without a terminal, in a log, it says its first round and its last, and some between if they take long. A
    note is said when it first holds, and once more at the end, with all of its rounds.
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
        self._rounds_of_note: dict[str, list[int]] = {}
        self._num_rounds = 0
        self._last_line_s = -math.inf
        self._unsaid = ""  # how far the run is, where no line has said so yet

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._sum_up()
        if self._progress.live.is_started:
            self._progress.stop()

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Show the bar where the run begins."""
        del folder, warnings  # the package logs them
        self._sum_up()
        self._metric = ""
        self._num_rounds = experiment.num_rounds
        self._last_line_s = -math.inf
        self._progress.start()  # not earlier: an error in the settings should stand alone
        self._task = self._progress.add_task(
            escape(experiment.name), total=experiment.num_rounds, completed=next_round, figures=""
        )

    def round_done(self, record: RoundRecord) -> None:
        """Move on by one round."""
        if record.heldout is not None:
            self._metric = f"  {heldout_figure(record.heldout)}"
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
        if not self._progress.disable:
            return
        self._unsaid = f"round {round_index + 1} of {self._num_rounds}  {figures}"
        if time.monotonic() - self._last_line_s >= SECONDS_BETWEEN_LINES:
            self._say_unsaid()

    def _say_unsaid(self) -> None:
        if self._unsaid:
            self._print(self._unsaid)
        self._unsaid, self._last_line_s = "", time.monotonic()

    def _say_note(self, record: RoundRecord) -> None:
        """Say a note the first time that it holds. Figures in it may differ from round to round."""
        note = str(record.columns.get("note", "")) if record.columns.get("num_received") == 0 else ""
        if not note:
            return
        kind = _FIGURE.sub("…", note)
        if kind not in self._rounds_of_note:
            self._print(f"round {record.round_index}: {note}")
        self._rounds_of_note.setdefault(kind, []).append(record.round_index)

    def _sum_up(self) -> None:
        """Say how far the run came, and in which rounds each note held, where those were several."""
        self._say_unsaid()
        for kind, rounds in self._rounds_of_note.items():
            if len(rounds) > 1:
                self._print(f"{len(rounds)} rounds, {spans(rounds)}: {kind}")
        self._rounds_of_note = {}

    def _print(self, line: str) -> None:
        self._progress.console.print(escape(line), highlight=False, soft_wrap=True)


def heldout_figure(heldout: HeldOutResult) -> str:
    """Return the held-out metric by its name, a share in per cent: "accuracy 84.9%"."""
    shown, value = heldout.measured, heldout.mean_metric
    figure = f"{value:.1%}" if shown.is_share else f"{value:.4g}"
    return f"{shown.name.replace('_', ' ')} {figure}"


def spans(rounds: Sequence[int]) -> str:
    """Return increasing round numbers as stretches: "3, 31–50"; many stretches are cut short."""
    stretches: list[list[int]] = []
    for k in rounds:
        if stretches and k == stretches[-1][1] + 1:
            stretches[-1][1] = k
        else:
            stretches.append([k, k])
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in stretches[:MAX_SPANS]]
    return ", ".join(shown + (["…"] if len(stretches) > MAX_SPANS else []))
