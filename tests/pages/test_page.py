"""The page in a real browser: it draws, complains of nothing, and asks nobody for anything."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.pages.page import MAX_POINTS, Html, Section, html_table, page, write_page
from fedwave.plots.chart import Chart, ChartPanel, Series, series_of_runs
from tests.pages.browser import browser, embedded, open_page


def chart(name: str = "one", **panel) -> Chart:
    line = Series("a <b> & c", (1.0, 2.0), (3.0, float("nan")), (2.0, 3.0), (4.0, 5.0), 3)
    other = Series("other", (1.0, 2.0), (1.0, 2.0), (1.0, 2.0), (1.0, 2.0), 1, is_dashed=True)
    return Chart(name, "A chart", "Its caption.", (ChartPanel("t", "x", "y", (line, other), **panel),))


def test_a_page_names_no_address_to_load_from() -> None:
    text = page("T", "", [Section("s", "S", "", [chart()])])
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", text)
    assert "@import" not in text
    assert "url(http" not in text
    assert "default-src 'none'" in text


def test_text_cannot_become_markup_or_end_the_script() -> None:
    evil = "</script><script>alert(1)</script>"
    one = Chart("c", evil, evil, (ChartPanel(evil, evil, evil, ()),))
    text = page(evil, "", [Section("s", evil, html_table([evil], [[evil]]), [one])])
    assert text.count("<script") == 2
    assert embedded(text)["c"]["title"] == evil
    assert "<b>x</b>" in html_table([""], [[Html("<b>x</b>")]])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("τ = 10", "τ\u00a0=\u00a010"),
        ("1 ± 2 %", "1\u00a0±\u00a02 %"),
        ("0.1 (8.5e-05)", "0.1 (8.5e-\u206005)"),
        ("e-0", "e-0"),
    ],
)
def test_a_number_stays_on_the_line_of_its_name_and_of_its_interval(given: str, shown: str) -> None:
    assert f"<td>{shown}</td>" in html_table(["a"], [[given]])


def test_missing_numbers_are_null_in_the_data() -> None:
    data = embedded(page("T", "", [Section("s", "S", "", [chart()])]))
    assert data["one"]["panels"][0]["series"][0]["mean"] == [3.0, None]


def test_single_runs_are_drawn_where_they_go_on_after_their_mean() -> None:
    x = np.arange(1.0, 401.0)
    longer = series_of_runs("a", [(x, 2 * x), (x[:200], x[:200])])
    alike = series_of_runs("b", [(x, 2 * x), (x, x)])
    one = Chart("one", "", "", (ChartPanel("t", "x", "y", (longer, alike)),))
    first, second = embedded(page("T", "", [Section("s", "S", "", [one])]))["one"]["panels"][0]["series"]
    (long_x, long_y), (short_x, _) = first["runs"]
    assert (len(long_x), long_x[0], long_x[-1], short_x[-1]) == (MAX_POINTS, 1.0, 400.0, 200.0)
    assert long_y == [2 * value for value in long_x]
    assert second["runs"] == []


def test_the_script_is_one_piece_without_imports_and_exports() -> None:
    text = page("T", "", [])
    script = text.split('<script type="module">')[1].split("</script>")[0]
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:const|let|function|class|async function) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)) > 20


def test_a_page_that_cannot_be_written_is_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write the page .*page\.html: .+\. Choose another --out"):
        write_page(tmp_path / "file" / "page.html", "text")
    with pytest.raises(RunError, match=r"cannot write the page"):
        write_page(tmp_path, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_charts_are_drawn_in_a_browser(tmp_path, is_dark) -> None:
    kinds = [chart("line"), chart("log", has_log_x=True, has_log_y=True), chart("bars", kind="bars")]
    path = write_page(tmp_path / "page.html", page("T", "", [Section("s", "S", "", kinds)]))
    seen = open_page(path, tmp_path, is_dark=is_dark)
    assert (seen.wrong, seen.loaded, seen.console) == ([], [], [])
    assert seen.dom.count('role="img"') == 3
    drawn = re.sub(r"<script.*?</script>", "", seen.dom, flags=re.DOTALL)
    assert "NaN" not in drawn
    assert drawn.count("a &lt;b&gt; &amp; c") >= 3  # a legend entry for each chart
    assert ("#7b8dff" in drawn) == is_dark  # blue that can be told from the other blue on black


@pytest.mark.parametrize(
    "label", ["loss", "NUFM's loss below Per-FedAvg's [%]", "held-out accuracy after adaptation"]
)
@pytest.mark.parametrize("title", ["CIFAR-10", "Fashion-MNIST, training devices"])
def test_the_title_of_a_panel_and_its_axis_do_not_cover_each_other(tmp_path, title, label) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    panel = ChartPanel(title, "x", label, (Series("a", (1.0, 2.0), (3.0, 4.0), (2.0, 3.0), (4.0, 5.0), 3),))
    four = Chart("one", "A chart", "", (panel,) * 4, num_columns=4)
    path = write_page(tmp_path / "page.html", page("T", "", [Section("s", "S", "", [four])]))
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        opened = launched.new_page()
        opened.goto(path.as_uri())
        drawn = opened.locator(".panels svg").first
        box, head, words, axis = (
            found.bounding_box()
            for found in (
                drawn,
                drawn.locator(".title"),
                drawn.get_by_text(label),
                drawn.locator(".axis").first,
            )
        )
        launched.close()
    assert head["x"] + head["width"] < words["x"] or head["y"] + 0.9 * head["height"] < words["y"]
    for one in (head, words):
        assert box["x"] <= one["x"]
        assert one["x"] + one["width"] <= box["x"] + box["width"]
        assert one["y"] + one["height"] < axis["y"]


@pytest.mark.parametrize("kind", ["line", "bars"])
def test_a_pointer_reads_the_numbers_and_a_legend_entry_switches_its_series(tmp_path, kind) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    text = page("T", "", [Section("s", "S", "", [chart("one", kind=kind)])])
    path = write_page(tmp_path / "page.html", text)
    drawn = "path.line" if kind == "line" else "rect[opacity]"
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        opened = launched.new_page()
        opened.goto(path.as_uri())
        tip, legend, curves = (
            opened.locator(one) for one in ("#tooltip", ".legend button", f".panels {drawn}")
        )
        assert (tip.is_visible(), legend.count(), curves.count()) == (False, 2, 2)
        if kind == "line":
            box = opened.locator(".panels svg").bounding_box()
            opened.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
        else:
            curves.first.hover()
        assert tip.is_visible()
        read = tip.inner_text()
        assert "a <b> & c" in read
        assert "3" in read
        assert ("other" in read) == (kind == "line")  # a bar tells of itself
        opened.mouse.move(0, 0)
        assert not tip.is_visible()
        opened.locator(".panels svg").focus()
        opened.keyboard.press("ArrowRight")
        assert ("a <b> & c: 3" if kind == "line" else "other: 1") in tip.inner_text()  # from the left
        opened.locator(".panels svg").blur()
        assert not tip.is_visible()
        for pressed, left in (("false", 1), ("true", 2)):
            legend.first.click()
            assert (legend.first.get_attribute("aria-pressed"), curves.count()) == (pressed, left)
        launched.close()


def test_the_watch_sees_errors_and_requests(tmp_path) -> None:
    """The test above can fail: a page that errs and loads is seen to."""
    text = page("T", '<img src="http://127.0.0.1:9/x.png">', [])
    path = write_page(tmp_path / "page.html", text.replace("</body>", "<script>absent()</script></body>"))
    seen = open_page(path, tmp_path)
    assert any("absent" in line for line in seen.wrong)
    assert any("127.0.0.1:9" in line for line in (*seen.wrong, *seen.loaded))
    assert seen.console
