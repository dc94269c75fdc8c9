"""Whole runs give what they gave: all presets of the digits, and two of the paper's on synthetic data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedwave.experiments import preset_names
from tests.golden.make_golden import GOLDEN, RUNS, results_of

RTOL = 2e-4  # other processors add in another order
RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text())


def same(value: Any, recorded: Any) -> bool:
    """Whole numbers, text and lists of devices to the letter, real numbers nearly."""
    if isinstance(recorded, float):
        return isinstance(value, float) and value == pytest.approx(recorded, rel=RTOL, abs=1e-9)
    return type(value) is type(recorded) and value == recorded


@pytest.mark.parametrize("preset", RUNS)
def test_a_preset_gives_the_numbers_that_it_gave(preset: str, tmp_path: Path) -> None:
    found, recorded = results_of(preset, tmp_path / "run"), RECORDED[preset]
    for table, columns in recorded.items():
        assert set(found[table]) == set(columns)
        for name, values in columns.items():
            got = found[table][name]
            pairs = list(zip(got, values, strict=True)) if isinstance(values, list) else [(got, values)]
            assert all(same(value, one) for value, one in pairs), f"{table}, {name}: {got}, was {values}"


def test_every_preset_of_the_digits_is_recorded() -> None:
    assert set(RECORDED) == set(RUNS)
    assert {name for name in preset_names() if name.startswith("digits/")} < set(RUNS)
