"""A table of a run that is still being written: whole lines only, and only what is new is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.files import open_file, read_rest
from fedwave.runs.tables import require_order, rows_of_bytes, typed_columns


@dataclass(eq=False)
class LiveTable:
    """The columns of a CSV file that grows; a line that is being written waits for its end."""

    path: Path
    columns: dict[str, Any] = field(default_factory=dict)
    _header: list[str] = field(default_factory=list)
    _offset: int = 0
    _inode: int = 0

    @property
    def num_rows(self) -> int:
        """Rows read so far."""
        return len(next(iter(self.columns.values()), ()))

    def refresh(self) -> None:
        """Read what was added; a file that was replaced or cut, as on resume, is read anew."""
        try:
            with open_file(self.path) as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self._offset:
                    self._forget(found.st_ino)
                file.seek(self._offset)
                added = read_rest(file)
        except FileNotFoundError:  # before the first round
            self._forget(0)
            return
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {error.strerror}. Give the folder of a run.") from error
        whole = added[: added.rfind(b"\n") + 1]
        if whole:
            self._append(whole)
            self._offset += len(whole)
        elif not self._header:  # the beginning of a header, if it is any text
            rows_of_bytes(self.path, added)

    def _forget(self, inode: int) -> None:
        self.columns, self._header, self._offset, self._inode = {}, [], 0, inode

    def _append(self, content: bytes) -> None:
        rows = rows_of_bytes(self.path, content)
        if not self._header:
            self._header, *rows = rows
        if not rows:
            return
        new = typed_columns(self.path, self._header, rows, first_line=2 + self.num_rows)
        joined = {name: _joined(self.columns.get(name), added) for name, added in new.items()}
        require_order(self.path, joined["round"])
        self.columns = joined


def _joined(before: Any, added: Any) -> Any:
    if before is None:
        return added
    return before + added if isinstance(added, list) else np.concatenate([before, added])
