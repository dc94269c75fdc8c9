"""Readers of file formats: IDX, NPZ, pictures and CIFAR's pickles. None of them runs code from a file."""

from __future__ import annotations

from pathlib import Path

from fedwave.errors import DataError


def damaged(path: Path, why: str, *, dataset: str) -> DataError:
    """Return the error of a file that is there but cannot be trusted."""
    why = " ".join(why.split())  # one line
    return DataError(
        f"{path} is truncated or corrupt ({why}). Replace it: fedwave datasets download --force {dataset}"
    )
