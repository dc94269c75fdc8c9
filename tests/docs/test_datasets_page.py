"""docs/datasets.md is true: its examples run, its table names the datasets there are."""

from __future__ import annotations

import re
from pathlib import Path

from fedwave.data import DATASETS, PARTITIONS, partition_options

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_examples_run_and_print_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"^```python runnable\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "datasets.md", "exec"), namespace)
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown


def first_column(heading: str) -> list[str]:
    table = PAGE.split(heading)[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_the_tables_name_what_there_is():
    assert first_column("| name | samples |") == list(DATASETS)
    assert first_column("| kind | how many samples") == list(PARTITIONS)
    for kind in PARTITIONS:
        assert all(f"`{option}`" in PAGE for option in partition_options(kind))
