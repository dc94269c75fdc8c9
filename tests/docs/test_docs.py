"""The pages are true: examples run, outputs are real, links and commands lead somewhere."""

from __future__ import annotations

import inspect
import re
import shlex
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

import fedwave
from fedwave.cli.app import app
from fedwave.experiments import Experiment, load_experiment, preset_names
from fedwave.selection import POLICIES
from fedwave.settings import parse_overrides
from fedwave.simulation.round import close_round, decide_round, play_round, take_models
from fedwave.wireless.settings.load import load_cell_config
from fedwave.wireless.settings.presets import CELL_PRESETS
from tools.docs.pages import PAGES, ROOT, read

SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
DOCS = ROOT / "docs"
ON_THE_SITE = (".md", ".py", ".toml", ".cff", "")  # of what stands outside docs/, see docs/site_hook.py


def shown_output(page: str, after: str) -> str:
    """Return the first block of output after a line of a page."""
    return read(page).split(after)[1].split("```text\n")[1].split("```")[0]


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"\d\.\d*", text)]


def test_the_tutorial_runs_and_shows_real_numbers(run_page, capsys):
    run_page("tutorial.md")
    printed = capsys.readouterr().out
    expected = numbers(shown_output("tutorial.md", "## The same from Python"))
    assert len(expected) == 11
    # Another processor may sum in another order, which moves a few predictions of some 400.
    assert numbers(printed)[:11] == pytest.approx(expected, abs=0.02)
    assert shown_output("tutorial.md", "split=user_split(owner)") in printed
    assert Path("comparison.png").exists()


@pytest.mark.parametrize("page", ["tutorial-learning.md", "tutorial-radio.md"])
def test_a_tutorial_runs_and_shows_what_it_prints(page, run_page, capsys):
    """Words as they are; a number may move a little where another processor sums in another order."""
    run_page(page)
    printed = capsys.readouterr().out
    blocks = re.findall(
        r"```python runnable\n.*?^```\n\n```text\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL
    )
    shown = "".join(blocks)
    assert len(blocks) >= 5
    figure = r"[-+]?\d+(?:\.\d+)?(?:e-?\d+)?"
    assert re.sub(r"\s+", " ", re.sub(figure, "#", printed)) == re.sub(
        r"\s+", " ", re.sub(figure, "#", shown)
    )
    found = [float(number) for number in re.findall(figure, printed)]
    assert found == pytest.approx([float(number) for number in re.findall(figure, shown)], rel=0.03, abs=0.03)


def test_the_sweep_of_the_command_line_page_runs(run_page, capsys):
    run_page("command-line.md")
    assert capsys.readouterr().out == "2\n"


def test_the_example_of_the_run_folder_runs(run_page, capsys):
    run_page("run-folder.md")
    *uploads, columns = capsys.readouterr().out.splitlines()
    assert len(uploads) == 3
    assert all(re.fullmatch(r"\d+ \d+ \d+\.\d\d J", line) for line in uploads)
    assert re.fullmatch(r"\[10 10\] \[[\d ]+\] \['', ''\]", columns)


def accuracies(output: str) -> dict[str, float]:
    """Return the accuracy of each run in a printed table."""
    found, end = {}, 0
    for line in output.splitlines():
        if "accuracy [%]" in line:
            end = line.index("accuracy [%]") + len("accuracy [%]")
        elif end and (number := re.search(r" ([\d.]+)$", line[:end])):
            found[re.split(r"  +", line)[0]] = float(number[1])
        else:
            end = 0
    return found


