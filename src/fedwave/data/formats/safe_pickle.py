"""Reads the pickled byte arrays of CIFAR without running any code that a pickle may carry.

A pickle is a program: it can import and call anything. This reader knows the few names that a numpy
array of bytes is made of and answers each with a stand-in of its own; every other name is refused. Not even
numpy's own functions are called before the shape and the bytes have been checked.
"""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedwave.data.formats import damaged
from fedwave.errors import DataError
from fedwave.files import open_file


class _ForbiddenNameError(Exception):
    """The pickle asks for a name that no CIFAR file needs."""


class _ByteType:
    """Stands for ``numpy.dtype``: only unsigned bytes are accepted."""

    def __init__(self, code: bytes | str, *_: object) -> None:
        if code not in (b"u1", "u1"):
            raise ValueError(f"array of type {code!r}, expected unsigned bytes")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and alignment: bytes have neither."""


class _ByteArray:
    """Stands for ``numpy.ndarray`` until the pickle hands over its shape and bytes."""

    values: NDArray[np.uint8]

    def __init__(self, *_: object) -> None:
        """Ignore the placeholder shape and type that numpy pickles first."""

    def __setstate__(self, state: tuple[object, Any, object, bool, bytes]) -> None:
        """Take (version, shape, dtype, is_fortran, data), the state that numpy pickles."""
        _, shape, byte_type, is_fortran, data = state
        if not isinstance(byte_type, _ByteType) or not isinstance(data, bytes) or is_fortran:
            raise ValueError("array that is not a plain block of bytes")
        if not all(isinstance(length, int) and length >= 0 for length in shape) or math.prod(shape) != len(
            data
        ):
            raise ValueError(f"array of shape {shape} with {len(data)} bytes")
        self.values = np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _reconstruct(*_: object) -> _ByteArray:
    return _ByteArray()


def _encode_latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


class _ByteUnpickler(pickle.Unpickler):
    """An unpickler whose only callables are the stand-ins above."""

    _NAMES: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,  # numpy 1
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,  # numpy 2
        ("numpy", "ndarray"): _ByteArray,
        ("numpy", "dtype"): _ByteType,
        ("_codecs", "encode"): _encode_latin1,  # how Python 3 writes bytes in a protocol 2 pickle
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a known name; refuse all others."""
        try:
            return self._NAMES[module, name]
        except KeyError:
            raise _ForbiddenNameError(f"{module}.{name}") from None


def read_byte_pickle(path: Path, *, dataset: str) -> dict[str, Any]:
    """Return the dictionary in a pickle of plain Python values and byte arrays.

    Keys become text; text values of Python 2 pickles stay bytes.
    """
    try:
        with open_file(path) as stream:
            content = _ByteUnpickler(stream, encoding="bytes").load()
    except _ForbiddenNameError as error:
        raise DataError(
            f"{path} is refused: its pickle asks for {error}, which image data never needs and which could "
            f"run code. Replace the file: fedwave datasets download --force {dataset}"
        ) from None
    except PermissionError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
    except Exception as error:  # a damaged pickle can fail in any way, and nothing else runs here
        raise damaged(path, f"{type(error).__name__}: {error}", dataset=dataset) from error
    if not isinstance(content, dict):
        raise damaged(path, f"expected a dictionary, got {type(content).__name__}", dataset=dataset)
    return {_text(key): _plain(value) for key, value in content.items()}


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _plain(value: object) -> object:
    return getattr(value, "values", None) if isinstance(value, _ByteArray) else value
