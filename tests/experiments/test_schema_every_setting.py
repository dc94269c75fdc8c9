"""Every setting reaches its place: changed, it changes what it should, or it is refused.

A new setting without a line in ``learning_lines`` or ``cell_lines`` makes the first test fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.experiments import Experiment
from tests.experiments.cell_lines import CELL_LINES
from tests.experiments.learning_lines import LEARNING_LINES
from tests.experiments.schema_walk import every_setting
from tests.experiments.setting_lines import Line, write_files

LINES = [*LEARNING_LINES, *CELL_LINES]


def test_there_is_a_line_for_every_setting() -> None:
    assert sorted(line.path for line in LINES) == sorted(
        setting.path for setting in every_setting(Experiment)
    )


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.path)
def test_a_setting_reaches_its_place(line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    assert line.after(tmp_path / "after") == line.expected
    assert line.before(tmp_path / "before") != line.expected
