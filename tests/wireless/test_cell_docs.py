"""docs/cell.md shows what the command really prints, and its Python examples run."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.wireless.channels.faded import FadingConfig
from fedwave.wireless.channels.three_gpp import ThreeGppConfig

PAGE = (Path(__file__).parents[2] / "docs" / "cell.md").read_text(encoding="utf-8")


def test_the_printed_link_budget_is_the_real_one():
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["cell", "umi-3.5ghz"], catch_exceptions=False)
    printed = "\n".join(line.rstrip() for line in result.output.splitlines()).strip()
    assert f"```text\n$ fedwave cell umi-3.5ghz\n{printed}\n```" in PAGE


def test_the_python_examples_run(capsys):
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    for example in examples:
        exec(compile(example, "docs/cell.md", "exec"), {})
    snr_db, share_heard = map(float, capsys.readouterr().out.split())
    assert 0 < snr_db < 60
    assert 0.3 < share_heard < 0.7  # four standard errors of 100 coins


def test_the_page_says_which_options_belong_to_which_kind():
    for section in (ThreeGppConfig, FadingConfig):
        for option in section.all_options():
            assert f"{option}`" in PAGE
