"""The IDX format of the MNIST family: a big-endian header, then one byte per value."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import DataError

# Two zero bytes, 8 for "unsigned byte", then the number of dimensions: 2049 are labels, 2051 images.
MAGIC_OF_BYTES = 0x0800


def read_idx(path: Path, *, num_dimensions: int) -> NDArray[np.uint8]:
    """Return the byte array in an IDX file, plain or gzip-compressed; refuse one that is damaged."""
    content = _read_bytes(path)
    header_bytes = 4 * (1 + num_dimensions)
    if len(content) < header_bytes:
        raise DataError(f"{path} is not an IDX file: got {len(content)} bytes. Download it again.")
    magic, *shape = struct.unpack(f">{1 + num_dimensions}I", content[:header_bytes])
    if magic != MAGIC_OF_BYTES + num_dimensions:
        raise DataError(
            f"{path} is not the expected IDX file: magic number must be {MAGIC_OF_BYTES + num_dimensions}, "
            f"got {magic}. Download it again."
        )
    expected_bytes = int(np.prod(shape, dtype=object))  # object: a corrupt header cannot overflow
    if len(content) - header_bytes != expected_bytes:
        raise DataError(
            f"{path} is truncated or corrupt: its header promises {expected_bytes} bytes of data, "
            f"got {len(content) - header_bytes}. Download it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header_bytes).reshape(shape).copy()


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return stream.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is truncated or corrupt ({error}). Download it again.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
