"""``fedwave allocate`` on a radio cell: the round that the explorer shows, and draws of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from fedwave.allocation import load_problem
from fedwave.cli.app import app
from fedwave.errors import ProblemError
from fedwave.experiments import write_project
from fedwave.server.draws import compare_over_draws


def run(*words: Any) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path / "mine", cell=True)
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize("cell", ["umi-3.5ghz", "paper", "cell.toml"])
def test_the_round_is_the_one_that_the_explorer_shows_first(folder: Path, cell: str) -> None:
    shown = json.loads(run("explore", cell, "--json"))["methods"]
    found = json.loads(run("allocate", cell, "--compare", "--json"))
    assert list(found) == list(shown)
    for name, one in found.items():
        assert one["objective"] == shown[name]["objective"], name


def test_the_problem_that_is_saved_solves_to_the_same_bits(folder: Path) -> None:
    text = run("allocate", "cell.toml", "--save-problem", "p.toml", "--seed", 3)
    assert "\nProblem file: p.toml\n" in text
    solved = json.loads(run("allocate", "cell.toml", "--json", "--seed", 3))
    assert json.loads(run("allocate", "p.toml", "--json"))["objective"] == solved["objective"]
    gains_db = np.loadtxt("gains.csv", delimiter=",", skiprows=1)
    powers_dbm = np.loadtxt("fleet.csv", delimiter=",", skiprows=1)[:, 1]
    problem = load_problem("p.toml")
    assert_allclose(10 * np.log10(problem.channel_gain), gains_db)
    assert_allclose(10 * np.log10(1e3 * problem.max_power_w), powers_dbm)


def test_words_change_the_cell_its_round_and_the_size_of_an_upload(folder: Path) -> None:
    run("allocate", "umi-3.5ghz", "-n", 7, "-s", "num_blocks=3", "-s", "redraw=each-round",
        "--round", 4, "--model-bits", 2e5, "--save-problem", "p.toml")  # fmt: skip
    from fedwave import load_cell

    cell = load_cell("umi-3.5ghz", num_devices=7, overrides={"num_blocks": 3, "redraw": "each-round"})
    problem = load_problem("p.toml")
    assert (problem.num_devices, problem.num_blocks, problem.model_bits) == (7, 3, 2e5)
    assert_allclose(problem.channel_gain, cell.draw(4).channel_gain)


def test_contributions_may_be_ones_own(folder: Path) -> None:
    own = list(range(12))
    Path("worth.csv").write_text("\n".join(["contribution", *map(str, own), ""]))
    text = run("allocate", "cell.toml", "--devices", "worth.csv", "--save-problem", "p.toml")
    assert "contributions as given" in text
    assert load_problem("p.toml").contribution.tolist() == own
    Path("worth.csv").write_text("contribution\n1\n")
    with pytest.raises(ProblemError, match="has 1 devices, but the cell has 12"):
        run("allocate", "cell.toml", "--devices", "worth.csv")


def test_draws_are_compared_as_in_python(folder: Path) -> None:
    told = json.loads(run("allocate", "cell.toml", "--draws", 3, "-m", "greedy", "--json"))
    heading = run("allocate", "cell.toml", "--draws", 1).splitlines()[0]
    weights = [
        float(heading.split(f"{name} = ")[1].split(",")[0]) for name in ("energy_weight", "delay_weight")
    ]
    bits = 113_162 * 32.0
    found = compare_over_draws(
        "cell.toml", ["greedy"], draws=3, model_bits=bits, energy_weight=weights[0], delay_weight=weights[1]
    )
    assert (told["draws"], told["baseline"]) == (3, "optimal")
    assert [row["method"] for row in told["methods"]] == ["optimal", "greedy"]
    for ours, theirs in zip(found.rows(), told["methods"], strict=True):
        assert all(ours[name] == theirs[name] for name in ours if name != "seconds")
    rows = {
        row.split()[0]: row for row in run("allocate", "cell.toml", "--draws", 3, "-m", "greedy").splitlines()
    }
    assert str(found.difference("greedy")) in rows["greedy"]
    assert str(found.mean("optimal")) in rows["optimal"]
    assert rows["Means"] == "Means of 3 draws with 95 % intervals; differences to optimal are paired."


def test_all_methods_over_draws_fit_80_columns(folder: Path) -> None:
    lines = run("allocate", "cell.toml", "--draws", 2, "--compare").splitlines()
    assert max(map(len, lines[1:])) <= 80
    assert lines[1].split() == [
        "method",
        "objective",
        "−",
        "optimal",
        "J",
        "−",
        "optimal",
        "s",
        "−",
        "optimal",
    ]
    assert len(lines) == 1 + 1 + 11 + 1


def test_a_cell_without_units_has_bare_powers_and_rates() -> None:
    words = ("allocate", "paper", "-n", "5", "-s", "num_blocks=2")
    problem = json.loads(run(*words, "--json"))
    lines = run(*words).splitlines()
    assert " ".join(lines[2].split()) == "block device u power of max SINR dB rate delay s energy J"
    rows = list(map(str.split, lines[3:5]))
    devices = [int(cells[1]) for cells in rows]
    assert len(devices) == 2
    assert_allclose(
        [float(cells[3]) for cells in rows], np.array(problem["transmit_power_w"])[devices], rtol=1e-3
    )
    rates = [problem["device_rate_bps"][device] for device in devices]
    assert_allclose([float(cells[6]) for cells in rows], rates, rtol=1e-3)


def test_draws_of_one_method_are_its_means(folder: Path) -> None:
    lines = run("allocate", "cell.toml", "--draws", 3).splitlines()
    told = json.loads(run("allocate", "cell.toml", "--draws", 3, "--json"))["methods"]
    assert lines[1].split() == ["method", "objective", "energy", "J", "delay", "s"]
    assert lines[2].split()[0] == "optimal"
    assert len(re.findall("±", lines[2])) == 3
    assert lines[3] == "Means of 3 draws with 95 % intervals. Compare methods with --compare."
    assert len(told) == 1
