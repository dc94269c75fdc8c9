"""Help that is plain, and options that were meant otherwise."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.cli.plain import cell_setting_beginning, setting_beginning
from fedwave.errors import ConfigError

GROUPS = {
    "Learn": {"new", "run", "sweep", "resume", "presets", "datasets"},
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


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_a_short_name_and_no_types_of_python(command: str) -> None:
    text = shown(*command.split(), "-h")
    assert text == shown(*command.split(), "--help")
    assert not re.search(r"<\w+.*?>", text)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "datasets"])
def test_every_help_has_an_example(command: str) -> None:
    text = shown(command, "--help").partition("╭")[0]
    assert f"fedwave {command}" in text.partition("Usage:")[2].partition("\n")[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["run", "--rounds", "10"],
            "There is no option --rounds. Did you mean -s num_rounds=10? See --help.",
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
