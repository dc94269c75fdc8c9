"""The IDX format of the MNIST family: a big-endian header, then one byte per value."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedwave.data.formats import damaged
from fedwave.errors import DataError
from fedwave.files import open_file
from fedwave.ram import memory_limit

# Two zero bytes, 8 for "unsigned byte", then the number of dimensions: 2049 are labels, 2051 images.
MAGIC_OF_BYTES = 0x0800


def read_idx(path: Path, *, num_dimensions: int, dataset: str) -> NDArray[np.uint8]:
    """Return the byte array in an IDX file, plain or gzip-compressed; refuse one that is damaged."""
    try:
        with open_file(path) as file, gzip.open(file) if path.suffix == ".gz" else file as stream:
            return _read(stream, path, num_dimensions=num_dimensions, dataset=dataset)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, str(error), dataset=dataset) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error


def _read(
    stream: gzip.GzipFile | BufferedReader, path: Path, *, num_dimensions: int, dataset: str
) -> NDArray[np.uint8]:
    header_bytes = 4 * (1 + num_dimensions)
    header = stream.read(header_bytes)
    if len(header) < header_bytes:
        raise damaged(path, f"an IDX header has {header_bytes} bytes, got {len(header)}", dataset=dataset)
    magic, *shape = struct.unpack(f">{1 + num_dimensions}I", header)
    if magic != MAGIC_OF_BYTES + num_dimensions:
        expected = MAGIC_OF_BYTES + num_dimensions
        raise damaged(path, f"its magic number must be {expected}, got {magic}", dataset=dataset)
    expected_bytes = math.prod(shape)
    if 2 * expected_bytes > memory_limit():
        raise damaged(
            path,
            f"its header promises {expected_bytes} bytes of data, more than fits memory",
            dataset=dataset,
        )
    # One byte more than promised tells a longer file, and a compressed one cannot fill the memory.
    content = stream.read(expected_bytes + 1)
    if len(content) != expected_bytes:
        got = "more" if len(content) > expected_bytes else str(len(content))
        raise damaged(path, f"its header promises {expected_bytes} bytes of data, got {got}", dataset=dataset)
    return np.frombuffer(content, dtype=np.uint8).reshape(shape).copy()
