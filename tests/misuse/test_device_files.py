"""Rows of a fleet, positions or device CSV go to the device that they name, or are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, example_problem, load_problem
from fedwave.errors import ProblemError
from fedwave.wireless.settings.load import load_cell

BAD = [
    ("device,max_power_w\n0,0.1\n0,0.2\n2,0.3\n", "has device 0 twice, in lines 2 and 3"),
    (
        "device,max_power_w\n1,0.1\n2,0.2\n3,0.3\n",
        'has an unknown device "3" in line 4. Its 3 rows are the devices 0 to 2',
    ),
    ("device,max_power_w\n0,0.1\n1,0.2\n-1,0.3\n", 'has an unknown device "-1"'),
    ("device,max_power_w\na,0.1\nb,0.2\nc,0.3\n", 'has an unknown device "a"'),
    ("device,max_power_w\n0,0.1\n1.0,0.2\n2,0.3\n", 'has an unknown device "1.0"'),
    ("device,max_power_w\n0,0.1\n,0.2\n2,0.3\n", 'has an unknown device ""'),
    ("device,device,max_power_w\n0,0,1\n1,1,1\n2,2,1\n", 'has two columns "device"'),
    ("max_power_w,max_power_w\n1,1\n1,1\n1,1\n", 'has two columns "max_power_w". Keep one of them'),
    ("max_power_w,max_power\n1,1\n1,1\n1,1\n", 'has an unknown column "max_power". Did you mean'),
    ("max_power_w\n1\n1\nx\n", 'has max_power_w = "x" for device 2'),
    ("max_power_w\n1\n1\n1,2\n", "has 2 values in line 4, but 1 columns"),
    ("", "is empty"),
    ("\ufeff", "is empty"),
    ('max_power_w\n"' + "9" * 200_000 + '"\n1\n1\n', "must be"),
]


def cell_powers(path: Path) -> list[float]:
    return load_cell(
        "paper", num_devices=3, overrides={"fleet": {"path": str(path)}}
    ).fleet.max_power_w.tolist()


def test_rows_of_a_fleet_go_to_the_device_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("# fleet\nmax_power_w,device\n0.3,2\n0.1,0\n\n0.2, 1\n")
    assert cell_powers(tmp_path / "f.csv") == [0.1, 0.2, 0.3]
    (tmp_path / "f.csv").write_text("\ufeffmax_power_w\n0.3\n0.1\n0.2\n", encoding="utf-8")
    assert cell_powers(tmp_path / "f.csv") == [0.3, 0.1, 0.2]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_a_fleet_that_is_not_clear_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ProblemError) as caught:
        cell_powers(tmp_path / "f.csv")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_positions_go_to_the_device_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("device,x_m,y_m\n1,10,20\n0,30,40\n")
    placement = {"kind": "file", "path": str(tmp_path / "p.csv")}
    cell = load_cell("umi-3.5ghz", num_devices=2, overrides={"channel": {"placement": placement}})
    assert cell.position_m is not None
    assert cell.position_m.tolist() == [[30.0, 40.0], [10.0, 20.0]]
    (tmp_path / "p.csv").write_text("device,x_m,y_m\n1,10,20\n1,30,40\n")
    with pytest.raises(ProblemError, match="has device 1 twice"):
        load_cell("umi-3.5ghz", num_devices=2, overrides={"channel": {"placement": placement}})


def read(tmp_path: Path, csv: str) -> AllocationProblem:
    (tmp_path / "p.toml").write_text(example_problem())
    (tmp_path / "d.csv").write_text(csv)
    return load_problem(tmp_path / "p.toml", devices_csv=tmp_path / "d.csv")


FULL = "contribution,channel_gain,max_power_w,workload_cycles,max_frequency_hz,capacitance"


def test_rows_of_the_devices_of_a_problem_go_to_the_device_that_they_name(tmp_path: Path) -> None:
    found = read(tmp_path, f"device,{FULL}\n1,5,1e-9,0.2,1e6,1e9,1e-28\n0,7,1e-9,0.2,1e6,1e9,1e-28\n")
    np.testing.assert_array_equal(found.contribution, [7.0, 5.0])


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        (f"device,{FULL}\n1,5,1,1,1,1,1\n1,7,1,1,1,1,1\n", "has device 1 twice"),
        (f"device,{FULL}\n1,5,1,1,1,1,1\n2,7,1,1,1,1,1\n", 'has an unknown device "2"'),
        (f"{FULL},max_power_dbm\n5,1,1,1,1,1,23\n", "gives max_power_w twice (as max_power_dbm, too)"),
        (f"{FULL},channel_gain_db\n5,1,1,1,1,1,-90\n", "gives channel_gain twice (as channel_gain_db, too)"),
        (f"{FULL},contribution\n5,1,1,1,1,1,4\n", 'has two columns "contribution"'),
        (f"{FULL},channel_gain_0\n5,1,1,1,1,1,4\n", "no channel_gain, or channel_gain alone"),
    ],
)
def test_devices_of_a_problem_that_are_not_clear_are_refused(tmp_path: Path, csv: str, said: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read(tmp_path, csv)
    assert said in str(caught.value)
