"""Every setting reaches its place: changed, it changes what it should, or it is refused.

A new setting without a case among those of learning, the cell and batteries makes the first test fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.experiments import Experiment
from tests.experiments.battery_setting_cases import BATTERY_CASES
from tests.experiments.cell_setting_cases import CELL_CASES
from tests.experiments.learning_setting_cases import LEARNING_CASES
from tests.experiments.schema_walk import every_setting
from tests.experiments.setting_cases import SettingCase, write_files

CASES = [*LEARNING_CASES, *CELL_CASES, *BATTERY_CASES]


def test_there_is_a_case_for_every_setting() -> None:
    assert sorted(case.path for case in CASES) == sorted(
        setting.path for setting in every_setting(Experiment)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_a_setting_reaches_its_place(
    case: SettingCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    assert case.after(tmp_path / "after") == case.expected
    assert case.before(tmp_path / "before") != case.expected
