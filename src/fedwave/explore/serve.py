"""Runs the page's server on the loopback address until Ctrl-C. The only file that needs uvicorn."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from fedwave.errors import ConfigError
from fedwave.explore.api import Api
from fedwave.explore.app import build_app
from fedwave.explore.guard import Guard


def serve(api: Api, *, port: int, opens_browser: bool, say: Callable[[str], object]) -> None:
    """Serve the page; port 0 takes any free one. ``say`` is told the address."""
    listening = _listen(port)
    guard = Guard(port=listening.getsockname()[1])
    say(guard.address)
    if opens_browser:
        # A browser that runs in the terminal would keep this from serving, so it is started from aside.
        threading.Thread(target=webbrowser.open, args=(guard.address,), daemon=True).start()
    config = uvicorn.Config(
        build_app(api, guard),
        log_level="error",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    """Return a socket on the loopback address: nobody from outside can reach it."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on port {port}: {reason}. Choose another with --port.") from error
    listening.listen()
    return listening
