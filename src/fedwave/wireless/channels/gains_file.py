"""Channel gains from a file, so that measurements and other simulators' channels can be used.

.npy: (device,), (device, block) or (round, device, block). .csv: one row per device and one column per block,
or the long form with the header ``device,block,channel_gain`` or ``round,device,block,channel_gain``. Columns
whose names end in ``_db`` are in dB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedwave.csv_table import read_rows
from fedwave.errors import ProblemError
from fedwave.files import open_file
from fedwave.settings import FileName
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.sanity import gain_warnings

_LONG_HEADERS = (["device", "block", "channel_gain"], ["round", "device", "block", "channel_gain"])
_INDICES = ("round", "device", "block")
_LARGEST_INDEX = 2**53  # a float holds whole numbers up to here


class FileConfig(ChannelSection):
    """Power gains from a .npy or .csv file: measured, or made by Sionna, ns-3, DeepMIMO."""

    kind: Literal["file"] = "file"
    path: FileName
    in_db: bool = False
    beyond_last_round: Literal["error", "cycle"] = "error"

    def num_devices_of_file(self) -> int:
        """Return the number of devices whose gains the file has."""
        values, _ = _load(self.path)
        return int(values.shape[-2 if values.ndim == 3 else 0])

    def build(self, *, num_devices: int, num_blocks: int) -> FileChannel:
        """Return the channel after reading the file and checking its shape and every value."""
        values, says_db = _load(self.path)
        _check_shape(values, self.path, num_devices=num_devices, num_blocks=num_blocks)
        in_db = self.in_db or says_db
        return FileChannel(
            path=self.path,
            values=values,
            in_db=in_db,
            beyond_last_round=self.beyond_last_round,
            max_gain=_check_values(values, self.path, in_db=in_db),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FileChannel:
    """Checked gains of a file. ``values`` may be a memory map: a round is read when it is drawn."""

    path: Path
    values: NDArray[Any]  # (n,), (n, M) or (rounds, n, M)
    in_db: bool
    beyond_last_round: Literal["error", "cycle"]
    max_gain: float  # linear
    large_scale: None = None
    ergodic_k_factor: None = None

    @property
    def num_rounds(self) -> int | None:
        """Number of rounds in the file; None: it holds one channel for all rounds."""
        return len(self.values) if self.values.ndim == 3 else None

    @property
    def has_own_rounds(self) -> bool:
        """Whether the file has a round axis."""
        return self.num_rounds is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1."""
        return gain_warnings(self.max_gain, advice="Are the values dB (channel.in_db = true) or amplitudes?")

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the gains of one round, (n,) or (n, M); without a round axis all rounds are the same."""
        del rng
        num_rounds = self.num_rounds
        if num_rounds is None:
            return _linear(self.values, in_db=self.in_db)
        if round_index >= num_rounds and self.beyond_last_round == "error":
            raise ProblemError(
                f"The gains file {self.path} holds {num_rounds} rounds, but round {round_index} is asked "
                'for. Run fewer rounds, or set channel.beyond_last_round = "cycle" to start over.'
            )
        return _linear(self.values[round_index % num_rounds], in_db=self.in_db)


def read_gains(path: Path, *, in_db: bool = False) -> FloatArray:
    """Return all gains of a file, linear, whatever its number of devices and blocks."""
    values, says_db = _load(path)
    in_db = in_db or says_db
    if values.ndim not in (1, 2, 3) or values.size == 0:
        raise ProblemError(
            f"The gains file {path} has shape {_shape(values.shape)}. Give (devices,), (devices, blocks) or "
            "(rounds, devices, blocks)."
        )
    _check_values(values, path, in_db=in_db)
    return _linear(values, in_db=in_db)


def _load(path: Path) -> tuple[NDArray[Any], bool]:
    """Return the values of a file, and whether its header says that they are in dB."""
    if path.suffix == ".npy":
        return _load_npy(path), False
    if path.suffix == ".csv":
        return _load_csv(path)
    raise ProblemError(f'The gains file {path} is of kind "{path.suffix}". Save it as .npy or .csv.')


def _linear(values: NDArray[Any], *, in_db: bool) -> FloatArray:
    gain = np.array(values, dtype=np.float64)  # a copy: leaves the memory map
    return db_to_linear(gain) if in_db else gain


def _load_npy(path: Path) -> NDArray[Any]:
    try:
        with open_file(path) as file:
            values = _mapped(file)
    except OSError as error:
        raise ProblemError(
            f"Cannot read the gains file {path}: {error.strerror or error}. Check the path."
        ) from error
    except (ValueError, TypeError, OverflowError, EOFError, UserWarning) as error:  # of a header
        raise ProblemError(
            f"The gains file {path} is not a plain .npy array. Write it with numpy.save."
        ) from error
    if np.iscomplexobj(values):
        raise ProblemError(
            f"The gains file {path} holds complex amplitudes. Gains are power ratios: save abs(h) ** 2."
        )
    if values.dtype.kind not in "fiu":
        raise ProblemError(f"The gains file {path} holds {values.dtype} values. Save floating-point numbers.")
    return values


def _mapped(file: BufferedReader) -> NDArray[Any]:
    """Return the array of a .npy file as a memory map of the file that is open, not of its name."""
    version = np.lib.format.read_magic(file)
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    return np.memmap(file, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order)


def _load_csv(path: Path) -> tuple[FloatArray, bool]:
    rows, lines = read_rows(
        path, what="gains file", error=ProblemError, fix="Check the path.", has_comments=True
    )
    first = [text.strip() for text in rows[0]] if rows else []
    if any(_is_word(text) for text in first):
        rows, lines = rows[1:], lines[1:]
    if not rows:
        raise ProblemError(f"The gains file {path} is empty. Write one row per device.")
    for row, line in zip(rows, lines, strict=True):
        word = next((text for text in row if _is_word(text)), None)
        if word is not None or len(row) != len(first):
            got = f"{len(row)} values, not {len(first)}" if word is None else f'"{word.strip()}"'
            raise ProblemError(
                f"The gains file {path} has {got} in line {line}. Write one row per device and one number "
                "per block."
            )
    values = np.array(rows, dtype=np.float64)
    names = [text for text in first if text not in _INDICES]
    says_db = bool(names) and all(text.endswith("_db") for text in names)
    if [text.removesuffix("_db") for text in first] in _LONG_HEADERS:
        return _long_to_dense(values, path), says_db
    return (values[:, 0] if values.shape[1] == 1 else values), says_db


def _is_word(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return True
    return False


def _long_to_dense(table: FloatArray, path: Path) -> FloatArray:
    """Return (device, block) or (round, device, block) from rows of indices and a gain."""
    index = table[:, :-1]
    if not ((index >= 0) & (index < _LARGEST_INDEX)).all() or (index != np.floor(index)).any():
        raise ProblemError(
            f"The gains file {path} has an index that is not a whole number >= 0. Count from 0."
        )
    where = index.astype(np.int64)
    shape = tuple(int(size) for size in where.max(axis=0) + 1)
    if len(np.unique(where, axis=0)) != len(table) or len(table) != math.prod(shape):
        raise ProblemError(
            f"The gains file {path} has {len(table)} rows, but its indices span "
            f"{' x '.join(map(str, shape))}. Give every combination exactly once."
        )
    dense = np.empty(shape)
    dense[tuple(where.T)] = table[:, -1]
    return dense


def _check_shape(values: NDArray[Any], path: Path, *, num_devices: int, num_blocks: int) -> None:
    expected = {1: (num_devices,), 2: (num_devices, num_blocks), 3: (num_devices, num_blocks)}
    own_shape = values.shape[1:] if values.ndim == 3 else values.shape
    if values.size == 0 or own_shape != expected.get(values.ndim):
        raise ProblemError(
            f"The gains file {path} has shape {_shape(values.shape)}, but the cell has {num_devices} devices "
            f"and {num_blocks} blocks. Give {_shape((num_devices,))}, {_shape((num_devices, num_blocks))} or "
            f"(rounds, {num_devices}, {num_blocks}), or change num_blocks. Held-out devices never upload: "
            "they are not in the cell."
        )


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _check_values(values: NDArray[Any], path: Path, *, in_db: bool) -> float:
    """Return the largest gain (linear) after checking each, round by round: a large file need not fit."""
    largest = -np.inf
    for part_index, part in enumerate(values if values.ndim == 3 else [values]):
        before = (part_index,) if values.ndim == 3 else ()
        if not np.isfinite(part).all():
            where = _first(~np.isfinite(part))
            raise ProblemError(
                f"The gains file {path} has {float(part[where]):g} at index {_shape(before + where)}. "
                "Gains must be finite; write 0 for a device without a channel."
            )
        if not in_db and (part < 0).any():
            where = _first(part < 0)
            raise ProblemError(
                f"The gains file {path} has a negative gain, {float(part[where]):g} at index "
                f"{_shape(before + where)}. Gains are power ratios; if these are dB, set channel.in_db."
            )
        if in_db and (np.abs(part) > 1000).any():
            where = _first(np.abs(part) > 1000)
            raise ProblemError(
                f"The gains file {path} has {float(part[where]):g} dB at index {_shape(before + where)}. "
                "Gains must lie within 1000 dB; write -1000 for a device without a channel."
            )
        largest = max(largest, float(part.max()))
    return float(10.0 ** (largest / 10.0)) if in_db else largest


def _first(is_bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.unravel_index(int(np.argmax(is_bad)), is_bad.shape))
