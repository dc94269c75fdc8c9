"""Reads arrays by name from a .npz file, and never a pickle."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import DataError
from fedwave.files import open_file
from fedwave.ram import require_memory

# What zipfile and numpy raise on damaged content: a header is parsed as Python, and may be anything.
_UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    RuntimeError,
    SyntaxError,
    OverflowError,
    MemoryError,
    AttributeError,
    UserWarning,  # of a header that Python 2 wrote, where warnings are errors
    zlib.error,
    zipfile.BadZipFile,
)


def read_npz(
    path: Path, *, required: Collection[str], optional: Collection[str] = (), fix: str
) -> dict[str, NDArray[Any]]:
    """Return the named arrays of the file; others are not touched.

    ``fix`` ends the error messages: how to save such a file.
    """
    try:
        with open_file(path) as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds a single array. {fix}")
            with archive:
                missing = [name for name in required if name not in archive.files]
                if missing:
                    got = ", ".join(archive.files)
                    raise DataError(f"{path} lacks {' and '.join(missing)}, got: {got}. {fix}")
                wanted = [name for name in archive.files if name in {*required, *optional}]
                assert archive.zip is not None  # it is open
                for name in wanted:
                    _require_size(archive.zip, name, path)
                return {name: archive[name] for name in wanted}
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Correct the option path.") from error
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} cannot be read as .npz ({reason}). {fix}") from error


def _require_size(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    """Raise if an array, by what the archive or its own header declares, does not fit memory or file."""
    names = set(archive.namelist())
    member = archive.getinfo(f"{name}.npy" if f"{name}.npy" in names else name)
    require_memory(
        2 * member.file_size, what=f"{path}, whose {name} has {member.file_size:,} bytes,", fix="Split it."
    )
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    if not all(length >= 0 for length in shape) or math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(f"{name} promises an array of shape {shape}, which the file does not hold")
