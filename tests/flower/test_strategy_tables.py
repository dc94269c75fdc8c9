"""The tables that a server's folder holds: those of ``fedwave run``, round by round."""

from __future__ import annotations

import csv
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fedwave import account, load_cell
from fedwave.errors import RunError
from fedwave.flower import client_app, device_of_experiment, initial_arrays, simulation_of
from fedwave.flower import strategy_of_experiment as strategy_of
from fedwave.runs.folder import RunFolder
from fedwave.server import Outcome, PlannerAround
from fedwave.simulation.account_tables import messages_of_run, read_messages
from fedwave.wireless.delivery import UploadFate
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import app
from tests.flower.toy_server import first_arrays, strategy

SMALL = "partition.num_devices=16 execution.chunk_samples=1"
RUNS = {
    "NUFM": ("digits/nufm", f"{SMALL} selection.num_selected=3"),
    "URAL with losses": ("digits/ural", f"{SMALL} cell.num_blocks=3 cell.losses.dropout_probability=0.4"),
    "Drift plus penalty": (
        "digits/ural",
        f"{SMALL} cell.num_blocks=3 algorithm.planner.kind=drift-plus-penalty "
        "algorithm.planner.budget_j=0.01 algorithm.planner.v=0.05",
    ),
}
ELSEWHERE = ("heldout_loss", "heldout_accuracy", "heldout_accuracy_pooled", "wall_time_s")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in ELSEWHERE} for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", RUNS)
def test_a_federation_writes_the_rows_of_fedwave_run(name: str, tmp_path: Path) -> None:
    source, overrides = RUNS[name]
    config = {"experiment": source, "overrides": overrides}
    simulation = simulation_of(config)
    for num_rounds in (1, 3):  # it is stopped and goes on
        grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
        server = strategy_of(simulation, checkpoint=tmp_path / "flower")
        server.start(grid, initial_arrays(simulation), num_rounds=num_rounds)
    (tmp_path / "plain").mkdir()
    plain, state = RunFolder(tmp_path / "plain"), simulation.initial_state()
    with closing(simulation.open_devices()) as devices:
        for _ in range(3):
            state, record = simulation.run_round(state, devices)
            plain.append(record)
    for file in ("rounds.csv", "devices.csv"):
        assert table(tmp_path / "flower" / file) == table(tmp_path / "plain" / file)
        headers = [(tmp_path / run / file).read_text().splitlines()[0] for run in ("flower", "plain")]
        assert headers[0] == headers[1]
    saved = RunFolder(tmp_path / "flower").load_checkpoint()
    assert saved is not None
    assert (saved.ledger is None) == (name == "NUFM")
    prices = [
        float(row.get("planner_price_per_j", 0.0)) for row in table(tmp_path / "flower" / "devices.csv")
    ]
    if name == "Drift plus penalty":  # what was spent has its price, and some are no longer asked
        assert prices[:8] == [1.0] * 8
        assert max(prices[16:]) > max(prices[8:16]) > 1.0
        assert int(table(tmp_path / "flower" / "rounds.csv")[2]["num_computed"]) < 8
    else:
        assert not any(prices)


def test_rows_after_the_checkpoint_are_cut_off_when_the_server_goes_on(tmp_path: Path) -> None:
    strategy(4, 2, checkpoint=tmp_path).start(FakeGrid(app, 4), first_arrays(), num_rounds=2)
    rows = (tmp_path / "rounds.csv").read_text()
    (tmp_path / "rounds.csv").write_text(rows + rows.splitlines()[-1].replace("1,", "2,", 1) + "\n")
    strategy(4, 2, checkpoint=tmp_path).start(FakeGrid(app, 4), first_arrays(), num_rounds=3)
    assert [row["round"] for row in table(tmp_path / "rounds.csv")] == ["0", "1", "2"]
    assert [row["device"] for row in table(tmp_path / "devices.csv")] == ["0", "1", "2", "3"] * 3


def test_the_folder_of_a_federation_is_accounted_over_a_cell(tmp_path: Path) -> None:
    """What a server without a cell wrote costs what a table of its messages costs."""
    strategy(4, 2, checkpoint=tmp_path).start(FakeGrid(app, 4), first_arrays(), num_rounds=2)
    cell = load_cell("umi-3.5ghz", num_devices=4, seed=1)
    found = account(cell, messages_of_run(tmp_path, work=5e6, model_bytes=4000.0))
    lines = ["round,device,download_bytes,operations,upload_bytes"]
    for row in table(tmp_path / "devices.csv"):  # all four are asked, two of them upload
        sent = 4000 if row["is_selected"] == "1" else 0
        lines.append(f"{row['round']},{row['device']},4000,5e6,{sent}")
    assert sum(line.endswith(",4000") for line in lines) == 4
    (tmp_path / "messages.csv").write_text("\n".join(lines) + "\n")
    by_hand = account(cell, read_messages(tmp_path / "messages.csv", counts_samples=False))
    assert found.delay_s == by_hand.delay_s > 0.0
    assert found.energy_j == by_hand.energy_j > 0.0


