"""The page's server, on the loopback address until Ctrl-C. The only file that needs Starlette and uvicorn."""

from __future__ import annotations

import json
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fedwave.errors import ConfigError, FedwaveError
from fedwave.explore.api import Api
from fedwave.explore.guard import HEADERS, TOKEN_HEADER, Guard

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_SHARED = ("chart.js", "dom.js")  # with pages, where they are
_MOST_BYTES = 100_000  # of a request: a view has some 500

Answer = Callable[[Request], Awaitable[Response]]


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


def build_app(api: Api, guard: Guard) -> Starlette:
    """Return the application: the page's own files by name, and the answers of the API."""
    routes = [Route("/", _page(guard))]
    for name in asset_names():
        routes.append(Route(f"/{name}", _asset(name)))
    for name, answer in api.answers().items():
        routes.append(Route(f"/api/{name}", _answer(answer, guard), methods=["POST"]))
    return Starlette(routes=routes, middleware=[Middleware(_Refuse, guard=guard)])


def asset_names() -> Sequence[str]:
    """Return the files that the page is made of, all of them in the package."""
    folder = resources.files("fedwave.explore") / "static"
    return sorted([*(entry.name for entry in folder.iterdir() if entry.name != "index.html"), *_SHARED])


class _Refuse(BaseHTTPMiddleware):
    """Refuses requests from elsewhere, and tells the browser to load nothing from there."""

    def __init__(self, app: Any, guard: Guard) -> None:
        super().__init__(app)
        self._guard = guard

    async def dispatch(self, request: Request, call_next: Answer) -> Response:
        """Answer, or refuse."""
        headers = request.headers
        refusal = self._guard.refusal(
            host=headers.get("host"), origin=headers.get("origin"), fetch_site=headers.get("sec-fetch-site")
        )
        response = _text(refusal, 403) if refusal else await call_next(request)
        response.headers.update(HEADERS)
        return response


def _page(guard: Guard) -> Answer:
    async def page(request: Request) -> Response:
        if not guard.knows(request.query_params.get("token")):
            return _text("Open the whole address that fedwave explore printed, with its token.", 403)
        return _file("index.html")

    return page


def _asset(name: str) -> Answer:
    async def asset(request: Request) -> Response:
        del request
        return _file(name)

    return asset


def _answer(answer: Callable[[dict[str, Any]], Any], guard: Guard) -> Answer:
    async def respond(request: Request) -> Response:
        if not guard.knows(request.headers.get(TOKEN_HEADER)):
            return _json({"error": "The token is missing or wrong. Open the address that was printed."}, 403)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return _json({"error": "The request is too long."}, 413)
        try:
            asked = json.loads(body or b"{}")
            if not isinstance(asked, dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError) as error:
            return _json({"error": f"The request is not JSON: {error}."}, 400)
        try:
            return _json(await run_in_threadpool(answer, asked))
        except FedwaveError as error:
            return _json({"error": str(error)}, 422)
        except ArithmeticError:
            return _json(
                {"error": "These numbers are too large or too small to compute with. Move them back."}, 422
            )
        except MemoryError:
            return _json({"error": "Not enough memory. Use fewer devices or blocks."}, 422)

    return respond


def _file(name: str) -> Response:
    own = resources.files("fedwave.explore") / "static"
    file = (resources.files("fedwave.pages") if name in _SHARED else own) / name
    kind = next(kind for ending, kind in _TYPES.items() if name.endswith(ending))
    return Response(file.read_bytes(), media_type=kind)


def _text(text: str, status: int) -> Response:
    return Response(text + "\n", status_code=status, media_type="text/plain")


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content, allow_nan=False), status_code=status, media_type="application/json")


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
