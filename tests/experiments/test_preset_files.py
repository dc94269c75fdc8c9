"""The shipped presets: each has a name and a text, and a wrong name is answered with the nearest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import fedwave
from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.experiments.preset_files import preset_names, preset_text

FOLDER = Path(fedwave.__file__).parent / "experiments" / "presets"


def test_every_file_is_a_preset_under_its_path() -> None:
    assert preset_names() == sorted(
        file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.toml")
    )
    assert tomllib.loads(preset_text("paper/nufm")) == tomllib.loads((FOLDER / "paper/nufm.toml").read_text())


@pytest.mark.parametrize("access", ["blocks", "shared-band", "tdma"])
def test_street_presets_of_an_access_differ_from_ural_in_that_alone(access: str) -> None:
    own, base = load_experiment(f"umi/ural-{access}"), load_experiment("umi/ural")
    assert own.cell is not None
    assert base.cell is not None
    assert own.cell.access == access
    assert own.cell.work_conserving is (access == "blocks")
    changed = {"access": "one-block", "work_conserving": False}
    same = own.model_copy(update={"cell": own.cell.model_copy(update=changed), "name": base.name})
    assert same == base


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r'"paper/nuffm" is neither.*Did you mean "paper/nufm"'):
        preset_text("paper/nuffm")