def test_a_round_without_a_plan_has_no_row(tmp_path: Path) -> None:
    grid = FakeGrid(app, 2)
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.report"] = lambda message, reply: None
    with pytest.raises(RunError, match="nothing was learned"):
        strategy(2, 1, checkpoint=tmp_path).start(grid, first_arrays(), num_rounds=1)
    assert not (tmp_path / "rounds.csv").exists()
    grid.tamper.clear()
    strategy(2, 1, checkpoint=tmp_path).start(grid, first_arrays(), num_rounds=2)
    assert [row["round"] for row in table(tmp_path / "rounds.csv")] == ["1"]


def test_a_folder_of_tables_without_a_checkpoint_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "rounds.csv").write_text("round\n0\n")
    with pytest.raises(RunError, match="holds rounds.csv and no checkpoint"):
        strategy(2, 1, checkpoint=tmp_path).start(FakeGrid(app, 2), first_arrays(), num_rounds=1)
    assert (tmp_path / "rounds.csv").read_text() == "round\n0\n"


@dataclass(frozen=True, eq=False)
class Hearing(PlannerAround):
    """Notes what became of its plans."""

    heard: list[tuple[int, Outcome]] = field(default_factory=list)

    def after(self, *arguments: Any) -> Any:
        self.heard.append((arguments[0], arguments[3]))
        return super().after(*arguments)


def test_a_planner_hears_what_really_arrived_once_a_round(tmp_path: Path) -> None:
    server = strategy(4, 2, checkpoint=tmp_path)
    hearing = Hearing(server.federation.planner)
    server.federation = replace(server.federation, planner=hearing)
    grid = FakeGrid(app, 4)
    (best,) = (
        strategy(4, 1)
        .start(FakeGrid(app, 4), first_arrays(), num_rounds=1)
        .train_metrics_clientapp[1]["selected"]
    )
    grid.tamper[FIRST_NODE + best, "train.upload"] = lambda message, reply: None
    result = server.start(grid, first_arrays(), num_rounds=2)
    assert [k for k, _ in hearing.heard] == [0, 1]
    for (_, outcome), record in zip(hearing.heard, result.train_metrics_clientapp.values(), strict=True):
        assert outcome.received.tolist() == record["received"]
        lost = [i for i, fate in zip(record["selected"], outcome.fate, strict=True) if fate]
        assert lost == [i for i in record["selected"] if i not in record["received"]]
        assert set(outcome.fate.tolist()) <= {UploadFate.ARRIVED, UploadFate.DROPPED_OUT}
    assert best not in hearing.heard[0][1].received
    assert [row["num_received"] for row in table(tmp_path / "rounds.csv")] == ["1", "1"]


def test_a_planner_hears_of_a_round_in_which_no_upload_can_be_used() -> None:
    server = strategy(2, 1)
    hearing = Hearing(server.federation.planner)
    server.federation = replace(server.federation, planner=hearing)
    grid = FakeGrid(app, 2)
    for position in range(2):
        grid.tamper[FIRST_NODE + position, "train.upload"] = lambda message, reply: None
    with pytest.raises(RunError, match="no upload can be used"):
        server.start(grid, first_arrays(), num_rounds=1)
    [(k, outcome)] = hearing.heard
    assert (k, outcome.received.tolist(), outcome.fate.tolist()) == (0, [], [UploadFate.DROPPED_OUT])


def test_a_server_that_knows_no_penalties_leaves_their_column_empty(tmp_path: Path) -> None:
    strategy(2, 1, checkpoint=tmp_path).start(FakeGrid(app, 2), first_arrays(), num_rounds=1)
    (row,) = table(tmp_path / "rounds.csv")
    assert row["share_below_turning_point"] == row["heldout_metric"] == ""
    assert float(row["train_loss"]) > 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("checkpoint.safetensors", "cannot be read: its content does not have the checksum"),
        ("rounds.csv", "is not as the run wrote it"),
        ("devices.csv", "is not as the run wrote it"),
    ],
)
def test_a_server_does_not_go_on_from_what_is_damaged(tmp_path: Path, file: str, said: str) -> None:
    strategy(4, 2, checkpoint=tmp_path).start(FakeGrid(app, 4), first_arrays(), num_rounds=2)
    content = bytearray((tmp_path / file).read_bytes())
    content[-2] ^= 1
    (tmp_path / file).write_bytes(content)
    with pytest.raises(RunError, match=said):
        strategy(4, 2, checkpoint=tmp_path).start(FakeGrid(app, 4), first_arrays(), num_rounds=3)
    assert (tmp_path / file).read_bytes() == bytes(content)
