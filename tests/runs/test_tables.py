"""The tables of a run folder: every declared column comes back with its type, floats to the last bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.devices.base import HeldOutResult
from fedwave.errors import RunError
from fedwave.learning.tasks import Classification, Regression
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment
from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS, TABLES, read_table, rows_of, to_csv
from fedwave.simulation.records import RoundRecord
from tests.experiments.cell_tables import PAPER_CELL, STREET_CELL, experiment

# Doubles that a careless writer rounds: a third, the smallest of all, a long one, minus zero, a whole one.
AWKWARD = [1 / 3, 5e-324, 123456.78901234567, -0.0, 2.0]


def typed_as(values: Any) -> str:
    """The declared type that a column as read back has."""
    if isinstance(values, list):
        if all(isinstance(value, str) for value in values):
            return "text"
        assert all(isinstance(value, np.ndarray) and value.dtype == np.int64 for value in values)
        return "devices"
    return {"float64": "number", "int64": "integer"}[str(values.dtype)]


@pytest.fixture(scope="module", params=["one upload a round", "losses", "no cell"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Runs whose columns look like another type: one device a round, empty notes, no measured number."""
    one_upload = experiment(
        {**PAPER_CELL, "num_blocks": 1}, scheme="nufm-greedy", evaluation={"every": 2}, num_rounds=2
    )
    settings = {
        "one upload a round": one_upload,
        "losses": experiment({**STREET_CELL, "losses": {"dropout_probability": 1.0}}, num_rounds=2),
        "no cell": experiment(selection={"policy": "uniform", "num_selected": 1}, num_rounds=2),
    }[request.param]
    return RunFolder(run_experiment(settings, tmp_path_factory.mktemp("run") / "run").path)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_comes_back_with_its_declared_type(folder: RunFolder, name: str) -> None:
    found = {column: typed_as(values) for column, values in folder.table(name).items()}
    declared = {}
    for column, kind in TABLES[name]:
        for metric in ("{metric}", "accuracy"):
            for step in ("{step}", "0"):
                declared[column.replace("{metric}", metric).replace("{step}", step)] = kind
    assert found == {column: declared[column] for column in found}
    assert {"round"} < set(found)


def test_devices_are_lists_of_whole_numbers_and_notes_are_text(folder: RunFolder) -> None:
    table, devices = folder.table(), folder.table(DEVICES)
    for k, chosen in enumerate(table["selected_devices"]):
        here = devices["round"] == k
        assert chosen.tolist() == devices["device"][here & (devices["is_selected"] == 1)].tolist()
        assert len(chosen) == table["num_selected"][k]
    if "note" in table:
        assert all(isinstance(note, str) for note in table["note"])


def test_one_upload_a_round_and_an_empty_note_are_what_they_are(tmp_path: Path) -> None:
    (tmp_path / ROUNDS).write_text("round,selected_devices,note,heldout_loss\n0,7,,\n1,,nobody,0.5\n")
    table = read_table(tmp_path / ROUNDS)
    assert [chosen.tolist() for chosen in table["selected_devices"]] == [[7], []]
    assert [chosen.dtype for chosen in table["selected_devices"]] == [np.int64, np.int64]
    assert table["note"] == ["", "nobody"]
    assert math.isnan(table["heldout_loss"][0])
    assert table["round"].dtype == np.int64


def test_a_column_that_is_not_declared_stays_text(tmp_path: Path) -> None:
    (tmp_path / ROUNDS).write_text("round,mine,train_loss_of_mine\n0,1,2\n1,2,3\n")
    table = read_table(tmp_path / ROUNDS)
    assert (table["mine"], table["train_loss_of_mine"]) == (["1", "2"], ["2", "3"])
    (tmp_path / "other.csv").write_text("round\n0\n")
    assert read_table(tmp_path / "other.csv")["round"] == ["0"]


def record(metric: Any = Classification.metric) -> RoundRecord:
    ids = np.arange(5)
    heldout = HeldOutResult(ids + 5, np.arange(1, 6), np.array(AWKWARD), np.array(AWKWARD[::-1]), metric)
    columns = {
        "train_loss": AWKWARD[0],
        "selected_devices": [3, 11],
        "note": 'a "note", with a comma',
        "energy_j": None,
    }
    device_columns = {
        "train_loss": np.array([*AWKWARD[:4], np.nan]),
        "is_selected": np.array([0, 1, 0, 1, 0]),
    }
    return RoundRecord(4, columns, ids, device_columns, heldout)


