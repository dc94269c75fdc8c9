"""Examples run in a module of their own, in an empty folder; what they register is forgotten afterwards."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedwave.allocation import METHODS
from fedwave.data import PARTITIONS
from fedwave.learning import LOCAL_RULES, MODELS, SERVER_STEPS, TASKS
from fedwave.runs.tables import TABLES
from fedwave.selection import POLICIES
from fedwave.simulation import columns
from fedwave.wireless.channels import CHANNELS
from tools.docs.pages import read

REGISTRIES: tuple[dict[str, Any], ...] = (
    POLICIES,
    METHODS,
    CHANNELS,
    LOCAL_RULES,
    SERVER_STEPS,
    TASKS,
    MODELS,
    PARTITIONS,
    TABLES,
)
BLOCK = re.compile(r"^```python (runnable|file=(\S+))\n(.*?)^```", re.MULTILINE | re.DOTALL)

Namespace = dict[str, Any]


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Namespace]]:
    """A function that writes a page's files, runs its marked blocks in order, and returns their names."""
    before = [dict(registry) for registry in REGISTRIES]
    monkeypatch.setattr(columns, "ROUND_COLUMNS", columns.ROUND_COLUMNS)
    monkeypatch.setattr(columns, "DEVICE_COLUMNS", columns.DEVICE_COLUMNS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    written: list[str] = []

    def run(page: str) -> Namespace:
        module = ModuleType("docs_page")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        blocks = BLOCK.findall(read(page))
        for _, file_name, code in blocks:
            if file_name:
                Path(file_name).write_text(code, encoding="utf-8")
                written.append(Path(file_name).stem)
        runnable = [code for kind, _, code in blocks if kind == "runnable"]
        assert runnable
        for code in runnable:
            exec(compile(code, page, "exec", dont_inherit=True), module.__dict__)
        return module.__dict__

    yield run
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in written:
        sys.modules.pop(name, None)
