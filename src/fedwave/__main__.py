"""The ``fedwave`` command, and ``python -m fedwave``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fedwave.cli.guard import run_guarded


def main() -> None:
    """Run the command line; see ``fedwave.cli.guard`` for its exit codes."""
    if _is_about_completion():
        from fedwave.cli.app import app

        app(prog_name="fedwave")  # typer answers the shell and ends the program itself
    sys.exit(run_guarded(_command_line))


def _is_about_completion() -> bool:
    options = ("--install-completion", "--show-completion")
    return "_FEDWAVE_COMPLETE" in os.environ or "".join(sys.argv[1:2]).startswith(options)


def _command_line() -> object:
    Path.cwd()  # where there is none any more, libraries fail in ways of their own
    # So that "my_module:MyPart" in settings finds a file in the current folder; last, so that a file there
    # cannot stand in for a module of Python's own.
    sys.path.append("")
    from fedwave.cli.app import app  # behind the guard: it takes a while

    return app(standalone_mode=False)


if __name__ == "__main__":
    main()
