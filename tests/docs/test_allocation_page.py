"""docs/allocation.md is true: its code runs, its table names the methods there are."""

from __future__ import annotations

import re
from pathlib import Path

from fedwave.allocation import METHODS, method_options

PAGE = Path(__file__).parents[2] / "docs" / "allocation.md"


def test_the_code_on_the_docs_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 7
    exec("\n".join(blocks), {})


def test_the_table_of_methods_is_that_of_the_code():
    rows = re.findall(
        r"^\| `([\w-]+)` \| [^|]+ \| (chooses|serves)([^|]*) \| ([^|]*)\|$", PAGE.read_text("utf-8"), re.M
    )
    assert [name for name, *_ in rows] == list(METHODS)
    for name, devices, needs, options in rows:
        assert METHODS[name].serves_given_devices is (devices == "serves")
        assert METHODS[name].needs_rng is ("needs `rng`" in needs)
        assert tuple(re.findall(r"`(\w+)`", options)) == method_options(name)


def test_the_page_names_the_methods_that_plan_for_risks():
    told = re.search(
        r"are risks\. (.*?) plan for them.*?\. (.*?) are defined without", PAGE.read_text("utf-8"), re.S
    )
    planning, others = (set(re.findall(r"`([\w-]+)`", part)) for part in told.groups())
    assert planning == {name for name, method in METHODS.items() if method.plans_for_risks}
    assert others == set(METHODS) - planning


def test_the_figure_is_there_and_small():
    figure = PAGE.parent / "figures" / "ives_gap.png"
    assert 10_000 < figure.stat().st_size < 300_000
    assert figure.with_name("make_ives_gap.py").exists()
