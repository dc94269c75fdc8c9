"""A real browser, without a window: what a page draws, what it complains of, what it loads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

# Runs before the page's own scripts, and tells at the end what was loaded and what went wrong.
WATCH = """<script>
window.wrong = [];
addEventListener("error", (event) => wrong.push(String(event.message || event.target)), true);
addEventListener("securitypolicyviolation", (event) => wrong.push("refused: " + event.blockedURI));
addEventListener("load", () => setTimeout(() => {
  const seen = { wrong, loaded: performance.getEntriesByType("resource").map((one) => one.name) };
  const node = document.createElement("pre");
  node.id = "seen"; node.textContent = JSON.stringify(seen);
  document.body.append(node);
}, 300));
</script>"""


@dataclass(frozen=True)
class Seen:
    """What came of opening a page."""

    dom: str
    wrong: list[str]  # errors of scripts, and what the page's own policy refused
    loaded: list[str]  # addresses that it asked for
    console: list[str]  # lines of the console


def browser() -> str:
    """Return the browser's path; skip where there is none."""
    found = os.environ.get("FEDWAVE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (apt install chromium)")
    return found


def open_page(path: Path, folder: Path, *, width: int = 1280, is_dark: bool = False) -> Seen:
    """Open a copy of the page that is watched from inside, and return what was seen."""
    watched = folder / f"watched-{path.name}"
    text = path.read_text(encoding="utf-8")
    assert "<style>" in text
    watched.write_text(text.replace("<style>", WATCH + "<style>", 1), encoding="utf-8")
    command = [
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900",
        *(["--blink-settings=preferredColorScheme=0"] if is_dark else []),
        "--virtual-time-budget=5000", "--dump-dom", watched.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    seen = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert seen, "the page did not finish loading"
    content = json.loads(seen[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(done.stdout, content["wrong"], content["loaded"], console)


def embedded(text: str) -> dict[str, Any]:
    """Return the charts that a page draws, by name."""
    found = re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    charts: dict[str, Any] = json.loads(found[1])
    return charts
