"""The ``fedwave`` command, and ``python -m fedwave``."""

from __future__ import annotations

import sys
from pathlib import Path

from fedwave.cli.guard import run_guarded


def main() -> None:
    """Run the command line; see ``fedwave.cli.guard`` for its exit codes."""
    sys.exit(run_guarded(_command_line))


def _command_line() -> object:
    Path.cwd()  # where there is none any more, libraries fail in ways of their own
    from fedwave.cli.app import app  # behind the guard: it takes a while

    return app(standalone_mode=False)


if __name__ == "__main__":
    main()
