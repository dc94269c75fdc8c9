"""What a file of channel gains holds: its shape, its levels, and how it fades over blocks and rounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, linear_to_db
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.gains_file import read_gains

GAINS_SUFFIXES = (".npy", ".csv")


@dataclass(frozen=True)
class GainsDescription:
    """A file of gains in numbers. What one round or one block cannot show is None."""

    path: str
    num_rounds: int | None  # None: one channel for all rounds
    num_devices: int
    num_blocks: int | None  # None: the same on all blocks
    weakest_db: float  # of all gains that are not zero
    median_db: float
    strongest_db: float
    num_zero: int
    spread_over_devices_db: float  # standard deviation of the devices' mean gains
    spread_over_rounds_db: float | None  # of a device's mean over blocks, over rounds; the mean over devices
    next_block_correlation: float | None  # of neighbouring blocks, over devices and rounds, means taken out
    best_block_db: float | None  # the best block over the mean of all, the mean over devices and rounds

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return label and text of each fact that applies."""
        rounds = "one channel for all rounds" if self.num_rounds is None else f"{self.num_rounds} rounds"
        blocks = "the same on all blocks" if self.num_blocks is None else f"{self.num_blocks} blocks"
        levels = f"{self.weakest_db:.1f}, {self.median_db:.1f}, {self.strongest_db:.1f} dB"
        found = [
            ("holds", f"{rounds}, {self.num_devices} devices, {blocks}"),
            ("weakest, median, strongest", levels),
            ("deviation over devices", f"{self.spread_over_devices_db:.1f} dB"),
        ]
        if self.num_zero:
            found.append(("without a channel", f"{self.num_zero} gains are zero"))
        if self.spread_over_rounds_db is not None:
            found.append(("deviation over rounds", f"{self.spread_over_rounds_db:.1f} dB, a device's mean"))
        if self.next_block_correlation is not None:
            found.append(("correlation of neighbouring blocks", f"{self.next_block_correlation:.2f}"))
        if self.best_block_db is not None:
            found.append(("best block over the mean", f"{self.best_block_db:.1f} dB"))
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def describe_gains(path: Path, *, in_db: bool = False) -> GainsDescription:
    """Return what the file holds. It is read whole."""
    values = read_gains(path, in_db=in_db)
    gain = np.atleast_3d(values) if values.ndim == 1 else values  # (1, n, 1)
    gain = gain[np.newaxis] if gain.ndim == 2 else gain  # (rounds, n, M)
    heard = gain[gain > 0]
    if heard.size == 0:
        raise ProblemError(
            f"The gains file {path} holds zeros alone. Nobody would be heard; check its units."
        )
    device_mean = gain.mean(axis=(0, 2))
    wideband = gain.mean(axis=2)
    is_heard = wideband.min(axis=0) > 0
    levels_db = linear_to_db(heard)
    several_rounds, several_blocks = len(gain) > 1, gain.shape[2] > 1
    return GainsDescription(
        path=str(path),
        num_rounds=len(values) if values.ndim == 3 else None,
        num_devices=gain.shape[1],
        num_blocks=None if values.ndim == 1 else gain.shape[2],
        weakest_db=float(levels_db.min()),
        median_db=float(np.median(levels_db)),
        strongest_db=float(levels_db.max()),
        num_zero=int(np.sum(gain == 0)),
        spread_over_devices_db=float(linear_to_db(device_mean[device_mean > 0]).std()),
        spread_over_rounds_db=float(linear_to_db(wideband[:, is_heard]).std(axis=0).mean())
        if several_rounds and is_heard.any()
        else None,
        next_block_correlation=_next_block_correlation(
            gain / np.where(device_mean > 0, device_mean, 1.0)[:, np.newaxis]
        )
        if several_blocks
        else None,
        best_block_db=float(linear_to_db(gain.max(axis=2)[wideband > 0] / wideband[wideband > 0]).mean())
        if several_blocks
        else None,
    )


def export_gains(cell: Cell, path: Path, *, num_rounds: int) -> None:
    """Write the cell's gains as (rounds, devices, blocks), to be read with ``channel.kind = "file"``."""
    if path.suffix != ".npy":
        raise ProblemError(f'Gains are exported as .npy, got "{path.name}". Name the file gains.npy.')
    if num_rounds < 1:
        raise ProblemError(f"num_rounds must be >= 1, got {num_rounds}. Give the rounds to export.")
    gains = np.empty((num_rounds, cell.num_devices, cell.num_blocks))
    for round_index in range(num_rounds):
        drawn = cell.draw(round_index).channel_gain
        gains[round_index] = drawn if drawn.ndim == 2 else drawn[:, np.newaxis]
    try:
        np.save(path, gains)
    except OSError as error:
        raise ProblemError(f"Cannot write {path}: {error.strerror}. Use a folder that exists.") from error


def _next_block_correlation(normalised: FloatArray) -> float | None:
    """Return the correlation of neighbours; None where nothing varies."""
    left, right = normalised[..., :-1].ravel(), normalised[..., 1:].ravel()
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(np.corrcoef(left, right)[0, 1])
