"""CONTRIBUTING names files that exist and places that are there."""

from __future__ import annotations

import re

import pytest

from tools.docs.pages import ROOT, read

SOURCE = ROOT / "src" / "fedwave"
TABLE = (
    read("CONTRIBUTING.md").split("| to add | copy | add a line to |\n|---|---|---|\n")[1].split("\n\n")[0]
)
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines()]
# What a newcomer must find within a minute.
WANTED = ("policy", "channel", "local rule", "server step", "loss", "result column", "executor", "planner")


def test_every_kind_of_part_is_there():
    for part in WANTED:
        assert any(part in row[0] for row in ROWS), part


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_files_to_copy_exist_and_define_what_is_named(row):
    what, copy, line = row
    for path in re.findall(r"`([\w./-]+\.(?:py|toml))`", f"{copy} {line}"):
        assert (SOURCE / path).is_file(), f"{what}: {path}"
    for names, path in re.findall(r"((?:`\w+`(?: or )?)+) in `([\w/]+\.py)`", line):
        text = (SOURCE / path).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE), f"{what}: {name} in {path}"