@pytest.mark.parametrize("metric", [Classification.metric, Regression.metric])
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path: Path, metric: Any) -> None:
    for name, (header, rows) in rows_of(record(metric)).items():
        (tmp_path / name).write_text(to_csv(rows, header))
    rounds, devices, heldout = (read_table(tmp_path / name) for name in (ROUNDS, DEVICES, HELDOUT))
    assert rounds["round"].tolist() == [4]
    assert rounds["train_loss"].tolist() == AWKWARD[:1]
    assert rounds["selected_devices"][0].tolist() == [3, 11]
    assert rounds["note"] == ['a "note", with a comma']
    assert np.isnan(rounds["energy_j"]).all()
    assert devices["train_loss"].tobytes() == np.array([*AWKWARD[:4], np.nan]).tobytes()
    assert devices["is_selected"].tolist() == [0, 1, 0, 1, 0]
    assert heldout["device"].tolist() == [5, 6, 7, 8, 9]
    assert heldout["num_query"].tolist() == [1, 2, 3, 4, 5]
    assert heldout["loss"].tobytes() == np.array(AWKWARD).tobytes()
    assert heldout[metric.name].tobytes() == np.array(AWKWARD[::-1]).tobytes()


def test_the_totals_of_a_run_come_back_to_the_last_bit(tmp_path: Path) -> None:
    result = run_experiment(experiment(PAPER_CELL, num_rounds=2), tmp_path / "run")
    state = RunFolder(result.path).load_checkpoint()
    assert state is not None
    assert state.ledger is not None
    table = RunFolder(result.path).table()
    assert table["cumulative_delay_s"][-1] == state.ledger.elapsed_s
    assert table["cumulative_energy_j"][-1] == state.ledger.energy_j


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no round yet. Let the run finish one first."),
        ("", "has no rounds yet. Let the run finish a round first."),
        ("round,train_loss\n", "has no rounds yet. Let the run finish a round first."),
        ("round,train_loss\n0,high\n", "is not as the run wrote it .*Restore it"),
        ("round,train_loss\n0.5,1\n", "is not as the run wrote it .*Restore it"),
        ("round,train_loss\n0,1,2\n", "is not as the run wrote it .*Restore it"),
        ("round,train_loss\n0,1\n1\n", r"\(line 3 has 1 of 2 values\). Restore it"),
        ("round,train_loss\n0,1\n\n1,2\n", r"\(line 3 has 0 of 2 values\)"),
        ("train_loss\n0\n", 'it has no column "round"; it begins with .train_loss.'),
        ("round,round\n0,0\n", "it has two columns of one name"),
        ("round,train_loss\n0,1\n0,2\n", "its rounds are not in order"),
        ("round,train_loss\n1,1\n0,2\n", "its rounds are not in order"),
        ("round,train_loss\n-1,1\n", "its rounds are not in order"),
        ("round,train_los", "has no rounds yet"),
        ("round,train_loss\n0,1", "has no rounds yet"),
    ],
)
def test_a_table_that_was_tampered_with_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / ROUNDS).write_text(text)
    with pytest.raises(RunError, match=message) as caught:
        read_table(tmp_path / ROUNDS)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_and_the_half_last_line_of_a_killed_run_are_no_matter(tmp_path: Path) -> None:
    (tmp_path / ROUNDS).write_bytes(b"\xef\xbb\xbfround,train_loss\n0,1\n3,0.5\n4,0.2\xc3")
    table = read_table(tmp_path / ROUNDS)
    assert (table["round"].tolist(), table["train_loss"].tolist()) == ([0, 3], [1.0, 0.5])


@pytest.mark.parametrize("content", [b"\0" * 99, b"round\n\0\n", "round\n0\n".encode("utf-16")])
def test_what_is_no_text_is_not_taken_for_a_table_without_rounds(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ROUNDS).write_bytes(content)
    with pytest.raises(RunError, match="it is no text in UTF-8; did another program save it"):
        read_table(tmp_path / ROUNDS)


def test_a_column_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    (tmp_path / DEVICES).write_text("round,device,battery_j\n0,4,1\n0,2,1\n")
    assert read_table(tmp_path / DEVICES, required=["device"])["device"].tolist() == [4, 2]
    with pytest.raises(RunError, match='devices.csv is not as the run wrote it .it has no column "energy_j"'):
        read_table(tmp_path / DEVICES, required=["device", "energy_j"])


def test_a_round_that_selects_a_hundred_thousand_devices_is_read_again(tmp_path: Path) -> None:
    chosen = np.arange(100_000) * 7
    text = to_csv([[0, chosen.tolist()], [1, []]], ["round", "selected_devices"])
    (tmp_path / ROUNDS).write_text(text)
    first, second = read_table(tmp_path / ROUNDS)["selected_devices"]
    np.testing.assert_array_equal(first, chosen)
    assert second.size == 0
