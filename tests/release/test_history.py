"""The benchmarks' history: what is read from their output, what a line holds, and that it can be drawn."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tools.docs.pages import ROOT

# As the benchmarks printed them.
ROUND = """fedwave                    0.760   2.451        1.25       1.00
plain loop                 1.210   3.945        1.98       1.59
fedwave takes 1.25 times its products; the bar of 1.4 is met
the plain loop takes 1.59 times fedwave; the bar is 1.6
"""
ALLOCATION = (
    "n = 100, M = 20 (20 seeds): optimum 2.70 ms (median 2.61, 9 matchings), one full matching 0.123 ms "
    "(uniform numbers 0.051 ms); 22 x a matching; the bar of 20 is missed\n"
)
EXECUTORS = "threads  0.730 s a round (median of 7)\nratio    1.16 (each: 0.89, 1.68)\n"


@pytest.fixture(scope="module")
def history() -> Any:
    spec = importlib.util.spec_from_file_location("history", ROOT / "benchmarks" / "history.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ratios_are_read_from_what_benchmarks_print(history):
    assert history.ratios(ROUND) == {
        "plain loop / fedwave, a round": 1.59,
        "fedwave / its matrix products": 1.25,
    }
    assert history.ratios(ALLOCATION) == {"certified optimum / one matching": 22.0}
    assert history.ratios(EXECUTORS) == {"Ray / threads, a round": 1.16}
    assert history.ratios("nothing of the kind: 3.0 times\n") == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bench_round.py", "fedwave takes {of_limit:.2f} times its products"),
        ("bench_round.py", "the plain loop takes {of_ours:.2f} times fedwave"),
        ("bench_allocation.py", "{solved / one:.0f} x a matching"),
        ("bench_executors.py", "ratio    {ratio:.2f} (each: "),
    ],
)
def test_the_benchmarks_still_print_so(name, words):
    assert words in (ROOT / "benchmarks" / name).read_text(encoding="utf-8")


def test_every_line_says_when_where_and_what(history):
    for kept in history.read():
        assert set(kept) == {"date", "version", "commit", "processor", "load", "command", "ratios"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
        assert re.fullmatch(r"[0-9a-f]{12}", kept["commit"])
        assert kept["command"].startswith("python benchmarks/bench_")
        assert kept["ratios"]
        assert set(kept["ratios"]) <= set(history.RATIOS)
        assert all(value > 0 for value in kept["ratios"].values())


def test_a_benchmark_without_a_ratio_adds_no_line(history, monkeypatch, tmp_path):
    monkeypatch.setattr(history, "HISTORY", tmp_path / "history.jsonl")
    with pytest.raises(SystemExit, match="no ratio"):
        history.main(["-c", "print('quiet')"])
    assert not (tmp_path / "history.jsonl").exists()


def test_a_run_is_added_and_drawn_and_its_failure_stays_one(history, monkeypatch, tmp_path):
    monkeypatch.setattr(history, "HISTORY", tmp_path / "history.jsonl")
    drawn: list[Any] = []
    monkeypatch.setattr(history, "draw", drawn.append)
    for code in (0, 1):
        with pytest.raises(SystemExit) as ended:
            history.main(["-c", f"import sys; print({ROUND!r}); sys.exit({code})"])
        assert ended.value.code == code
    assert [len(lines) for lines in drawn] == [1, 2]
    assert [one["ratios"] for one in drawn[-1]] == 2 * [history.ratios(ROUND)]


def test_lines_of_two_processors_have_two_colours(history, tmp_path: Path):
    (kept,) = history.read()[:1]
    picture = history.draw([kept, kept | {"processor": "another"}], tmp_path / "a.png")
    assert picture.stat().st_size > 5000
