from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave import run_experiment
from fedwave.errors import RunError
from fedwave.experiments.load import load_experiment
from fedwave.explore.run_view import RunView
from fedwave.wireless.cell import Cell
from tests.explore.asking import Page
from tests.explore.conftest import HOSTILE
from tests.runs.written_runs import write_battery_run


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_curves_are_those_of_the_folder(street_run: Path) -> None:
    found = RunView.open(street_run).curves()
    rows = rows_of(street_run, "rounds.csv")
    assert found["name"] == HOSTILE
    assert (found["num_rounds"], found["planned_rounds"], found["is_finished"]) == (3, 3, True)
    assert found["curves"]["train_loss"] == [float(row["train_loss"]) for row in rows]
    assert found["curves"]["metric"] == [float(row["heldout_accuracy"]) for row in rows]
    assert found["curves"]["cumulative_energy_j"] == [float(row["cumulative_energy_j"]) for row in rows]
    assert found["metric"] == {"name": "accuracy", "is_share": True}


def test_who_was_selected_and_what_each_device_spent(street_run: Path) -> None:
    found = RunView.open(street_run).devices()
    rows = rows_of(street_run, "devices.csv")
    ids = [int(row["device"]) for row in rows if row["round"] == "0"]
    assert found["device"] == ids
    assert found["num_rounds"] == 3
    fates = {(int(row["round"]), int(row["device"])): row for row in rows}
    assert "1" in "".join(found["fate"])  # some were lost: every third drops out
    for k, line in enumerate(found["fate"]):
        for i, digit in zip(ids, line, strict=True):
            row = fates[k, i]
            assert int(digit) == int(row["is_selected"]) + int(row["is_received"])
    for phase, values in found["energy_j"].items():
        for i, value in zip(ids, values, strict=True):
            spent = sum(float(fates[k, i][f"{phase}_energy_j"]) for k in range(3))
            assert value == pytest.approx(spent, rel=1e-12)
    assert found["battery"] is None
    assert found["planner"] == {}


@pytest.mark.parametrize("access", ["shared-band", "tdma"])
def test_a_round_of_shares_and_turns_is_replayed(access: str, tmp_path: Path) -> None:
    settings = ["num_rounds=1", "data.dataset=digits", "partition.num_devices=16", "cell.num_blocks=3"]
    weights = ["cell.energy_weight=0.01", "cell.delay_weight=0.01"]
    experiment = load_experiment("umi/ural", [*settings, *weights, f"cell.access={access}"])
    folder = run_experiment(experiment, tmp_path / "run").path
    found = RunView.open(folder).round(0)
    rows = [row for row in rows_of(folder, "devices.csv") if int(row["block"]) >= 0]
    uploads = found["uploads"]
    assert found["access"] == access
    assert len(uploads["device"]) == len(rows) > 3
    assert experiment.cell is not None
    width = [float(row["bandwidth_hz"]) / experiment.cell.bandwidth_hz for row in rows]
    assert uploads["width"] == pytest.approx(width)
    assert uploads["start_s"] == pytest.approx([float(row["upload_start_s"]) for row in rows])
    if access == "tdma":
        assert uploads["width"] == pytest.approx([3.0] * len(rows))
        ends = np.add(uploads["start_s"], uploads["delay_s"])
        assert uploads["start_s"][1:] == pytest.approx(ends[:-1].tolist())
        assert uploads["block"] == [0] * len(rows)
    else:
        assert uploads["block"] == pytest.approx([sum(width[:k]) for k in range(len(rows))])
        assert 2.5 < sum(width) <= 3 * (1 + 1e-9)


def test_a_round_is_replayed_as_it_was_played(street_run: Path) -> None:
    view = RunView.open(street_run)
    for k in range(3):
        found = view.round(k)
        rows = [row for row in rows_of(street_run, "devices.csv") if int(row["round"]) == k]
        sent = [(i, row) for i, row in enumerate(rows) if row["block"] != "-1"]
        uploads = found["uploads"]
        assert uploads["device"] == [i for i, _ in sent]
        assert uploads["block"] == [int(row["block"]) for _, row in sent]
        assert uploads["power_w"] == [float(row["transmit_power_w"]) for _, row in sent]
        assert uploads["success"] == [int(row["is_received"]) for _, row in sent]
        noise_w = 360e3 * 10 ** (-20.4 + 0.5)  # -174 dBm/Hz and a noise figure of 5 dB
        for block, (_, row) in zip(uploads["block"], sent, strict=True):
            assert found["noise_w"][block] == pytest.approx(float(row["interference_w"]) + noise_w, rel=1e-9)
        sinr = [10 * np.log10(float(row["sinr"])) for _, row in sent]
        assert uploads["sinr_db"] == pytest.approx(sinr)


