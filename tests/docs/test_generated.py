"""What is generated stands in the pages as the code and the measurements have it: `python -m tools.docs`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from fedwave.experiments import experiment_from, load_experiment, preset_names
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schemes import SCHEMES
from fedwave.runs.run import run_experiment
from fedwave.settings.section import Section
from fedwave.wireless.settings.config import CellConfig
from tools.docs import GENERATED
from tools.docs.module_tree import FOLDERS, SOURCE
from tools.docs.pages import NOTEBOOKS, PAGES, ROOT, read, written_part
from tools.docs.results_numbers import ABOUT, SHOWN, filled_in, marked, measurements, values


@pytest.mark.parametrize(("page", "name"), GENERATED)
def test_a_generated_part_is_up_to_date(page, name):
    assert written_part(page, name) == GENERATED[page, name](), "run: python -m tools.docs"


# Columns --------------------------------------------------------------------------------------------------


BATTERY = "cell.battery={ capacity_j = 9.0 }"
STEPS = ["algorithm.local_steps=adaptive", "stop.energy_j=50"]


def documented_columns(name: str, *, kinds: tuple[str, ...]) -> list[str]:
    rows = re.findall(r"^\| `([^`]+)` \| \w+ \| (\w*) \|", written_part("run-folder.md", name), re.MULTILINE)
    return [
        column.replace("{metric}", "accuracy").replace("{step}", "0").replace("{own}", "price_per_j")
        for column, kind in rows
        if kind in kinds
    ]


@pytest.mark.parametrize(
    ("preset", "changes", "kinds"),
    [
        ("digits/nufm", [], ("",)),
        ("digits/ural", [], ("", "cell")),
        ("digits/ural", [BATTERY], ("", "cell", "battery")),
        ("digits/ural", ["cell.estimation=log-normal"], ("", "cell", "estimation")),
        ("digits/ural", STEPS, ("", "cell", "steps")),
        ("digits/ural", ["algorithm.planner=constant-prices"], ("", "cell", "planner")),
    ],
)
def test_the_documented_columns_and_files_are_those_of_a_run(preset, changes, kinds, tmp_path):
    path = run_experiment(load_experiment(preset, ["num_rounds=1", *changes]), tmp_path / "run").path
    for name in ("rounds", "devices", "heldout"):
        with (path / f"{name}.csv").open(encoding="utf-8") as file:
            assert next(csv.reader(file)) == documented_columns(name, kinds=kinds)
    listed = set(re.findall(r"^\| `([\w.]+)` \|", read("run-folder.md").split("\n## ")[0], re.MULTILINE))
    assert {file.name for file in path.iterdir()} <= listed


def test_the_documented_keys_of_the_summary_are_those_of_a_run(tmp_path):
    settings = load_experiment("digits/ural", ["num_rounds=1", BATTERY])
    summary = run_experiment(settings, tmp_path / "run").summary
    section = read("run-folder.md").split("\n## summary.json\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", section, re.MULTILINE)
    keys = [name.replace("{metric}", "accuracy") for row, _ in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(keys) == sorted(summary)
    inner = {row.strip("`"): re.findall(r"`(\w+)`", meaning) for row, meaning in rows}
    assert set(inner["cell"]) == set(summary["cell"])
    assert set(inner["battery"]) == set(summary["battery"])


# Settings and modules -------------------------------------------------------------------------------------


def test_the_settings_tables_name_every_key_that_cell_md_does_not():
    shown = set(re.findall(r"^\| `(\w+)` \|", written_part("training.md", "settings"), re.MULTILINE))
    settings = experiment_from({"scheme": "ural", "cell": {"preset": "paper"}})
    for key, value in settings:
        if key == "cell":
            assert set(CellSection.model_fields) - set(CellConfig.model_fields) <= shown
            assert not shown & {"bandwidth_hz", "channel", "fleet"}
            keys = read("cell.md").split("| key | default | meaning |\n|---|---|---|\n")[1].split("\n\n")[0]
            assert re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE) == list(CellConfig.model_fields)
        elif isinstance(value, Section):
            assert set(type(value).model_fields) <= shown
        else:
            assert key in shown
    assert "scheme" in shown


def test_the_schemes_shown_are_what_they_stand_for():
    rows = re.findall(
        r"^\| `([\w-]+)` \| `([\w-]+)` \| `([\w-]+)` \| (?:`([\w-]+)`|any, or no cell) \|$",
        written_part("training.md", "schemes"),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == list(SCHEMES)
    for name, gradient, policy, method in rows:
        cell = {"cell": {"preset": "paper"}} if method else {}
        experiment = experiment_from({"scheme": name, **cell})
        assert (experiment.algorithm.rule.kind, experiment.selection.policy.kind) == (gradient, policy)
        assert (experiment.cell.method.kind if experiment.cell else "") == method


def test_the_tree_names_every_module_once():
    shown = re.findall(r"^ *(\w+\.py) ", written_part("modules.md", "tree"), re.MULTILINE)
    existing = [path.name for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(shown) == sorted(existing)
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert folders == set(FOLDERS)


def test_imports_point_from_later_parts_to_earlier_ones():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", written_part("modules.md", "imports"), re.MULTILINE)
    assert [part for part, _ in rows] == list(FOLDERS)
    for part, used in rows:
        for other in re.findall(r"`(\w+)`", used):
            assert FOLDERS.index(other) < FOLDERS.index(part), f"{part} imports {other}"


# Measured numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda path: path.name)
def test_a_page_shows_the_numbers_of_the_results_file(page):
    text = page.read_text(encoding="utf-8")
    assert text == filled_in(text), "change docs/results.toml, then run: python -m tools.docs"


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda path: path.name)
def test_a_page_writes_no_measured_number_by_hand(page):
    """A number of three digits or more that is in the results file is marked wherever it is shown."""
    by_hand = SHOWN.sub("", page.read_text(encoding="utf-8"))
    by_hand = re.sub(r"<!-- (\w+):begin .*?<!-- \1:end -->", "", by_hand, flags=re.DOTALL)  # generated
    # What stands as code is an output beside its command, or an example.
    by_hand = re.sub(r"^```.*?^```", "", by_hand, flags=re.MULTILINE | re.DOTALL)
    by_hand = re.sub(r"`[^`\n]+`", "", by_hand)
    for name, value in values().items():
        is_short = len(re.findall(r"\d", value)) < 3
        if name.split(".")[1] in ABOUT or "\n" in value or is_short:
            continue
        assert not re.search(rf"(?<![\d.,]){re.escape(value)}(?!\d)", by_hand), (
            f"{name} = {value} is not marked"
        )


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda path: path.name)
def test_no_line_begins_with_a_mark(page):
    """Markdown takes a line that begins with a comment for HTML, and what follows on it for raw text."""
    for line in page.read_text(encoding="utf-8").splitlines():
        begins = re.match(r"(?:# )?\s*(?:[-*] |\d+\. )?<!--[=/]", line)
        assert not begins or re.fullmatch(r"<!--=[\w.]+-->|<!--/=-->", line), line


def test_the_findings_of_the_notebooks_carry_their_numbers():
    """What a notebook does not compute itself is a measurement that results.toml has."""
    found = {path.stem: set(marked(path.read_text(encoding="utf-8"))) for path in NOTEBOOKS}
    assert found["learning"] >= {"reproduction.seeds", "reproduction.nufm_minus_per_fedavg"}
    assert found["paper_in_ten_minutes"] >= {
        "reproduction.lead_5",
        "ives.uniform_lost",
        "planning.value_rate_few",
    }


def test_every_measurement_is_shown_and_has_a_command_and_a_caveat():
    shown = {name for page in (*PAGES, *NOTEBOOKS) for name in marked(page.read_text(encoding="utf-8"))}
    for group, entries in measurements().items():
        assert set(ABOUT) < set(entries), group
        assert all(entries.values()), group
    assert {name for name in values() if not name.endswith(".caveat")} <= shown


def test_the_commands_of_the_measurements_exist():
    for group, entries in measurements().items():
        command = entries["command"].split()
        if command[0] in ("python", "pytest"):
            assert (ROOT / command[1]).is_file(), group
        elif command[:2] == ["fedwave", "run"]:
            assert any(name.startswith(command[2].removesuffix("SCHEME")) for name in preset_names()), group
        else:
            known = ("cell", "demo", "longterm", "reproduce", "theory")
            assert command[:2] in [["fedwave", name] for name in known], group


def test_a_changed_number_is_noticed(monkeypatch):
    text = Path(ROOT / "README.md").read_text(encoding="utf-8")
    name = "allocation.n_1m"
    assert name in set(marked(text))
    wrong = text.replace(f"<!--={name}-->{values()[name]}<", f"<!--={name}-->0.5 s<")
    assert wrong != text
    assert filled_in(wrong) == text
    with pytest.raises(KeyError, match=r"docs/results\.toml has no allocation\.n_2m"):
        filled_in(text.replace("allocation.n_1m", "allocation.n_2m"))


def test_a_measured_table_has_rows_alone():
    """What a command says on the side, a warning, is none of its results."""
    tables = {name: text for name, text in values().items() if text.startswith("\n|")}
    assert len(tables) > 5
    for name, text in tables.items():
        assert [line for line in text.strip().splitlines() if not line.startswith("|")] == [], name
