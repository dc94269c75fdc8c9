"""docs/cell.md shows what the command really prints, and its Python examples run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.wireless.channels.fading import FADING, FADINGS
from fedwave.wireless.channels.gains_file import FileConfig
from fedwave.wireless.channels.three_gpp import ThreeGppConfig

PAGE = (Path(__file__).parents[2] / "docs" / "cell.md").read_text(encoding="utf-8")


def test_the_printed_link_budget_is_the_real_one():
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["cell", "umi-3.5ghz"], catch_exceptions=False)
    printed = "\n".join(line.rstrip() for line in result.output.splitlines()).strip()
    assert f"```text\n$ fedwave cell umi-3.5ghz\n{printed}\n```" in PAGE


def test_the_python_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layouts = []
    for example in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(compile(example, "docs/cell.md", "exec"), {})
        if "np.save" in example:
            gains = FileConfig(path=Path("gains.npy")).build(num_devices=6, num_blocks=4)
            layouts.append((gains.num_rounds, 0 < gains.max_gain < 1e-8))
    assert layouts == [(5, True), (None, True), (5, True), (5, True)]  # Sionna, DeepMIMO, ns-3, QuaDRiGa
    sinr_db, share_heard = map(float, capsys.readouterr().out.split())
    assert 0 < sinr_db < 60
    assert 0.3 < share_heard < 0.7  # four standard errors of 100 coins


def test_the_layouts_put_each_number_where_it_belongs(tmp_path, monkeypatch):
    """Device i, block m and round k of a tool's array become index (k, i, m): one entry stands out."""
    monkeypatch.chdir(tmp_path)
    at = {"Sionna": (0, 0, 1, 4, 0, 3, 30), "DeepMIMO": (4, 0, 5, 30), "QuaDRiGa": (4, 1, 0, 30, 3)}
    name = {"Sionna": "h_f", "DeepMIMO": "channel", "QuaDRiGa": "h"}
    for tool, index in at.items():
        example = re.search(rf"\*\*{tool}\*\*:.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
        lines = example.splitlines()
        place = next(i for i, line in enumerate(lines) if line.startswith(f"{name[tool]} = "))
        lines[place] = re.sub(r" \* 1e-5.*", " * 0", lines[place])
        lines.insert(place + 1, f"{name[tool]}[{index}] = 12.0")
        exec(compile("\n".join(lines), tool, "exec"), {})
        gains = np.load("gains.npy")
        gains = gains[3] if gains.ndim == 3 else gains
        assert gains[4, 2] == 12.0  # 144 over 12 subcarriers; subcarrier 30 is in block 2
        assert np.count_nonzero(gains) == 1


def test_the_page_says_which_options_belong_to_which_kind():
    own = {option for kind in FADINGS for option in FADING.options(kind)}
    for option in own | ThreeGppConfig.all_options():
        assert f"{option}`" in PAGE
