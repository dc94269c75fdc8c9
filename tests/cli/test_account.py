"""``fedwave account``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.runs.run import run_experiment
from fedwave.simulation.account import account
from fedwave.simulation.account_tables import read_messages
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.load import load_cell_config

TABLE = (
    "round,device,download_bytes,operations,upload_bytes\n1,0,9e4,1e8,9e4\n1,4,9e4,1e8,\n2,4,9e4,1e8,9e4\n"
)


def run(*words: str) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["account", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "messages.csv").write_text(TABLE)
    return tmp_path / "messages.csv"


def test_the_command_shows_what_the_function_returns(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "rounds.csv"
    text = run(
        str(table), "-n", "9", "--seed", "3", "--csv", str(out), "-s", "carbon_intensity_g_per_kwh=400"
    )
    config = load_cell_config("umi-3.5ghz", {"carbon_intensity_g_per_kwh": 400.0})
    cell = Cell.build(config, num_devices=9, seed=3, operations_per_sample=1.0)
    found = account(cell, read_messages(table, counts_samples=False))
    rows = [line.split() for line in text.splitlines()]
    phases = ["downlink", "compute", "report", "upload", "idle"]
    assert rows[0] == ["round", "seconds", *phases, "joules", "gCO2"]
    assert [row[0] for row in rows[1:4]] == ["1", "2", "all"]
    assert rows[3][1] == f"{found.delay_s:.4g}"
    assert rows[3][7] == f"{found.energy_j:.4g}"
    assert rows[3][8] == f"{found.carbon_g:.4g}"
    with out.open() as file:
        written = list(csv.DictReader(file))
    assert [{name: float(value) for name, value in row.items()} for row in written] == found.rows()
    plain = json.loads(run(str(table), "-n", "9", "--seed", "3", "--json"))
    assert plain["energy_j"] == found.energy_j
    assert plain["device_energy_j"] == found.device_energy_j.tolist()
    assert "carbon_g" not in plain


def test_the_cell_has_as_many_devices_as_the_table_names(table: Path) -> None:
    assert len(json.loads(run(str(table), "--json"))["device_energy_j"]) == 5


def test_another_power_set_is_dearer_and_as_fast(table: Path) -> None:
    ours = json.loads(run(str(table), "--json"))
    modem = json.loads(run(str(table), "--json", "-s", "radio.power_set=measured-x55"))
    assert modem["delay_s"] == ours["delay_s"]
    assert modem["energy_j"] > 3 * ours["energy_j"]


def test_long_tables_are_cut_but_summed_in_full(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("round,device,samples\n" + "".join(f"{k},0,2\n" for k in range(30)))
    lines = run(str(path), "-c", "paper").splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2].strip() == "…"
    one, total = lines[1].split(), lines[-1].split()
    assert float(total[1]) == pytest.approx(30 * float(one[1]), rel=1e-3)


def test_the_folder_of_a_run_is_accounted(tmp_path: Path) -> None:
    settings = ["num_rounds=2", "partition.num_devices=12", "model.kind=softmax", "selection.num_selected=3"]
    folder = run_experiment(load_experiment("digits/nufm", settings), tmp_path / "run").path
    found = json.loads(run(str(folder), "--operations", "1e6", "--json"))
    assert [row["round"] for row in found["rounds"]] == [0, 1]
    assert all(energy > 0 for energy in found["device_energy_j"])
    with pytest.raises(ConfigError, match="--operations is needed"):
        CliRunner().invoke(app, ["account", str(folder)], catch_exceptions=False)


def test_options_of_a_folder_do_not_fit_a_table(table: Path) -> None:
    with pytest.raises(ConfigError, match="--operations and --model-bytes are for the folder of a run"):
        CliRunner().invoke(app, ["account", str(table), "--operations", "3"], catch_exceptions=False)