@pytest.mark.slow
def test_the_runs_of_the_tutorial_print_what_is_shown(run_page, tmp_path):
    """Every command of the tutorial, in order; tables as shown, up to a few predictions."""
    page = read("tutorial.md")
    code = re.search(r"^```python file=my_model\.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert code
    (tmp_path / "my_model.py").write_text(code[1], encoding="utf-8")
    shown, checked = {}, 0
    for block in re.findall(r"^```text\n(\$ .*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if "stopped" not in command:  # a run that is interrupted
                shown[command] = output
    for command, output in shown.items():
        arguments = shlex.split(command)[1:]
        printed = CliRunner().invoke(app, [*arguments, *(["-q"] if arguments[0] == "run" else [])])
        assert printed.exit_code == 0, printed.output
        printed_accuracies = accuracies(printed.output)
        for name, accuracy in accuracies(output).items():
            assert printed_accuracies[name] == pytest.approx(accuracy, abs=2.0)
            checked += 1
    assert checked >= 7


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
        if page.parent == DOCS and not path.is_relative_to(DOCS):
            where = path.relative_to(ROOT)
            has_page = path.suffix in ON_THE_SITE and where.parts[0] in ("src", "examples", where.name)
            assert has_page, f"{page.name} links to {target}, of which the site has no page"
        if anchor:
            assert anchor in slugs(path.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def test_the_index_lists_every_page():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", read("index.md")))
    assert linked == {path.name for path in PAGES if path.parent.name == "docs"} - {"index.md"}


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


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_of_the_package_that_a_page_names_exist(page):
    """`simulation/round.py` in running text or a table is a file of the package or of the repository."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    roots = (ROOT, ROOT / "src", ROOT / "src" / "fedwave", ROOT / "src" / "fedwave" / "wireless")
    for name in re.findall(r"`([\w-]+(?:/[\w.-]+)+\.(?:py|toml)|[\w-]+(?:/[\w.-]+)*/)`", text):
        is_made_later = name in ("benchmarks/data/", "site/", "tensorboard/", "mlflow/", "wandb/")
        if is_made_later or page.name == "datasets.md":
            continue
        assert any((root / name).exists() for root in roots), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_names_of_the_package_that_a_page_spells_out_exist(page):
    """`fedwave.selection.POLICIES` can be imported."""
    for dotted in re.findall(r"`(fedwave(?:\.\w+)+)`", page.read_text(encoding="utf-8")):
        if dotted.startswith("fedwave.flower") and find_spec("flwr") is None:
            continue  # an extra of its own; make test-processes has it
        assert_importable(dotted)


def assert_importable(dotted: str) -> None:
    module, _, name = dotted.rpartition(".")
    try:
        import_module(dotted)
    except ImportError:
        assert hasattr(import_module(module), name), dotted


def test_the_table_of_policies_names_what_there_is():
    table = read("training.md").split("| `selection.policy` | who computes |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == list(POLICIES)


def test_the_lines_of_one_round_are_the_calls_of_the_code_in_their_order():
    source = inspect.getsource(play_round)
    for part in (decide_round, take_models, close_round):  # in place of the call
        source = source.replace(f"{part.__name__}(", inspect.getsource(part) + "(", 1)
    called = re.findall(r"\b(world|planner|devices|server_step)\.(\w+)\(", source)
    drawn = (ROOT / "docs" / "figures" / "one-round.svg").read_text(encoding="utf-8")
    assert re.findall(r">\d (\w+)\.(\w+)<", drawn) == called
    assert re.findall(r"^\d\. \*\*`(\w+)\.(\w+)`\*\*", read("one-round.md"), re.MULTILINE) == called


def shown_commands(command: str) -> list[list[str]]:
    """Return the words of every ``fedwave COMMAND ...`` that the pages show."""
    shown = re.compile(rf"(?:^|\$ |`)fedwave {command} ([^`\n]+)", re.MULTILINE)
    lines = [line for page in PAGES for line in shown.findall(page.read_text(encoding="utf-8"))]
    return [shlex.split(line, comments=True) for line in lines]


def overrides_in(words: list[str]) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == "-s"]


def is_of_the_users(settings: object) -> bool:
    """Whether a shown setting names a module that is not there."""
    return bool(re.search(r"\bmy_\w+", str(settings)))


def test_commands_shown_name_real_presets_and_settings():
    runs = [words for words in shown_commands("run") if words[0] in preset_names()]
    for words in runs:
        load_experiment(words[0], overrides_in(words))
    assert len(runs) >= 8
    cells = [words for words in shown_commands("cell") if words and words[0] in CELL_PRESETS]
    for words in cells:
        load_cell_config(words[0], parse_overrides(overrides_in(words)))
    assert len(cells) >= 4


def test_settings_shown_are_accepted_somewhere():
    """`-s key=value` in running text fits digits/nufm or digits/ural."""
    seen = 0
    for page in PAGES:
        for words in re.findall(r"`(-s [^`]+)`", page.read_text(encoding="utf-8")):
            if "section.key" in words or is_of_the_users(words):
                continue
            settings = overrides_in(shlex.split(words))
            is_for_cell = any(setting.startswith("cell.") for setting in settings)
            load_experiment("digits/ural" if is_for_cell else "digits/nufm", settings)
            seen += 1
    assert seen >= 10


def test_blocks_of_toml_are_settings_of_an_experiment_or_of_a_cell(tmp_path):
    """A block is laid over a preset as a file that extends it; alternatives are loaded line by line."""
    seen = {"experiment": 0, "cell": 0}
    for page in PAGES:
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            try:
                tables = [tomllib.loads(block)]
            except tomllib.TOMLDecodeError:  # one key twice
                tables = [tomllib.loads(line) for line in block.splitlines()]
            for table in tables:
                table.pop("explore", None)  # beside a cell, what the explorer is to show of it
                if not table or is_of_the_users(table):
                    continue
                if set(table) <= {*Experiment.model_fields, "extends", "scheme"}:
                    preset = "digits/ural" if "cell" in table else "digits/nufm"
                    (tmp_path / "shown.toml").write_text(tomli_w.dumps({"extends": preset, **table}))
                    load_experiment(tmp_path / "shown.toml")
                    seen["experiment"] += 1
                else:
                    load_cell_config(table.pop("preset", "umi-3.5ghz"), table)
                    seen["cell"] += 1
    assert seen["experiment"] >= 4
    assert seen["cell"] >= 5


def test_the_python_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec", dont_inherit=True), {})
    assert (tmp_path / "runs" / "first" / "summary.json").exists()


def test_there_is_a_python_call_for_every_command():
    page = read("command-line.md").partition("## The same in Python")[2]
    rows = re.findall(r"^\| (`fedwave .+?) \| (.+) \|$", page.partition("\n## ")[0], re.MULTILINE)
    commands = {word for row, _ in rows for word in re.findall(r"`fedwave (\w+)", row)}
    assert commands == {command.name or command.callback.__name__ for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }
    for _, calls in rows:
        called = re.findall(r"([\w.]+)\(", calls)
        assert called
        for name in called:
            assert_importable(name if "." in name else f"fedwave.{name}")
            assert "." in name or name in fedwave.__all__
