from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "allocation.md"


def test_the_code_on_the_docs_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})


def test_the_figure_is_there_and_small():
    figure = PAGE.parent / "figures" / "ives_gap.png"
    assert 10_000 < figure.stat().st_size < 300_000
    assert figure.with_name("make_ives_gap.py").exists()
