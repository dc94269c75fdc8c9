"""Tables of messages: what is read from a CSV or a run folder, and what each mistake is told."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.experiments import load_experiment
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment
from fedwave.simulation.account_tables import messages_of_run, read_messages

TABLE = """# of a run elsewhere
round,device,download_bytes,operations,upload_bytes,block,transmit_power_w
1,3,100,4e8,50,-1,
1,0,100,,,,
2,3,100,1.5,20,4,0.1
"""


def test_a_table_is_read_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(TABLE)
    found = read_messages(path, counts_samples=False)
    assert found.round_index.tolist() == [1, 1, 2]
    assert found.device.tolist() == [3, 0, 3]
    assert found.download_bytes.tolist() == [100, 100, 100]
    assert found.work.tolist() == [4e8, 0, 1.5]
    assert found.upload_bytes.tolist() == [50, 0, 20]
    assert found.report_bytes.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(found.block, [math.nan, math.nan, 4])
    np.testing.assert_array_equal(found.transmit_power_w, [math.nan, math.nan, 0.1])
    assert np.isnan(found.cpu_frequency_hz).all()
    path.write_text("round,device,samples\n0,1,12\n")
    assert read_messages(path, counts_samples=True).work.tolist() == [12]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round,device,upload_byte\n", 'unknown column "upload_byte". Did you mean "upload_bytes"?'),
        ("round,upload_bytes\n1,2\n", 'has no column "device". Its header is: round, upload_bytes.'),
        ("round,device,samples\n", "counts work in samples, but the cell's fleet has cycles_per_operation"),
        ("round,device\n1,-1\n", 'has device = "-1" in line 2. Write a whole number >= 0.'),
        ("round,device\n1.5,1\n", 'has round = "1.5" in line 2'),
        ("round,device,upload_bytes\n1,1,-3\n", 'has upload_bytes = "-3" in line 2. Write a number >= 0.'),
        ("round,device,upload_bytes\n1,1,x\n", 'has upload_bytes = "x" in line 2'),
        ("round,device,upload_bytes\n1,1,inf\n", 'has upload_bytes = "inf" in line 2'),
        ("round,device,block\n1,1,0.5\n", 'has block = "0.5" in line 2. Write a whole number >= 0.'),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(ProblemError) as caught:
        read_messages(path, counts_samples=False)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_operations_do_not_fit_a_fleet_with_cycles_per_sample(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("round,device,operations\n")
    with pytest.raises(ProblemError, match="has cycles_per_sample. Give a column samples"):
        read_messages(path, counts_samples=True)


def test_the_messages_of_a_run_without_a_cell(tmp_path: Path) -> None:
    settings = ["num_rounds=2", "partition.num_devices=12", "model.kind=softmax", "selection.num_selected=3"]
    folder = run_experiment(load_experiment("digits/nufm", settings), tmp_path / "run").path
    found = messages_of_run(folder, work=1e6)
    table = RunFolder(folder).table("devices.csv")
    num_devices = len(np.unique(table["device"]))
    assert found.device.tolist() == list(range(num_devices)) * 2  # all compute, by their place in the cell
    assert set(found.download_bytes) == {4.0 * 650}  # 64 x 10 + 10 parameters
    assert set(found.work) == {1e6}
    assert (found.upload_bytes > 0).sum() == 6
    whose = np.unique(table["device"])[found.device[found.upload_bytes > 0]]
    assert whose.tolist() == table["device"][table["is_selected"] == 1].tolist()
    assert set(messages_of_run(folder, work=0.0, model_bytes=7.0).download_bytes) == {7.0}
    (folder / "summary.json").unlink()
    with pytest.raises(ProblemError, match="does not say how many parameters"):
        messages_of_run(folder, work=0.0)


def test_who_was_not_asked_has_no_messages(tmp_path: Path) -> None:
    settings = ["num_rounds=2", "partition.num_devices=12", "model.kind=softmax", "selection.num_selected=3"]
    folder = run_experiment(load_experiment("digits/fedavg", settings), tmp_path / "run").path
    found = messages_of_run(folder, work=1.0, model_bytes=8.0)
    assert len(found.device) == 6
    assert (found.upload_bytes == 8.0).all()
