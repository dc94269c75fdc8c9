"""The IDX format of the MNIST family: a big-endian header, then one byte per value."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedwave.data.locate import damaged
from fedwave.errors import DataError

# Two zero bytes, 8 for "unsigned byte", then the number of dimensions: 2049 are labels, 2051 images.
MAGIC_OF_BYTES = 0x0800


def read_idx(path: Path, *, num_dimensions: int, dataset: str) -> NDArray[np.uint8]:
    """Return the byte array in an IDX file, plain or gzip-compressed; refuse one that is damaged."""
    content = _read_bytes(path, dataset=dataset)
    header_bytes = 4 * (1 + num_dimensions)
    if len(content) < header_bytes:
        raise damaged(path, f"an IDX header has {header_bytes} bytes, got {len(content)}", dataset=dataset)
    magic, *shape = struct.unpack(f">{1 + num_dimensions}I", content[:header_bytes])
    if magic != MAGIC_OF_BYTES + num_dimensions:
        expected = MAGIC_OF_BYTES + num_dimensions
        raise damaged(path, f"its magic number must be {expected}, got {magic}", dataset=dataset)
    expected_bytes = int(np.prod(shape, dtype=object))  # object: a corrupt header cannot overflow
    if len(content) - header_bytes != expected_bytes:
        got_bytes = len(content) - header_bytes
        raise damaged(
            path, f"its header promises {expected_bytes} bytes of data, got {got_bytes}", dataset=dataset
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header_bytes).reshape(shape).copy()


def _read_bytes(path: Path, *, dataset: str) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return stream.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, str(error), dataset=dataset) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
