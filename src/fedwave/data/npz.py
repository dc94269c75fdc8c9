"""Reads arrays by name from a .npz file, and never a pickle."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import DataError


def read_npz(
    path: Path, *, required: Collection[str], optional: Collection[str] = (), fix: str
) -> dict[str, NDArray[Any]]:
    """Return the named arrays of the file; others are not touched.

    ``fix`` ends the error messages: how to save such a file.
    """
    try:
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds a single array. {fix}")
            with archive:
                missing = [name for name in required if name not in archive.files]
                if missing:
                    got = ", ".join(archive.files)
                    raise DataError(f"{path} lacks {' and '.join(missing)}, got: {got}. {fix}")
                return {name: archive[name] for name in archive.files if name in {*required, *optional}}
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Correct the option path.") from error
    except (OSError, ValueError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} cannot be read as .npz ({reason}). {fix}") from error
