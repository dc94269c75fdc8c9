"""TensorBoard: event files in the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedwave.errors import import_extra
from fedwave.experiments.schema import Experiment
from fedwave.runs.trackers import numbers_of
from fedwave.simulation.records import RoundRecord

FOLDER = "tensorboard"


class TensorBoardLog:
    """Writes every number of a round as a scalar."""

    def __init__(self) -> None:
        import_extra("tensorboard", purpose="execution.tensorboard", extra="tensorboard")
        self._writer: Any = None

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Open the log; what it holds of rounds that will be run again is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        del experiment, warnings
        self._writer = SummaryWriter(str(folder / FOLDER), purge_step=next_round)

    def round_done(self, record: RoundRecord) -> None:
        """Write the round's numbers."""
        for name, value in numbers_of(record.columns).items():
            self._writer.add_scalar(name, value, record.round_index)
        self._writer.flush()

    def ended(self, summary: Mapping[str, Any] | None, *, has_failed: bool) -> None:
        """Close the files."""
        del summary, has_failed  # TensorBoard has no place for them
        if self._writer is not None:
            self._writer.close()
