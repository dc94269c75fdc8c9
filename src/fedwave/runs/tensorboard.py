"""Logs every number of a round to TensorBoard."""

from __future__ import annotations

from pathlib import Path

from fedwave.errors import import_extra
from fedwave.experiments.schema import Experiment
from fedwave.simulation.records import RoundRecord


class TensorBoardLog:
    """An observer that writes TensorBoard event files."""

    def __init__(self, folder: Path) -> None:
        import_extra("tensorboard", purpose="execution.tensorboard", extra="tensorboard")
        self._folder = folder

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Open the log; what it holds of rounds that will be run again is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=next_round)

    def round_done(self, record: RoundRecord) -> None:
        """Write the round's numbers."""
        for name, value in record.columns.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, value, record.round_index)
        self._writer.flush()
