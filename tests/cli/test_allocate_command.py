from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fedwave.allocation import METHODS, allocate
from fedwave.allocation.cell_file import example_cell, load_cell
from fedwave.cli.app import app
from fedwave.errors import ProblemError


@pytest.fixture
def cell(tmp_path):
    path = tmp_path / "cell.toml"
    path.write_text(example_cell())
    return path


def run(*words):
    result = CliRunner().invoke(app, ["allocate", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_example_prints_a_cell_that_solves(tmp_path):
    path = tmp_path / "cell.toml"
    path.write_text(run("--example"))
    assert allocate(load_cell(path)).num_selected == 4


def test_tables_show_assignment_terms_and_proof(cell):
    text = run(cell)
    for part in (
        "4 of 12 devices",
        "delay [s]",
        "energy, upload",
        "objective",
        "Status: optimal",
        "Proven: no",
    ):
        assert part in text
    assert "Nothing is proven" in run(cell, "--method", "ives")


def test_compare_lists_every_method_within_80_columns(cell):
    text = run(cell, "--compare")
    for method in METHODS:
        assert f"\n{method} " in text
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_json_is_the_same_allocation(cell):
    document = json.loads(run(cell, "--json"))
    found = allocate(load_cell(cell))
    assert document["objective"] == found.objective
    assert document["block_of_device"] == found.block_of_device.tolist()
    assert document["status"] == "optimal"
    compared = json.loads(run(cell, "--compare", "--json"))
    assert list(compared) == list(METHODS)
    assert compared["ives"]["upper_bound"] is None


def test_pareto_lists_and_draws_the_front(cell, tmp_path):
    assert "Optimum for each pair of weights" in run(cell, "--pareto", "--plot", tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 5_000
    document = json.loads(run(cell, "--pareto", "--json"))
    assert len(document["energy_j"]) == 17


def test_plot_is_written(cell, tmp_path):
    assert "Picture:" in run(cell, "--plot", tmp_path / "cell.pdf")
    assert (tmp_path / "cell.pdf").read_bytes().startswith(b"%PDF")


def test_devices_may_come_from_a_csv(cell, tmp_path):
    csv = tmp_path / "devices.csv"
    rows = [f"{u},{g}" for u, g in zip(np.linspace(9, 1, 12), np.full(12, -100), strict=True)]
    csv.write_text("\n".join(["contribution,channel_gain_db", *rows]))
    document = json.loads(run(cell, "--devices", csv, "--json"))
    assert [block >= 0 for block in document["block_of_device"]] == [True] * 4 + [False] * 8


def test_infeasible_cells_say_why(cell):
    cell.write_text(example_cell().replace("max_delay_s = 20.0", "max_delay_s = 0.5"))
    text = " ".join(run(cell).split())
    assert "Status: infeasible - device" in text
    assert "cannot finish by 0.5 s even at full power" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), r"No cell given. Write one with: fedwave allocate --example > cell.toml"),
        (
            ("cell.toml", "--method", "optimum"),
            r'--method is not known, got "optimum". Did you mean "optimal"',
        ),
        (("cell.toml", "--compare", "--pareto"), r"Give --compare or --pareto, not both"),
        (("nowhere.toml",), r"Cannot read the cell file nowhere.toml"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words, message):
    with pytest.raises(ProblemError, match=message):
        run(*words)


def test_the_same_seed_prints_the_same_draw(cell):
    first = json.loads(run(cell, "-m", "random", "--seed", 3, "--json"))
    assert first == json.loads(run(cell, "-m", "random", "--seed", 3, "--json"))
    assert first != json.loads(run(cell, "-m", "random", "--seed", 4, "--json"))
