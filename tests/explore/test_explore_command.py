from __future__ import annotations

import json
import socket

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError, FedwaveError
from fedwave.explore.api import Api
from fedwave.explore.open import open_all
from fedwave.explore.serve import serve


def test_json_prints_the_numbers_without_a_server() -> None:
    done = CliRunner().invoke(app, ["explore", "paper", "--json", "-n", "25", "--seed", "4"])
    assert done.exit_code == 0
    printed = json.loads(done.output)
    assert printed["view"]["num_devices"] == 25
    assert printed["view"]["seed"] == 4
    assert set(printed["methods"]) == {"optimal", "ives", "greedy", "random", "chen2020", "fedl"}
    assert "25 devices" in printed["facts"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "is no cell file"),
        (["missing.toml"], "cannot read the cell file"),
        (["."], "is not a run folder"),
    ],
)
def test_wrong_words_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["explore", *words, "--json"])
    assert isinstance(done.exception, FedwaveError)
    assert message in str(done.exception)


def test_runs_alone_have_no_json(street_run: object) -> None:
    done = CliRunner().invoke(app, ["explore", str(street_run), "--json"])
    assert "Name a cell" in str(done.exception)


def test_a_port_in_use_is_refused() -> None:
    sources, runs, first = open_all(["paper"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on port {port}: .* --port"):
            serve(Api(sources, runs, first), port=port, opens_browser=False, say=print)
