"""The code of docs/flower.md runs, on a grid in one process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flower.fake_grid import FakeGrid

PAGE = Path(__file__).parents[2] / "docs" / "flower.md"


def test_the_app_of_the_page_trains(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python flower\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)  # the page's own code
    grid = FakeGrid(names["client"], 4)
    names["main"](grid, next(iter(grid.contexts.values())))
    printed = capsys.readouterr().out
    # By hand: devices 3 and 2 are farthest from 0. w = (0.3 + 0.2) / 2 = 0.25, then 0.475 and 0.6775 alike.
    assert printed.strip().splitlines()[-1].endswith("[[2, 3], [2, 3], [2, 3]]")
    np.testing.assert_allclose(
        [float(x) for x in re.findall(r"0\.\d+", printed.splitlines()[-1])], [0.6775] * 3, rtol=1e-5
    )
