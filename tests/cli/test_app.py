"""What a newcomer meets first: versions, help, completion, exit codes; at 80 columns, in a pipe, plain."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib import metadata

import numpy
import pytest
import scipy
from typer.testing import CliRunner

from fedwave import __version__
from fedwave.cli import guard
from fedwave.cli.app import app, version_text
from fedwave.cli.cell import cell_beginning
from fedwave.cli.presets import preset_beginning
from tools.docs.pages import ROOT, read

COMMANDS = sorted(
    command.name or command.callback.__name__  # type: ignore[union-attr]
    for command in app.registered_commands
)


def fedwave(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a shell does."""
    return subprocess.run(
        [sys.executable, "-m", "fedwave", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}", **environment},
    )


# Versions -------------------------------------------------------------------------------------------------


def test_the_versions_are_those_of_the_packages_themselves() -> None:
    first, second = version_text().splitlines()
    assert first == f"fedwave {__version__}"
    for expected in (
        f"Python {platform.python_version()}",
        f"numpy {numpy.__version__}",
        f"scipy {scipy.__version__}",
        f"torch {metadata.version('torch')}",
    ):
        assert expected in second
    assert len(second) <= 100


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    known = metadata.version

    def without_torch(name: str) -> str:
        if name == "torch":
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", without_torch)
    assert "torch" not in version_text()
    assert "numpy" in version_text()


def test_asking_for_the_version_does_not_load_torch() -> None:
    code = (
        "import sys; sys.argv = ['fedwave', '--version']\n"
        "from fedwave.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    print(done.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"fedwave {__version__}\n")
    assert done.stdout.splitlines()[-1] == "0 False"


# Completion -----------------------------------------------------------------------------------------------


def test_a_shell_completes_commands_options_and_presets() -> None:
    def completed(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        done = fedwave(_FEDWAVE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert set(completed("fedwave re")) == {"resume"} | {name for name in COMMANDS if name.startswith("re")}
    assert completed("fedwave run digits/ural") == ["digits/ural", "digits/ural-ives"]
    assert completed("fedwave run digits/nufm -s algorithm.me") == ["algorithm.meta_lr="]


def test_the_script_for_a_shell_can_be_printed() -> None:
    # By default the shell is that of the parents of the process, and make's has no completion.
    done = fedwave("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="True")
    assert done.returncode == 0
    assert "_FEDWAVE_COMPLETE=complete_bash" in done.stdout
    assert done.stderr == ""


def test_names_are_completed_from_their_beginning() -> None:
    assert preset_beginning("umi/n") == ["umi/nufm-greedy"]
    assert cell_beginning("umi") == ["umi-3.5ghz", "umi-3.5ghz-bare"]
    assert preset_beginning("nothing") == cell_beginning("nothing") == []


# Exit codes -----------------------------------------------------------------------------------------------


def test_the_documented_exit_codes_are_those_of_the_guard() -> None:
    section = read("command-line.md").split("## Exit codes")[1].split("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d) \|", section, re.MULTILINE)}
    assert documented == {guard.DONE, guard.WRONG_INPUT, guard.STOPPED, guard.DIVERGED}


# 80 columns, pipes, colours -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_a_pipe_gets_no_colours(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(app, [*command.split(), "--help"]).output
    assert printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b[" not in printed


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of Unix")
def test_no_color_is_respected_on_a_terminal() -> None:
    import pty

    def on_terminal(**environment: str) -> str:
        leader, follower = pty.openpty()
        variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
        variables["PYTHONPATH"] = f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"
        if "NO_COLOR" not in environment:
            variables.pop("NO_COLOR", None)
        process = subprocess.Popen(
            [sys.executable, "-m", "fedwave", "presets"], stdout=follower, stderr=follower, env=variables
        )
        os.close(follower)
        text = b""
        try:
            while piece := os.read(leader, 65536):
                text += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(leader)
        assert process.wait() == 0
        return text.decode()

    plain = on_terminal(NO_COLOR="1")
    assert "digits/nufm" in plain
    assert not re.search(r"\x1b\[(?:3|4|9|10)\d", plain)  # a colour of text or ground; bold is none
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip("\r") for line in plain.split("\n")]
    assert max(map(len, lines)) <= 80
