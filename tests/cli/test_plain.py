"""Help that is plain, and options that were meant otherwise."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.cli.plain import MEANT, cell_setting_beginning, setting_beginning
from fedwave.errors import ConfigError
from tools.docs.commands_table import every_command, examples, parameters

GROUPS = {
    "Learn": {"demo", "new", "run", "sweep", "resume", "presets", "datasets"},
    "Radio": {"cell", "allocate", "explore", "account", "calibrate"},
    "Results": {"runs", "compare", "report", "theory", "longterm", "reproduce"},
}
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def shown(*words: str) -> str:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words]).output


def test_commands_stand_in_their_groups() -> None:
    parts = re.split(r"╭─ (\w+) ─+╮", shown("--help"))
    found = {
        heading: set(re.findall(r"^│ (\w+) ", body, re.MULTILINE))
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert {name: found[name] for name in GROUPS} == GROUPS
    assert set().union(*GROUPS.values()) == set(COMMANDS)


EVERY = [(" ".join(words), command) for words, command in every_command()]
NAMES = [name for name, _ in EVERY]


@pytest.mark.parametrize("name", NAMES)
def test_help_has_a_short_name_and_no_types_of_python(name: str) -> None:
    text = shown(*name.split()[1:], "-h")
    assert text == shown(*name.split()[1:], "--help")
    assert not re.search(r"<\w+.*?>", text)


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_every_help_has_examples_of_the_command_each_whole_on_a_line(name: str, command: Any) -> None:
    lines = [line.strip() for line in shown(*name.split()[1:], "--help").splitlines()]
    assert examples(command)
    for example in examples(command):
        assert example in lines
        assert f"{example} ".startswith(f"{name} ")
    assert lines[lines.index("Examples:") + 2] == examples(command)[0]


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_help_has_every_word_unbroken_within_80_columns(name: str, command: Any) -> None:
    text = shown(*name.split()[1:], "--help")
    assert max(map(len, text.splitlines())) <= 80
    said = [command.help]
    for one in parameters(command):
        is_option = one.param_type_name == "option"
        said += [one.help, one.metavar, *(one.opts if is_option else ())]
    words = {word for part in said for word in re.sub(r"[`*]", "", part or "").split()}
    assert {word for word in words if word not in text} == set()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["run", "--rounds", "10"],
            "There is no option --rounds. Did you mean -s num_rounds=10? See --help.",
        ),
        (
            ["account", "m.csv", "--access", "tdma"],
            "There is no option --access. Did you mean -s access=tdma?",
        ),
        (["run", "--beta=0.1"], "There is no option --beta. Did you mean algorithm.meta_lr? See --help."),
        (["run", "--sede", "3"], "There is no option --sede. Did you mean --seed or --seeds? See --help."),
        (["run", "--zebra"], "There is no option --zebra. A setting is changed by -s KEY=VALUE. See --help."),
        (
            ["cell", "paper", "--noise-figure-db", "4"],
            "There is no option --noise-figure-db. Did you mean noise_figure_db or downlink",
        ),
    ],
)
def test_an_option_that_is_a_setting_says_how_it_is_written(words: list[str], told: str) -> None:
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, ConfigError)
    assert str(error).startswith(told)


def test_settings_are_completed_from_their_beginning() -> None:
    assert setting_beginning("algorithm.meta") == ["algorithm.meta_lr="]
    assert cell_setting_beginning("noise_psd") == ["noise_psd_w_per_hz=", "noise_psd_dbm_per_hz="]
    assert setting_beginning("zebra") == []


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_a_shell_completes_the_settings_of_every_command_that_takes_them(name: str, command: Any) -> None:
    taking = [one for one in parameters(command) if "--set" in one.opts]
    assert bool(taking) == (
        name.split()[-1] in ("run", "sweep", "demo", "theory", "cell", "allocate", "account")
    )
    is_cell = name.split()[-1] in ("cell", "allocate", "account")
    beginning, key = ("noise_f", "noise_figure_db=") if is_cell else ("algorithm.meta", "algorithm.meta_lr=")
    for one in taking:
        context = command.make_context(command.name, [], resilient_parsing=True)
        assert [item.value for item in one.shell_complete(context, beginning)] == [key]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("train", 'There is no command "train". Did you mean "run"?'),
        ("comapre", 'There is no command "comapre". Did you mean "compare"?'),
        ("zebra", 'There is no command "zebra". Choose one of: demo, new, run'),
    ],
)
def test_a_command_that_is_none_says_which_was_meant(word: str, told: str) -> None:
    assert str(CliRunner().invoke(app, [word]).exception).startswith(told)
    assert str(CliRunner().invoke(app, ["datasets", "train"]).exception) == (
        'There is no command "train". Choose one of: download.'
    )


def test_every_word_of_others_means_a_command() -> None:
    assert set(MEANT.values()) <= {
        one.name or one.callback.__name__ for one in app.registered_commands if one.callback
    }
