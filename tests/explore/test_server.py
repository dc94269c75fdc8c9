"""The page's server: its own files, one answer for each question, and a port that is free."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest

from fedwave.errors import ConfigError
from fedwave.explore.api import Api
from fedwave.explore.server import asset_names, serve
from fedwave.explore.workbench import open_all
from tests.explore.asking import Page


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/../server.py",
        "/static/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/server.py",
        "/etc/passwd",
    ],
)
def test_only_the_files_of_the_page_are_served(page: Page, path: str) -> None:
    assert page.send(path, query=f"token={page.guard.token}").status == 404


def test_long_and_broken_requests_are_refused(page: Page) -> None:
    token = {"x-fedwave-token": page.guard.token}
    assert page.send("/api/start", method="POST", body=b"x" * 200_000, headers=token).status == 413
    for body in (b"{", b"[]", b"\xff", b"[" * 50_000, b'{"a": 1' + b"0" * 5000 + b"}"):
        answer = page.send("/api/cell", method="POST", body=body, headers=token)
        assert answer.status in (400, 422)
        assert "error" in answer.json


@pytest.mark.parametrize("error", [ZeroDivisionError, FloatingPointError, OverflowError, MemoryError])
def test_what_cannot_be_computed_is_said_in_one_line(error: type[Exception], monkeypatch: Any) -> None:
    def fail(asked: object) -> None:
        raise error

    monkeypatch.setattr(Api, "answers", lambda self: {"cell": fail})
    answer = Page().ask("cell")
    assert answer.status == 422
    assert len(answer.json["error"]) > 10


def test_the_page_is_whole_and_asks_nobody_else(page: Page) -> None:
    """No address of another computer, and no way to turn a text into HTML, in any file of the page."""
    assert {"main.js", "chart.js", "dom.js", "style.css"} <= set(asset_names())
    for name in asset_names():
        answer = page.send(f"/{name}")
        assert answer.status == 200
        text = answer.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, name
        assert "//cdn" not in text, name
        for sink in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert sink not in text, name
        assert " style=" not in text, name  # the policy would refuse it
        for imported in re.findall(r'from "\./([\w.]+)"', text):
            assert imported in asset_names(), name


def test_a_port_in_use_is_refused() -> None:
    sources, runs, first = open_all(["paper"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on port {port}: .* --port"):
            serve(Api(sources, runs, first), port=port, opens_browser=False, say=print)
