"""The documentation is true: examples run, links and anchors exist, tables agree with the code."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from fedwave.allocation import METHODS, AllocationProblem, allocate, violations
from fedwave.data import PARTITIONS
from fedwave.experiments import load_experiment, preset_names
from fedwave.experiments.run import run_experiment
from fedwave.learning.models import MODELS, Model, build_model
from fedwave.selection import POLICIES, SelectionPolicy
from tests.docs import settings_table

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
BLOCK = re.compile(r"^```python (runnable|file=(\S+))\n(.*?)^```", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """Names of a fresh module in an empty folder; what the examples register is forgotten afterwards."""
    before = [(registry, set(registry)) for registry in (POLICIES, MODELS, METHODS, PARTITIONS)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    page = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    yield page.__dict__
    for registry, names in before:
        for name in set(registry) - names:
            del registry[name]
    sys.modules.pop("my_model", None)


def run_blocks(page: str, namespace: dict[str, Any]) -> None:
    """Write the page's files, then run its marked blocks in order."""
    blocks = BLOCK.findall(read(page))
    for _, file_name, code in blocks:
        if file_name:
            Path(file_name).write_text(code, encoding="utf-8")
    runnable = [code for kind, _, code in blocks if kind == "runnable"]
    assert runnable
    for code in runnable:
        exec(compile(code, page, "exec"), namespace)


def test_the_tutorial_runs_and_shows_real_numbers(namespace, capsys):
    run_blocks("tutorial.md", namespace)
    printed = capsys.readouterr().out
    shown = read("tutorial.md").split("## The same from Python")[1].split("```text\n")[1].split("```")[0]
    numbers = [float(word) for word in re.findall(r"\d\.\d*", printed)]
    expected = [float(word) for word in re.findall(r"\d\.\d*", shown)]
    assert len(expected) == 11
    # Another processor may sum in another order, which moves a few predictions of some 400.
    assert numbers[:11] == pytest.approx(expected, abs=0.02)


def test_the_example_of_the_run_folder_runs(namespace, capsys):
    run_blocks("run-folder.md", namespace)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_skeletons_run_and_keep_their_contracts(namespace):
    run_blocks("extending.md", namespace)
    check_policy(POLICIES["power-of-choice"](3))
    check_model(build_model("tanh", (1, 4, 4), 3, hidden=[5]))
    check_method("loud")


def check_policy(policy: SelectionPolicy) -> None:
    for seed in range(20):
        chosen = policy.select(10, np.arange(10.0), rng=np.random.default_rng(seed))
        assert len(chosen) == 3
        assert np.all(np.diff(chosen) > 0)
        assert chosen[0] >= 3  # three others were drawn and lost to it


def check_model(model: Model) -> None:
    """Stacked scores are those of the plain module, device by device."""
    own = [model.initial_parameters(np.random.default_rng(seed)) for seed in (0, 1)]
    stacked = {name: torch.stack([one[name] for one in own]) for name in own[0]}
    inputs = torch.randn(2, 6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    scores = model.logits(stacked, inputs)
    for device in (0, 1):
        torch.testing.assert_close(scores[device], model.to_module(own[device])(inputs[device].flatten(1)))


def check_method(method: str) -> None:
    """No constraint is broken, and nothing is better than the optimum."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        problem = AllocationProblem(
            contribution=rng.uniform(-1, 10, 8),
            channel_gain=rng.uniform(0.1, 1, 8),
            interference_w=rng.uniform(0, 0.8, 3),
            max_power_w=rng.uniform(0, 1, 8),
            workload_cycles=1.0,
            max_frequency_hz=2.0,
            capacitance=0.5,
            model_bits=1,
            bandwidth_hz=1,
            noise_psd_w_per_hz=1,
            energy_weight=1,
            delay_weight=1,
        )
        found = allocate(problem, method)
        assert not violations(problem, found)
        assert found.objective <= allocate(problem).objective + 1e-9


def slugs(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue  # the web
        file_name, _, anchor = target.partition("#")
        path = (page.parent / file_name).resolve() if file_name else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in slugs(path.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def test_anchors_that_the_code_names_exist():
    named = {
        (path.name, page, anchor)
        for path, text in SOURCES.items()
        for page, anchor in re.findall(r"docs/([\w-]+\.md)(?:#([\w-]+))?", text)
    }
    assert named
    for source, page, anchor in named:
        assert (ROOT / "docs" / page).exists(), f"{source} names docs/{page}"
        if anchor:
            assert anchor in slugs(read(page)), f"{source} names docs/{page}#{anchor}"


def test_the_settings_tables_are_those_of_the_schema():
    found = settings_table.BETWEEN.search(read("training.md"))
    assert found
    shown = found[0].removeprefix(found[1]).removesuffix(found[2])
    assert shown == settings_table.settings_tables(), "run: python -m tests.docs.settings_table"


def documented_columns(heading: str) -> list[list[str]]:
    """Return the first column of each table under a heading of run-folder.md."""
    section = read("run-folder.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables = re.split(r"^\| column \| unit \| meaning \|\n\|---\|---\|---\|\n", section, flags=re.MULTILINE)[
        1:
    ]
    return [re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) for table in tables]


@pytest.mark.parametrize("preset", ["digits/nufm", "digits/ural"])
def test_the_documented_columns_are_those_of_a_run(preset, tmp_path):
    over_cell = preset == "digits/ural"
    path = run_experiment(load_experiment(preset, ["num_rounds=1"]), tmp_path / "run").path
    rounds, cell_rounds = documented_columns("rounds.csv")
    devices, cell_devices = documented_columns("devices.csv")
    expected = {
        "rounds.csv": [*rounds[:-1], *cell_rounds, rounds[-1]] if over_cell else rounds,
        "devices.csv": devices + cell_devices if over_cell else devices,
        "heldout.csv": documented_columns("heldout.csv")[0],
    }
    for name, columns in expected.items():
        with (path / name).open(encoding="utf-8") as file:
            assert next(csv.reader(file)) == columns
    listed = set(re.findall(r"^\| `([\w.]+)` \|", read("run-folder.md").split("\n## ")[0], re.MULTILINE))
    assert {file.name for file in path.iterdir()} <= listed


def test_the_names_and_modules_of_the_notation_exist():
    everything = "\n".join(SOURCES.values())
    rows = re.findall(r"^\| (.+) \|$", read("notation.md"), re.MULTILINE)
    for row in rows:
        if row.startswith(("symbol", "---")):
            continue
        _, names, _, _, modules = re.split(r"\s*\|\s*", row)
        for module in re.findall(r"`([^`]+)`", modules):
            assert (ROOT / "src" / "fedwave" / module).exists(), module
        for name in re.findall(r"`([a-z_A-Z]\w*)`", names):
            stem = re.sub(r"_0$", "_", name)  # gradient_norm_0 is made from a template
            assert re.search(rf"\b{stem}", everything), name


def test_commands_shown_name_real_presets_and_settings():
    command = re.compile(r"(?:^|\$ |`)(?:PYTHONPATH=\. )?fedwave run ([^`\n]+)", re.MULTILINE)
    seen = 0
    for page in PAGES:
        for line in command.findall(page.read_text(encoding="utf-8")):
            words = shlex.split(line, comments=True)
            if words[0] in preset_names():
                load_experiment(words[0], [words[i + 1] for i, word in enumerate(words) if word == "-s"])
                seen += 1
    assert seen >= 8


def test_the_python_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert (tmp_path / "runs" / "first" / "summary.json").exists()
