"""docs/cell.md shows what the command really prints, and its Python example runs."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from fedwave.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "cell.md").read_text(encoding="utf-8")


def test_the_printed_link_budget_is_the_real_one():
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["cell", "umi-3.5ghz"], catch_exceptions=False)
    printed = "\n".join(line.rstrip() for line in result.output.splitlines()).strip()
    assert f"```text\n$ fedwave cell umi-3.5ghz\n{printed}\n```" in PAGE


def test_the_python_example_runs(capsys):
    example = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)[-1]
    exec(compile(example, "docs/cell.md", "exec"), {})
    assert 0 < float(capsys.readouterr().out) < 60
