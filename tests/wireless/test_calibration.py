"""Measured watts: least squares against known coefficients, and a cell file that is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.wireless.calibration import fit_sending, read_calibration
from fedwave.wireless.settings.load import load_cell_config


def test_exact_rows_give_the_exact_line() -> None:
    power_w = np.array([0.001, 0.05, 0.2])
    found, left_w = fit_sending(power_w, power_w / 0.25 + 0.6)
    assert (found.amplifier_efficiency, found.circuit_power_w) == pytest.approx((0.25, 0.6), rel=1e-12)
    assert left_w == pytest.approx(0.0, abs=1e-12)


def test_noisy_rows_give_the_line_of_the_normal_equations() -> None:
    rng = np.random.default_rng(3)
    power_w = rng.uniform(0.0, 0.2, 400)
    watts = power_w / 0.3 + 0.37 + rng.normal(0.0, 0.05, 400)
    found, left_w = fit_sending(power_w, watts)
    centred = power_w - power_w.mean()
    slope = float(centred @ watts / (centred @ centred))
    assert 1 / found.amplifier_efficiency == pytest.approx(slope, rel=1e-9)
    assert found.circuit_power_w == pytest.approx(watts.mean() - slope * power_w.mean(), rel=1e-9)
    assert found.amplifier_efficiency == pytest.approx(0.3, rel=0.05)  # 0.05 / (0.058 x 20) is 4 % of 3.3
    assert left_w == pytest.approx(0.05, rel=0.1)


MEASURED = "state,watts,dbm\nsend,1.0,0\nsend,1.45,20\nreceive,0.5,\nreceive,0.7,\nwait,0.02,\n"


def test_a_table_becomes_a_cell_file_that_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "watts.csv").write_text(MEASURED)
    found = read_calibration(tmp_path / "watts.csv")
    # 1 mW and 100 mW on the air: 0.45 W for 99 mW.
    assert found.sending is not None
    assert found.sending.amplifier_efficiency == pytest.approx(0.22)
    assert found.sending.circuit_power_w == pytest.approx(1.0 - 0.001 / 0.22)
    assert (found.receive_power_w, found.idle_power_w) == (pytest.approx(0.6), 0.02)
    path = tmp_path / "cell.toml"
    path.write_text(found.to_toml(preset="umi-3.5ghz", source="watts.csv"))
    cell = load_cell_config(path)
    assert cell.radio.power == found.sending  # to the last bit
    assert (cell.downlink.receive_power_w, cell.idle_power_w) == (found.receive_power_w, found.idle_power_w)
    assert cell.waiting.states == ()  # the preset's sleep gives way to the measured watts
    assert cell.downlink.broadcast


def test_states_that_were_not_measured_stay_as_the_preset_has_them(tmp_path: Path) -> None:
    (tmp_path / "watts.csv").write_text("state,watts\nreceive,0.5\n")
    path = tmp_path / "cell.toml"
    path.write_text(read_calibration(tmp_path / "watts.csv").to_toml(preset="umi-3.5ghz"))
    preset, cell = load_cell_config("umi-3.5ghz"), load_cell_config(path)
    assert cell.radio == preset.radio
    assert cell.waiting == preset.waiting
    assert cell.downlink.receive_power_w == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state,watts\nsned,1\n", 'has the state "sned" in line 2. Did you mean "send"?'),
        ("state,wats\nsend,1\n", 'unknown column "wats". Did you mean "watts"?'),
        ("watts\n1\n", 'has no column "state"'),
        ("state,watts\nsend,1\n", 'has no column "dbm"'),
        ("state,watts\n", "has a header and no measurements"),
        ("state,watts\nwait,-1\n", 'has watts = "-1" in line 2. Write watts from 0 to 1000.'),
        ("state,watts\nwait,1040\n", 'has watts = "1040" in line 2'),
        ("state,watts,dbm\nsend,1,\n", 'has dbm = "" in line 2. Write a transmit power in dBm'),
        ("state,watts,dbm\nsend,1,23\nsend,1.1,23\n", "fewer than two transmit powers"),
        (
            "state,watts,dbm\nsend,1,0\nsend,0.9,23\n",
            "must drain a watt or more for each on the air, got -0.504",
        ),
        ("state,watts,dbm\nsend,1,0\nsend,1.1,23\n", "each on the air, got 0.504 W"),
        ("state,watts,dbm\nsend,1.1,23\nsend,2.5,26\n", "0 W or more without power on the air, got -0.3"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "watts.csv").write_text(text)
    with pytest.raises(ProblemError) as caught:
        read_calibration(tmp_path / "watts.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
