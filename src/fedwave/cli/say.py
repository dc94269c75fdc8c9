"""Lines of words on a terminal: broken between words. In a pipe or a log a line stays one."""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap

MIN_WIDTH = 20  # characters of a terminal that is taken for one


def say(line: str, *, to_errors: bool = False) -> None:
    """Print a line on standard output or standard error."""
    stream = sys.stderr if to_errors else sys.stdout
    if stream is not None and stream.isatty():
        width = max(shutil.get_terminal_size().columns, MIN_WIDTH)
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    print(line, file=stream, flush=True)


class WarningLines(logging.Handler):
    """Says warnings on standard error, also above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say one warning."""
        try:
            say(f"warning: {record.getMessage()}", to_errors=True)
        except Exception:  # as every handler does: nobody may be there to read it
            self.handleError(record)
