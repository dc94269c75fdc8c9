"""Asks the explorer's application without a network: a request in, status, headers and body out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedwave.explore.api import Api
from fedwave.explore.guard import Guard
from fedwave.explore.server import build_app
from fedwave.explore.workbench import open_all

PORT = 8123


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Page:
    """What a browser would send to the explorer, and what others might."""

    def __init__(self, *shown: str, num_devices: int | None = 30, offered: Path | None = None) -> None:
        sources, runs, first = open_all(shown)
        self.api = Api(sources, runs, first, num_devices=num_devices, offered=offered)
        self.guard = Guard(port=PORT)
        self.app = build_app(self.api, self.guard)

    def send(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes = b"",
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        given = {"host": f"127.0.0.1:{PORT}", **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", PORT),
        }
        sent: list[dict[str, Any]] = []
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if parts:
                return parts.pop()
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = next(message for message in sent if message["type"] == "http.response.start")
        return Answered(
            status=start["status"],
            headers={name.decode().lower(): value.decode() for name, value in start["headers"]},
            body=b"".join(message.get("body", b"") for message in sent if message is not start),
        )

    def ask(self, name: str, content: object = None, **headers: str) -> Answered:
        """Ask the API as the page does, with its token."""
        given = {"x-fedwave-token": self.guard.token, **headers}
        body = json.dumps({} if content is None else content).encode()
        return self.send(f"/api/{name}", method="POST", body=body, headers=given)


def question(page: Page, source: str = "umi-3.5ghz", **moved: Any) -> dict[str, Any]:
    """Return what the page asks of a cell after these sliders were moved."""
    view = page.ask("defaults", {"source": source}).json["view"]
    return {"source": source, "view": view | moved}
