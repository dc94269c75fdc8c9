"""Every name in docs/notation.md is defined where its row says: a field, parameter, function or column."""

from __future__ import annotations

import ast
import re

import pytest
from pydantic import BaseModel

from fedwave.experiments.schema import Experiment
from fedwave.runs.tables import TABLES
from fedwave.settings.layers import sections_in
from tools.docs.pages import ROOT, read

ROWS = [
    [cell.strip() for cell in row.split("|")]
    for row in re.findall(r"^\| (.+) \|$", read("notation.md"), re.MULTILINE)
    if not row.startswith(("symbol", "---"))
]
COLUMNS = {name.replace("{step}", "0") for columns in TABLES.values() for name, _ in columns}


def defined_in(module: str) -> set[str]:
    """Return what a file defines: functions, classes, parameters, fields, attributes, assigned names."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / "src" / "fedwave" / module).read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return names


def settings_of(model: type[BaseModel]) -> set[str]:
    """Return the keys of a group of settings and of all groups inside it."""
    names = set(model.model_fields)
    for info in model.model_fields.values():
        for section in sections_in(info.annotation):
            names |= settings_of(section)
    return names


def test_the_table_is_read():
    assert len(ROWS) >= 50
    assert {len(row) for row in ROWS} == {5}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_what_its_modules_define(row):
    _, names, _, _, modules = row
    defined = {file: defined_in(file) for file in re.findall(r"`([^`]+)`", modules)}
    # "`name`, column `other`" and "`name`; `other` in settings" say where the other names are.
    for column in re.findall(r"columns? ((?:`\w+`(?:, )?)+)", names):
        assert set(re.findall(r"`(\w+)`", column)) <= COLUMNS
    for setting in re.findall(r"`(\w+)` in settings", names):
        assert setting in settings_of(Experiment)
    elsewhere = r"columns? (?:`\w+`(?:, )?)+|`\w+` in settings|`\[\w+\]`"
    own = re.findall(r"`(\w+)`", re.sub(elsewhere, "", names))
    assert own
    for name in own:
        assert any(name in names for names in defined.values()), f"{name} is in none of {list(defined)}"
    for file, names_there in defined.items():
        assert names_there & set(own), f"{file} defines nothing of this row"