def test_the_map_of_a_run_is_that_of_its_cell(street_run: Path) -> None:
    found = RunView.open(street_run).places()
    experiment = load_experiment(street_run / "config.toml")
    assert experiment.cell is not None
    place = Cell.build(experiment.cell, num_devices=found["num_devices"], seed=experiment.seed).large_scale
    assert place is not None
    np.testing.assert_allclose(np.transpose(found["position_m"]), place.position_m, atol=0.051)


def test_a_run_that_goes_on_shows_its_whole_rounds(street_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    shutil.copytree(street_run, folder)
    (folder / "summary.json").unlink()
    rounds = (folder / "rounds.csv").read_text().splitlines(keepends=True)
    devices = (folder / "devices.csv").read_text().splitlines(keepends=True)
    per_round = (len(devices) - 1) // 3
    (folder / "rounds.csv").unlink()
    (folder / "devices.csv").unlink()
    view = RunView.open(folder)
    assert (view.curves()["num_rounds"], view.curves()["is_finished"]) == (0, False)
    with pytest.raises(RunError, match="no rounds yet"):
        view.devices()
    (folder / "rounds.csv").write_text("".join(rounds[:2]))
    (folder / "devices.csv").write_text("".join(devices[: per_round + 4]) + devices[per_round + 4][:9])
    assert view.curves()["num_rounds"] == 1
    assert view.devices()["num_rounds"] == 1  # three and a half rows of the second round wait
    with (folder / "devices.csv").open("a") as file:
        file.write(devices[per_round + 4][9:] + "".join(devices[per_round + 5 :]))
    assert view.devices()["num_rounds"] == 3
    assert view.devices() == RunView.open(street_run).devices()


def test_a_run_without_a_cell_has_curves_but_no_map(plain_run: Path) -> None:
    view = RunView.open(plain_run)
    assert view.curves()["has_cell"] is False
    assert view.devices()["energy_j"] == {}
    assert view.places() == {}
    with pytest.raises(RunError, match="no radio cell"):
        view.round(0)


def test_batteries_and_what_a_planner_says_are_shown_where_there_are_any(tmp_path: Path) -> None:
    charge = [[5.0, 4.0, 3.0, 2.0], [4.0, 3.0, 2.0, 1.0], [3.0, 0.5, 1.0, 0.0]]
    price = [[float("nan")] * 4, [1.0, 2.0, float("nan"), float("nan")], [0.0, 10.0, 20.0, 30.0]]
    write_battery_run(tmp_path / "own", "own", charge, price=price)
    found = RunView.open(tmp_path / "own").devices()
    assert found["battery"]["num_dead"] == [0, 1, 3]
    assert found["battery"]["charge_j"]["median"] == [3.5, 2.5, 0.75]
    assert found["battery"]["charge_j"]["low"] == pytest.approx([2.3, 1.3, 0.15])
    assert found["battery"]["charge_j"]["high"] == pytest.approx([4.7, 3.7, 2.4])
    assert list(found["planner"]) == ["price_per_j"]
    assert found["planner"]["price_per_j"]["median"] == [None, 1.5, 15.0]
    assert found["planner"]["price_per_j"]["low"] == [None, pytest.approx(1.1), pytest.approx(3.0)]
    assert found["planner"]["price_per_j"]["high"] == [None, pytest.approx(1.9), pytest.approx(27.0)]


def test_the_page_hears_of_news_only(street_run: Path, plain_run: Path) -> None:
    page = Page(str(street_run), str(plain_run))
    assert page.ask("start").json["first_tab"] == "runs"
    first = page.ask("runs").json
    assert [run["name"] for run in first["runs"]] == [HOSTILE, "NUFM"]
    assert page.ask("runs", {"stamp": first["stamp"]}).json["runs"] is None
    assert page.ask("run-round", {"run": 0, "round": 2}).json["round"] == 2
    assert "round must lie in 0 to 2" in page.ask("run-round", {"run": 0, "round": 3}).json["error"]
    assert "round must lie in 0 to 2" in page.ask("run-round", {"run": 0, "round": -1}).json["error"]


BROKEN = [
    ("config.toml", lambda content: b"nonsense = 1\n", "nonsense"),
    ("config.toml", lambda content: b"", "config.toml is not as the run wrote it: it lacks name"),
    ("rounds.csv", lambda content: content.replace(b"round,", b"turn,", 1), 'it has no column "round"'),
    ("rounds.csv", lambda content: content.decode().encode("utf-16"), "it is no text in UTF-8"),
    ("rounds.csv", lambda content: b"\0" * len(content), "it is no text in UTF-8"),
    ("rounds.csv", lambda content: content + b"3,1\n", "line 5 has 2 of"),
    ("rounds.csv", lambda content: content + b'"', None),
    ("rounds.csv", lambda content: b"\xef\xbb\xbf" + content, None),
]


@pytest.mark.parametrize(("file", "damage", "said"), BROKEN)
def test_a_broken_folder_does_not_hide_the_others(
    street_run: Path, tmp_path: Path, file: str, damage: Any, said: str | None
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(street_run, broken)
    (broken / file).write_bytes(damage((broken / file).read_bytes()))
    found = Page(str(broken), str(street_run)).ask("runs").json["runs"]
    assert found[1]["num_rounds"] == 3
    if said is None:
        assert found[0]["num_rounds"] == 3
    else:
        assert said in found[0]["error"]
        assert found[0]["path"] == str(broken)
    json.dumps(found)


def test_a_named_pipe_does_not_hide_the_others(street_run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(street_run, broken)
    (broken / "rounds.csv").unlink()
    os.mkfifo(broken / "rounds.csv")
    found = Page(str(broken), str(street_run)).ask("runs").json["runs"]
    assert "it is a named pipe, not a regular file" in found[0]["error"]
    assert found[1]["num_rounds"] == 3


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b",transmit_power_w,", b",power,", 'it has no column "transmit_power_w"'),
        (b"round,device,", b"round,gadget,", 'it has no column "device"'),
        (b"\n1,", b"\n0,", "its rounds do not have the same"),
    ],
)
def test_devices_that_are_not_as_the_run_wrote_them_are_one_line(
    street_run: Path, tmp_path: Path, old: bytes, new: bytes, said: str
) -> None:
    shutil.copytree(street_run, tmp_path / "run")
    file = tmp_path / "run" / "devices.csv"
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new, 1))
    with pytest.raises(RunError, match=said):
        RunView.open(tmp_path / "run").round(0)


