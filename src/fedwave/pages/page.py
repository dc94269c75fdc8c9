"""One self-contained HTML file from sections of text, tables and charts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.json_values import json_value
from fedwave.plots.chart import Chart, Curve, Series

# Nothing may be loaded from anywhere: the browser itself enforces it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

MAX_POINTS = 150  # of a single run, where runs are drawn


@dataclass(frozen=True)
class Section:
    """A heading with HTML below it, then charts, then more HTML."""

    anchor: str
    title: str
    body: str = ""
    charts: Sequence[Chart] = field(default_factory=tuple)
    after: str = ""


def page(title: str, introduction: str, sections: Sequence[Section]) -> str:
    """Return the whole file as text; ``introduction`` and the bodies of sections are HTML."""
    links = "".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in sections)
    content = "\n".join(_section(one) for one in sections)
    charts = {chart.name: _data(chart) for one in sections for chart in one.charts}
    # "</script" inside a script would end it, and "<!--" begin something else.
    data = json.dumps(charts, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{introduction}
<nav aria-label="Contents">{links}</nav>
{content}
</main>
<div id="tooltip" role="status" hidden></div>
<script type="application/json" id="charts">{data}</script>
<script type="module">
{_script()}</script>
</body>
</html>
"""


def write_page(path: Path, text: str) -> Path:
    """Write a page in one step: the old or the new one is whole at any moment."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)  # noqa: PTH105 - also over an existing file on Windows
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise RunError(f"cannot write the page {path}: {error.strerror}. Choose another --out.") from error
    return path


def html_table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, css: str = "") -> str:
    """Return a table; a cell is text, or ``Html``. It scrolls by itself where the screen is narrow."""
    head = "".join(f"<th>{_cell(cell)}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    table = f'<table class="{css}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="wide">{table}</div>'


class Html(str):
    """Text that is HTML already."""


def _cell(content: Any) -> str:
    """Return a cell's HTML; a number stays on one line with its interval, and with what it is."""
    if isinstance(content, Html):
        return str(content)
    text = escape(str(content))
    for sign in "±=":
        text = text.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return re.sub(r"(?<=\de-)(?=\d)", "\u2060", text)  # a power of ten does not break at its hyphen


def _section(one: Section) -> str:
    charts = "\n".join(
        f'<figure class="chart" data-chart="{escape(chart.name)}" '
        f'style="--panels: {min(len(chart.panels), 3)}; --columns: {chart.num_columns}">'
        f"{_heading(chart, one)}"
        f"<figcaption>{escape(chart.caption)}</figcaption></figure>"
        for chart in one.charts
    )
    together = f'<div class="charts">{charts}</div>' if charts else ""
    content = "\n".join((f"<h2>{escape(one.title)}</h2>", one.body, together, one.after))
    return f'<section id="{one.anchor}">{content}</section>'


def _heading(chart: Chart, one: Section) -> str:
    """Return the heading of a chart, unless its section has the same."""
    is_same = chart.title.split(":")[0] == one.title.split(":")[0]
    return "" if is_same else f"<h3>{escape(chart.title)}</h3>"


def _script() -> str:
    """Return the script in one piece with what it imports: a page that is a file can load nothing."""
    text = "\n".join(map(_asset, ("dom.js", "chart.js", "page.js")))
    return re.sub(r"^(?:import .*;\n|export )", "", text, flags=re.MULTILINE)


def _asset(name: str) -> str:
    return (resources.files("fedwave.pages") / name).read_text(encoding="utf-8")


def _data(chart: Chart) -> Any:
    """Return a chart as the script takes it: numbers to six digits, None for what is missing."""
    panels = [
        replace(panel, series=tuple(replace(series, runs=_shown_runs(series)) for series in panel.series))
        for panel in chart.panels
    ]
    return _short(json_value(asdict(replace(chart, panels=tuple(panels)))))


def _shown_runs(series: Series) -> tuple[Curve, ...]:
    """Return the runs that go on where their mean ends, with no more points than a small chart shows."""
    if all(len(x) == len(series.x) for x, _ in series.runs):
        return ()
    thinned = []
    for x, y in series.runs:
        kept = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(np.int64))
        thinned.append((x[kept], y[kept]))
    return tuple(thinned)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_short(own) for own in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
