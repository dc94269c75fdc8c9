"""What would the explorer's page cost on other libraries? Install size, page size, and a slider's latency.

    python benchmarks/page_libraries.py FOLDER

Each library is installed with all it needs into FOLDER (some 600 MB; pip must reach an index), then shows the
same page in Chromium: a slider, its value as text, and a hundred dots that the server computes. A key moves
the slider; the latency is the time until the new value stands in the page. Nothing is asserted: these are the
numbers of the table in docs/explore.md.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

PORT = 8751
NUM_MOVES = 15

DASH = """
import math, plotly.graph_objects as go
from dash import Dash, Input, Output, dcc, html
app = Dash(__name__)
slider = dcc.Slider(0, 1000, 1, value=500, id="s", marks=None, updatemode="drag")
app.layout = html.Div([slider, html.Div(id="o"), dcc.Graph(id="g")])
@app.callback(Output("o", "children"), Output("g", "figure"), Input("s", "value"))
def move(v):
    y = [math.sin(k * v / 500) for k in range(100)]
    return f"value {v}", go.Figure(go.Scatter(x=list(range(100)), y=y, mode="markers"))
app.run(port=PORT)
"""
PANEL = """
import math, panel as pn
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure
def page():
    slider, text = pn.widgets.IntSlider(start=0, end=1000, value=500), pn.pane.Str("value 500")
    source, plot = ColumnDataSource(dict(x=list(range(100)), y=[0.0] * 100)), figure(width=500, height=300)
    plot.scatter("x", "y", source=source)
    def move(event):
        source.data = dict(x=list(range(100)), y=[math.sin(k * event.new / 500) for k in range(100)])
        text.object = f"value {event.new}"
    slider.param.watch(move, "value")
    return pn.Column(slider, text, plot)
pn.serve(page, port=PORT, show=False)
"""
NICEGUI = """
import math
from nicegui import ui
@ui.page("/")
def page():
    text = ui.label("value 500")
    dots = [[k, 0] for k in range(100)]
    chart = ui.echart({"xAxis": {}, "yAxis": {}, "series": [{"type": "scatter", "data": dots}]})
    def move(event):
        chart.options["series"][0]["data"] = [[k, math.sin(k * event.value / 500)] for k in range(100)]
        chart.update()
        text.text = f"value {int(event.value)}"
    ui.slider(min=0, max=1000, value=500, on_change=move)
ui.run(port=PORT, show=False, reload=False)
"""
STARLETTE = """
import math, uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route
PAGE = '''<input type=range id=s min=0 max=1000 value=500><div id=o>value 500</div>
<svg id=g viewBox="0 0 500 300"></svg>
<script>s.oninput = async () => {
  const r = await (await fetch('/v?v=' + s.value)).json();
  g.replaceChildren(...r.y.map((y, k) => {
    const c = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
    for (const [a, b] of [['cx', 5 * k], ['cy', 150 - 100 * y], ['r', 3]]) c.setAttribute(a, b);
    return c;
  }));
  o.textContent = 'value ' + r.v;
}</script>'''
async def page(request): return HTMLResponse(PAGE)
async def value(request):
    v = int(request.query_params["v"])
    return JSONResponse({"v": v, "y": [math.sin(k * v / 500) for k in range(100)]})
uvicorn.run(Starlette(routes=[Route("/", page), Route("/v", value)]), port=PORT, log_level="error")
"""
# packages to install, the page, and what takes the keys of its slider
LIBRARIES = {
    "Panel (Bokeh)": (["panel"], PANEL, ".noUi-handle"),
    "Dash (Plotly)": (["dash"], DASH, "[role=slider]"),
    "NiceGUI": (["nicegui"], NICEGUI, ".q-slider [tabindex='0']"),
    "Starlette, uvicorn": (["starlette", "uvicorn"], STARLETTE, "#s"),
}


def install(packages: list[str], folder: Path) -> str:
    """Install into a folder unless it is there; return its size and number of packages."""
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *packages]
        subprocess.run(command, check=True)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return f"{size / 1e6:.0f} MB, {len(list(folder.glob('*.dist-info')))} packages"


def show(browser: Browser, code: str, folder: Path, slider: str) -> str:
    """Serve the page, move its slider, and return the page's size and the slider's latency."""
    served = subprocess.Popen(
        [sys.executable, "-c", code.replace("PORT", str(PORT))],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=2).close()
                break
            time.sleep(0.2)
        page, sizes = browser.new_page(), []
        page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
        page.goto(f"http://127.0.0.1:{PORT}/")
        page.get_by_text("value 500").wait_for()
        page.wait_for_timeout(2_000)
        loaded = sum(sizes)
        page.locator(slider).first.focus()
        times = []
        for k in range(1, NUM_MOVES + 1):
            start = time.perf_counter()
            page.keyboard.press("ArrowRight")
            page.get_by_text(f"value {500 + k}", exact=True).wait_for()
            times.append(time.perf_counter() - start)
        page.close()
    finally:
        served.kill()
        served.wait()
    fastest, median = 1e3 * min(times), 1e3 * statistics.median(times)
    return f"page {loaded / 1e6:.2f} MB, slider {fastest:.0f} ms at best, {median:.0f} ms in the median"


def main() -> None:
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (packages, code, slider) in LIBRARIES.items():
            folder = Path(sys.argv[1]) / packages[0]
            print(f"{name}: {install(packages, folder)}, {show(browser, code, folder, slider)}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