def test_a_table_that_lacks_a_device_is_one_line(street_run: Path, tmp_path: Path) -> None:
    shutil.copytree(street_run, tmp_path / "run")
    file = tmp_path / "run" / "devices.csv"
    lines = file.read_text().splitlines(keepends=True)
    per_round = sum(line.startswith("1,") for line in lines)
    file.write_text("".join(lines[: per_round + 3] + lines[per_round + 4 :]))
    with pytest.raises(RunError, match=f"do not have the same {per_round} devices"):
        RunView.open(tmp_path / "run").devices()


@pytest.mark.parametrize(("column", "value"), [("round", b"2"), ("device", b"99999")])
def test_one_row_of_another_round_or_device_is_one_line(
    street_run: Path, tmp_path: Path, column: str, value: bytes
) -> None:
    shutil.copytree(street_run, tmp_path / "run")
    file = tmp_path / "run" / "devices.csv"
    header, *lines = file.read_bytes().splitlines(keepends=True)
    last_of_round_1 = max(at for at, line in enumerate(lines) if line.startswith(b"1,"))
    row, place = lines[last_of_round_1].split(b","), header.split(b",").index(column.encode())
    row[place] = value
    lines[last_of_round_1] = b",".join(row)
    file.write_bytes(header + b"".join(lines))
    with pytest.raises(RunError, match="its rounds do not have the same"):
        RunView.open(tmp_path / "run").devices()
