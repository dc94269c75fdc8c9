"""The page in a real Chromium: what is drawn, moved, copied and refused. Run by make test-processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fedwave.allocation import METHODS
from fedwave.plots.chart import looks_of
from fedwave.wireless.settings.load import load_cell
from tests.explore.conftest import HOSTILE
from tests.runs.written_runs import write_run

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[2]
READY = "body[data-state=ready]"


@contextmanager
def explorer(*words: str, folder: Path | None = None) -> Iterator[str]:
    """Start the command as a user does, and give the address that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    started = subprocess.Popen(
        [sys.executable, "-m", "fedwave", "explore", *words, "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        assert started.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", started.stdout.readline())
        assert address is not None
        yield address[0]
    finally:
        started.terminate()
        assert started.wait(timeout=20) == 0  # ending a server is no failure
        assert started.stdout is not None
        started.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed (apt install chromium): the page is not tested in a browser")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with explorer("paper", "-n", "40", "--seed", "1") as found:
        yield found


@contextmanager
def opened(browser: Any, address: str, *, width: int = 1280, theme: str = "light") -> Iterator[Any]:
    """Open the page; errors on the console, dialogs and requests to other computers fail the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, accept_downloads=True
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    wrong: list[str] = []
    page.on(
        "console",
        lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda answer: wrong.append(answer.text()) if answer.status == 422 else None)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    home = re.match(r"http://[^/]*/", address)
    assert home is not None
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((home[0], "data:", "blob:")) else wrong.append(request.url)
        ),
    )
    page.goto(address)
    page.wait_for_selector(READY, timeout=60_000)
    yield page
    context.close()
    assert wrong == []


def assignment(page: Any) -> str:
    return str(page.get_attribute("#card-map svg", "data-assignment"))


def test_a_moved_slider_changes_the_assignment_and_what_is_copied_gives_the_same_numbers(
    browser: Any, address: str, tmp_path: Path
) -> None:
    with opened(browser, address) as page:
        assert page.title() == "fedwave explorer"
        before = assignment(page)
        assert len(before.split()) == 20
        slider = page.locator("#num_blocks-slider")
        slider.focus()
        for _ in range(12):
            page.keyboard.press("ArrowLeft")
        page.locator("#energy_weight").fill("2.5")
        page.keyboard.press("Tab")
        page.wait_for_timeout(200)
        page.wait_for_selector(READY)
        assert page.input_value("#num_blocks") == "8"
        after = assignment(page)
        assert after != before
        assert len(after.split()) <= 8
        shown = float(page.get_attribute("body", "data-objective"))
        note = page.inner_text("#card-methods .note")
        page.click("#copy-toml")
        page.wait_for_selector("dialog[open]")
        text = page.input_value("#export-text")
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("() => navigator.clipboard.readText()") == text
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0
    file = tmp_path / "cell.toml"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "fedwave", "explore", str(file), "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    methods = json.loads(done.stdout)["methods"]
    optimal = methods["optimal"]
    assert optimal["objective"] == shown
    worth = {name: methods[name]["objective"] for name in ("threshold", "value-rate", "proportional-fair")}
    best = max(worth, key=lambda name: worth[name])
    lost = 100 * (1 - worth[best] / optimal["objective"])
    told = re.search(r"best simple rule, (.*), loses (\S+)", note)
    assert told is not None
    assert told[1].lower().replace(" ", "-") == best
    assert (0.0 if told[2] == "nothing" else float(told[2])) == pytest.approx(lost, rel=0.06, abs=1e-4)
    uploads = optimal["uploads"]
    pairs = [f"{i}:{m}" for i, m in zip(uploads["device"], uploads["block"], strict=True)]
    assert " ".join(pairs) == after


def test_every_picture_is_drawn_and_can_be_saved(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        methods = page.locator("#card-methods tr[data-method]").evaluate_all(
            "rows => rows.map(r => r.dataset.method)"
        )
        assert methods == list(METHODS)
        for card in ("map", "split", "schedule", "curve", "front"):
            assert page.locator(f"#card-{card} .body svg").count() == 1
            for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
                with page.expect_download() as saving:
                    page.click(f"#card-{card} [data-save={kind}]")
                content = Path(saving.value.path()).read_bytes()
                assert content.startswith(start)
                assert len(content) > 1_500
                if kind == "svg":  # the picture says how to make it again
                    assert b"[explore]" in content
        assert page.locator("#card-curve .bound").count() == 1
        assert page.locator("#card-curve circle.f-ives").count() >= 1
        assert page.locator("#card-front circle.here").count() == 1


def test_a_band_is_shared_in_every_way_and_drawn(browser: Any) -> None:
    with explorer("umi-3.5ghz", "-n", "30") as address, opened(browser, address) as page:
        worth = {}
        for access in ("one-block", "blocks", "shared-band", "tdma"):
            page.select_option("#access", access)
            page.wait_for_timeout(200)
            page.wait_for_selector(READY, timeout=60_000)
            shown = page.locator("#card-methods tr[data-method]").evaluate_all(
                "rows => rows.map(r => r.dataset.method)"
            )
            assert shown == [name for name in METHODS if access in METHODS[name].accesses]
            uploads = len(assignment(page).split())
            assert page.locator("#card-schedule rect.piece").count() == uploads
            held = [float(one) for one in str(page.get_attribute("#card-map svg", "data-held")).split()]
            columns = page.locator("#card-map rect.column.used").count()
            if access == "tdma":
                assert held == [20.0] * uploads
                assert columns == uploads
            else:
                assert sum(held) <= 20 * (1 + 1e-9)
                assert columns == (uploads if access == "shared-band" else round(sum(held)))
            assert page.locator("#card-curve").is_visible() == (access == "one-block")
            assert page.locator("#card-front .body svg").count() == 1
            worth[access] = float(page.get_attribute("body", "data-objective"))
        rows = page.locator("#card-accesses tr[data-access]").evaluate_all(
            "rows => rows.map(r => [r.dataset.access, r.cells[1].textContent])"
        )
        assert {name: float(text) for name, text in rows} == pytest.approx(worth, rel=1e-3)
        assert worth["shared-band"] >= worth["blocks"] >= worth["one-block"] * (1 - 1e-6)
        page.locator("#card-accesses tr[data-access=blocks]").focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        page.wait_for_selector(READY, timeout=60_000)
        assert page.input_value("#access") == "blocks"
        pieces = page.locator("#card-schedule rect.piece").count()
        page.check("#work_conserving")
        page.wait_for_timeout(200)
        page.wait_for_selector(READY, timeout=60_000)
        assert page.locator("#card-schedule rect.piece").count() > pieces
        page.fill("#max_uploads", "3")
        page.keyboard.press("Tab")
        page.wait_for_timeout(200)
        page.wait_for_selector(READY, timeout=60_000)
        assert len(assignment(page).split()) == 3
        page.locator("#card-schedule rect.piece").first.hover(force=True)
        assert re.search(r"device \d+\n.*block", page.inner_text("#tooltip"))


def test_every_symbol_is_told_by_pointer_and_keyboard(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        untold = page.evaluate(
            "async () => { const { WORDS } = await import('/words.js');"
            " return [...document.querySelectorAll('[data-word]')].filter(e => !WORDS[e.dataset.word])"
            " .map(e => e.dataset.word); }"
        )
        assert untold == []
        plain = page.evaluate(
            "() => [...document.querySelectorAll('#controls label')]"
            ".filter(e => !e.dataset.word && e.htmlFor !== 'source').map(e => e.textContent)"
        )
        assert plain == []
        for selector, says in (
            ("label[for=energy_weight]", "what a joule costs"),
            ("label[for=deadline_s]", "A deadline for the whole round"),
            ("#card-split [data-word='η₂T']", "what the round's seconds cost"),
            ("#card-methods th[data-word=U]", "contributions u of the devices"),
            ("#card-accesses tr.refused", "needs blocks that are alike"),
            ("#card-curve [data-word='δ']", "the upload delay"),
        ):
            page.locator(selector).first.hover(force=True)
            assert says in page.inner_text("#tooltip"), selector
        page.locator("#card-methods th[data-word=U]").focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert "contributions u of the devices" in page.inner_text("#tooltip")
        page.keyboard.press("Escape")
        assert page.locator("#tooltip").is_hidden()


def test_what_is_tried_says_what_came_of_it_and_can_be_taken_back(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        before, weight = page.get_attribute("body", "data-objective"), page.input_value("#energy_weight")
        uploads = len(assignment(page).split())
        page.click("#try-energy")
        page.wait_for_timeout(100)
        page.wait_for_selector(READY, timeout=60_000)
        page.wait_for_selector("#try-back:not([hidden])")
        assert float(page.input_value("#energy_weight")) == 10 * float(weight)
        after = float(page.get_attribute("body", "data-objective"))
        told = page.inner_text("#try .told")
        assert f"Uploads {uploads} → {len(assignment(page).split())}" in told
        shown = re.search(r"objective (\S+) → (\S+)\.$", told)
        assert shown is not None
        signed = [float(one.replace("−", "-")) for one in shown.groups()]
        assert signed == pytest.approx([float(before), after], rel=1e-3)
        page.click("#try-back")
        page.wait_for_timeout(100)
        page.wait_for_selector(READY, timeout=60_000)
        assert page.get_attribute("body", "data-objective") == before
        assert page.locator("#try-back").is_hidden()
        assert page.locator("#try-share").count() == 0  # the paper's blocks differ


def test_the_front_is_coloured_by_what_it_is_worth(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        told = page.evaluate(
            "() => [...document.querySelectorAll('#card-front circle.front-dot')]"
            ".map(dot => [dot.getAttribute('fill'), dot.getBoundingClientRect().x])"
        )
        assert len(told) >= 5
        colours = {fill for fill, _ in told}
        assert {"rgb(68 1 84)", "rgb(253 231 37)"} <= colours  # both ends of viridis
        text = page.inner_text("#card-front .body")
        for words in ("energy E of the round", "time T of the round", "your weights", "energy weighs most"):
            assert words in text
        assert page.locator("#card-front .here-ring").count() == 1


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (800, 900)])
@pytest.mark.parametrize("cell", ["paper", "umi-3.5ghz"])
def test_no_control_is_hidden(browser: Any, address: str, cell: str, width: int, height: int) -> None:
    with opened(browser, address, width=width) as page:
        page.select_option("#source", cell)
        page.wait_for_timeout(100)
        page.wait_for_selector(READY, timeout=60_000)
        hidden = page.evaluate(
            "() => [...document.querySelectorAll('#controls input, #controls select, #controls button')]"
            ".filter(e => e.offsetParent).filter(e => { const b = e.getBoundingClientRect();"
            " const top = document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2);"
            " return !top || !(top === e || e.contains(top)); })"
            ".map(e => e.id)"
        )
        # without a deadline its slider is grey, and a grey control lets the pointer through
        assert set(hidden) <= {"deadline_s", "deadline_s-slider"}
        bottom = page.evaluate("() => document.getElementById('reset').getBoundingClientRect().bottom")
        assert bottom <= height


def test_what_a_cell_cannot_be_shared_by_says_why(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        off = page.locator("#access option:disabled").evaluate_all("all => all.map(o => [o.value, o.title])")
        assert [name for name, _ in off] == ["blocks", "shared-band", "tdma"]
        assert all("needs blocks that are alike" in why for _, why in off)
        assert page.locator("#card-accesses tr.refused").count() == 3


def test_a_method_is_shown_on_the_map_by_keyboard(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        optimal = assignment(page)
        row = page.locator("tr[data-method=greedy]")
        row.focus()
        page.keyboard.press("Enter")
        assert assignment(page) != optimal
        assert page.locator("tr[data-method=greedy]").get_attribute("aria-pressed") == "true"
        page.locator("#card-map svg").focus()
        page.keyboard.press("ArrowRight")
        told = page.inner_text("#tooltip")
        assert re.search(r"device \d+", told)
        assert "power" in told
        assert "SINR" in told
        page.keyboard.press("Escape")
        assert page.locator("#tooltip").is_hidden()


def test_tabs_and_all_controls_are_reached_by_keyboard(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.locator("#tab-cell").focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#runs").is_visible()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#cell").is_visible()
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("() => document.activeElement.id"))
        wanted = (
            "source",
            "num_devices",
            "seed",
            "energy_weight-slider",
            "delay_weight-slider",
            "num_blocks",
        )
        assert {*wanted, "max_power_w", "bandwidth_hz", "model_bits", "deadline_s-on", "copy-toml"} <= reached


def test_hovering_a_device_or_block_tells_powers_in_dbm(browser: Any) -> None:
    with explorer("umi-3.5ghz", "-n", "30") as address, opened(browser, address) as page:
        page.locator("#card-map circle.chosen[data-k='0']").hover(force=True)
        page.wait_for_selector("#tooltip:not([hidden])")
        told = page.inner_text("#tooltip")
        assert "SINR" in told
        assert re.search(r"^power −?\d+\.\d dBm$", told, re.MULTILINE), told
        page.locator("#card-map .column").first.hover(force=True)
        assert re.search(r"noise and interference −1\d\d\.\d dBm", page.inner_text("#tooltip"))


def test_wrong_numbers_are_explained_and_the_page_goes_on(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    page.locator("#delay_weight").fill("0")
    page.keyboard.press("Tab")
    page.wait_for_selector("#error:not([hidden])")
    assert "delay_weight must be > 0" in page.inner_text("#error")
    page.locator("#delay_weight").fill("1")
    page.keyboard.press("Tab")
    page.wait_for_selector("#error", state="hidden")
    context.close()


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_overflows(browser: Any, address: str, width: int, theme: str, tmp_path: Path) -> None:
    with opened(browser, address, width=width, theme=theme) as page:
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        cut = page.evaluate(
            "() => [...document.querySelectorAll('button, label, h2, td, .top')]"
            ".filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1)"
            ".filter(e => getComputedStyle(e).display !== 'inline')"
            ".map(e => e.textContent)"
        )
        assert cut == []
        assert page.evaluate("() => document.documentElement.dataset.theme") == theme
        page.screenshot(path=tmp_path / "page.png", full_page=True)


def test_presets_change_and_a_street_cell_is_a_map(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.select_option("#source", "umi-3.5ghz")
        page.wait_for_timeout(200)
        page.wait_for_selector(READY, timeout=60_000)
        place = load_cell("umi-3.5ghz", num_devices=40, seed=1).large_scale
        assert place is not None
        assert place.is_line_of_sight is not None
        triangles = "".join(
            page.locator("#card-map path.nlos").evaluate_all("all => all.map(p => p.getAttribute('d'))")
        )
        assert triangles.count("M") == int((~place.is_line_of_sight).sum())


def test_names_in_a_cell_file_are_no_html(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / '<img src=x onerror="document.title=1">.toml'
    file.write_text(
        f"preset = 'paper'\ndescription = '{HOSTILE}'\nnum_blocks = 3\n[explore]\nnum_devices = 9\n"
    )
    with explorer(str(file)) as address, opened(browser, address) as page:
        assert page.input_value("#source") == str(file)
        assert len(assignment(page).split()) <= 3
        page.click("#copy-python")
        page.wait_for_selector("dialog[open]")
        assert page.locator("img").count() == 0
        assert page.title() == "fedwave explorer"


def test_runs_are_shown_while_they_go_on_and_names_are_no_html(
    browser: Any, street_run: Path, tmp_path: Path
) -> None:
    live = tmp_path / "live"
    shutil.copytree(street_run, live)
    (live / "summary.json").unlink()
    tables = {
        name: (live / name).read_text().splitlines(keepends=True) for name in ("rounds.csv", "devices.csv")
    }
    per_round = (len(tables["devices.csv"]) - 1) // 3
    (live / "rounds.csv").write_text("".join(tables["rounds.csv"][:3]))
    (live / "devices.csv").write_text("".join(tables["devices.csv"][: 1 + 2 * per_round]))
    with explorer(str(live)) as address, opened(browser, address) as page:
        page.wait_for_selector("#runs[data-state=ready]", timeout=60_000)
        assert HOSTILE in page.inner_text("#card-list")
        assert page.locator("main img").count() == 0
        assert page.title() == "fedwave explorer"
        assert "2 / 3" in page.inner_text("#card-list")
        page.wait_for_selector("#card-replay svg[data-round='1']")
        with (live / "devices.csv").open("a") as file:
            file.write("".join(tables["devices.csv"][1 + 2 * per_round :]))
        with (live / "rounds.csv").open("a") as file:
            file.write(tables["rounds.csv"][3])
        page.wait_for_selector("#card-replay svg[data-round='2']", timeout=15_000)
        assert "3 / 3" in page.inner_text("#card-list")
        last = assignment_of_run(page)
        page.locator("#round-slider").focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#card-replay svg[data-round='1']")
        assert assignment_of_run(page) != last
        for axis in ("cumulative_delay_s", "cumulative_energy_j", "rounds"):
            page.click(f"[data-axis={axis}]")
            assert page.locator("#card-loss path.run-line").count() == 1
        for card in ("fate", "energy"):
            assert page.locator(f"#card-{card} svg").count() == 1


def test_runs_of_this_folder_are_offered_and_averaged_over_seeds(browser: Any, tmp_path: Path) -> None:
    names = ["URAL (optimal)", "NUFM-Greedy", "Mine"]
    for at, name in enumerate(names):
        for seed in range(3):
            values = [0.1 * (at + 1) + 0.05 * seed, 0.2 * (at + 1)]
            run = write_run(tmp_path / "runs" / f"{at}-{seed}", name, values, over_cell=True, seed=seed)
            (run.path / "devices.csv").write_text(
                "round,device,is_selected,is_received,block,transmit_power_w,upload_time_s,upload_energy_j\n"
                "0,0,1,1,0,0.1,2.0,0.2\n1,0,0,0,-1,0,0,0\n"
            )
    with explorer("paper", "-n", "12", folder=tmp_path) as address, opened(browser, address) as page:
        page.click("#tab-runs")
        page.click("#show-runs")
        page.wait_for_selector("#runs[data-state=ready]")
        lines = "#card-metric path.run-line:not(.faint)"
        assert page.locator(lines).count() == 3
        assert page.locator("#card-metric path.run-line.faint").count() == 9
        looks = looks_of(names)
        drawn = page.locator(lines).evaluate_all("all => all.map(p => getComputedStyle(p).stroke)")
        for name, colour in zip(names, drawn, strict=True):
            red, green, blue = (int(part) for part in re.findall(r"\d+", colour))
            assert f"#{red:02X}{green:02X}{blue:02X}" == looks[name]["colour"].upper(), name
        page.locator("#card-metric svg").focus()
        page.keyboard.press("ArrowRight")
        assert re.search(r"3 seeds\nrounds: 1\naccuracy: \d+", page.inner_text("#tooltip"))
        page.click("[data-axis=cumulative_energy_j]")
        assert page.locator(lines).count() == 3
        page.click("[data-average=each]")
        assert page.locator(lines).count() == 9
        assert page.get_attribute("[data-average=each]", "aria-pressed") == "true"


def test_without_any_runs_the_tab_says_how_to_make_some(browser: Any, tmp_path: Path) -> None:
    with explorer("paper", "-n", "12", folder=tmp_path) as address, opened(browser, address) as page:
        page.click("#tab-runs")
        assert "fedwave run digits/ural" in page.inner_text("#runs")
        assert page.locator("#show-runs").count() == 0


def assignment_of_run(page: Any) -> str:
    return str(page.get_attribute("#card-replay svg", "data-assignment"))


def test_a_page_from_elsewhere_cannot_drive_the_explorer(browser: Any, address: str) -> None:
    """A hostile page that even knows the token gets no answer: not by fetch, frame or WebSocket."""
    home, token = address.split("?token=")

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *arguments: object) -> None:
            del arguments

    server = HTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = browser.new_page()
        page.goto(f"http://localhost:{server.server_port}/")
        asked = page.evaluate(
            "async ([home, token]) => { const out = {};"
            "for (const mode of ['cors', 'no-cors']) { try {"
            " const r = await fetch(home + 'api/start', {method: 'POST', mode, body: '{}',"
            "  headers: mode === 'cors' ? {'x-fedwave-token': token} : {}}); out[mode] = await r.text(); }"
            " catch (e) { out[mode] = 'refused'; } }"
            "out.socket = await new Promise(done => {"
            " const s = new WebSocket(home.replace('http', 'ws') + 'api/start');"
            " s.onopen = () => done('open'); s.onerror = () => done('refused'); });"
            "const frame = document.createElement('iframe'); frame.src = home + '?token=' + token;"
            "document.body.append(frame); await new Promise(done => { frame.onload = done; });"
            "out.frame = frame.contentDocument ? 'readable' : 'refused';"
            "return out; }",
            [home, token],
        )
        assert asked.pop("no-cors") in ("refused", "")  # an answer that the page may not read
        assert asked == {"cors": "refused", "socket": "refused", "frame": "refused"}
        page.close()
    finally:
        server.shutdown()
        server.server_close()
