"""Nobody but the page itself is answered, and the page can load nothing from elsewhere."""

from __future__ import annotations

import pytest

from tests.explore.asking import PORT, Page


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"])
def test_the_page_itself_is_answered(page: Page, host: str) -> None:
    assert page.ask("start", host=host, origin=f"http://{host}").status == 200
    shown = page.send("/", query=f"token={page.guard.token}", headers={"host": host})
    assert shown.status == 200
    assert b"<title>fedwave explorer</title>" in shown.body


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"evil.example:{PORT}"},  # a name that resolves to this computer
        {"host": "127.0.0.1"},
        {"host": f"127.0.0.1:{PORT + 1}"},
        {"host": f"127.0.0.1:{PORT}.evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_others_are_refused_even_with_the_token(page: Page, headers: dict[str, str]) -> None:
    assert page.ask("start", **headers).status == 403
    assert page.send("/main.js", headers=headers).status == 403


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_without_the_token_nothing_is_told(page: Page, token: str) -> None:
    assert page.send("/", query=f"token={token}").status == 403
    for name in page.api.answers():
        answer = page.send(f"/api/{name}", method="POST", body=b"{}", headers={"x-fedwave-token": "wrong"})
        assert answer.status == 403
        assert set(answer.json) == {"error"}
    assert page.send("/api/start", method="POST", body=b"{}").status == 403


def test_tokens_differ() -> None:
    first, second = Page().guard, Page().guard
    assert first.token != second.token
    assert len(first.token) >= 32


def test_questions_cannot_be_asked_by_a_link(page: Page) -> None:
    assert page.send("/api/start", headers={"x-fedwave-token": page.guard.token}).status == 405


def test_every_answer_tells_the_browser_to_load_nothing_from_elsewhere(page: Page) -> None:
    for answer in (page.send("/main.js"), page.ask("start"), page.send("/nowhere"), page.send("/")):
        policy = answer.headers["content-security-policy"]
        rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
        assert rules["default-src"] == ["'none'"]
        assert rules["script-src"] == rules["connect-src"] == rules["style-src"] == ["'self'"]
        assert rules["frame-ancestors"] == ["'none'"]
        assert not any("unsafe" in word or "*" in word or "http" in word for word in policy.split())
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
