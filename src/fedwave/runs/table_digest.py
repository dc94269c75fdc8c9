"""The checksum of a table as far as a checkpoint counts on it, carried on as the table grows."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedwave.errors import RunError
from fedwave.files import blocks_of, open_file, replace_file


class TableDigest:
    """Counts and hashes the bytes of a table from its beginning; each of them once."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._hash = hashlib.sha256()

    def add(self, content: bytes) -> None:
        """Go on with what was appended."""
        self.num_bytes += len(content)
        self._hash.update(content)

    def to_json(self) -> tuple[int, str]:
        """Return the number of bytes and their checksum."""
        return self.num_bytes, self._hash.hexdigest()

    @classmethod
    def of_file(cls, path: Path, wanted: tuple[int, str], *, fix: str) -> TableDigest:
        """Return the digest of a table's beginning, which must be as the run wrote it.

        What follows is a round that was not finished: it may be anything.
        """
        digest = cls()
        try:
            with open_file(path) as file:
                for block in blocks_of(file, wanted[0]):
                    digest.add(block)
        except FileNotFoundError:
            raise RunError(f"{path} is gone, and the checkpoint cannot rebuild it. {fix}") from None
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}. {fix}") from error
        if digest.to_json() != tuple(wanted):
            why = (
                f"it has {digest.num_bytes} of the {wanted[0]} bytes that the checkpoint counts on"
                if digest.num_bytes < wanted[0]
                else f"its first {wanted[0]} bytes were changed; did another program save it?"
            )
            raise RunError(f"{path} is not as the run wrote it ({why}). {fix}")
        return digest

    def cut(self, path: Path) -> None:
        """Cut off what follows in the file."""
        if path.stat().st_size == self.num_bytes:
            return
        with open_file(path) as file:
            # A copy takes its place: who reads the table meanwhile sees that it is another.
            replace_file(path, blocks_of(file, self.num_bytes))
