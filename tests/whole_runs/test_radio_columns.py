"""Eq. (25), the drain of a radio and the phases of a round, recomputed from a run's folder alone."""

from __future__ import annotations

import csv
import math
import tomllib

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app

UNIT_W = (10**2.3 - 1) * 1e-3 / 0.3 / 450  # of TR 38.840: 450 of them between 0 and 23 dBm at 30 %


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("sklearn")
    path = tmp_path_factory.mktemp("street") / "run"
    words = ["run", "digits/ural", "-s", "num_rounds=2", "-s", "cell.preset=umi-3.5ghz"]
    words += ["-s", "cell.energy_weight=0.1", "-s", "cell.contribution_scale=normalised", "-o", str(path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return path


def table(folder, name):
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_uploads_rate_follows_from_its_row_and_the_settings(folder):
    cell = tomllib.loads((folder / "config.toml").read_text())["cell"]
    bandwidth_hz = cell["bandwidth_hz"]
    noise_w = bandwidth_hz * 10 ** ((cell["noise_psd_dbm_per_hz"] - 30 + cell["noise_figure_db"]) / 10)
    uploads = [row for row in table(folder, "devices.csv") if row["is_selected"] == "1"]
    assert len(uploads) > 5
    for row in uploads:
        number = {name: float(row[name]) for name in row if row[name]}
        sinr = number["transmit_power_w"] * number["channel_gain"] / (number["interference_w"] + noise_w)
        assert number["sinr"] == pytest.approx(sinr, rel=1e-9)
        share = min(0.4 * math.log2(1 + sinr), 0.98 * 2.93)
        assert number["rate_bps"] == pytest.approx(bandwidth_hz * share, rel=1e-9)
        drain_w = number["transmit_power_w"] / 0.3 + 250 * UNIT_W - 1e-3 / 0.3
        assert number["upload_energy_j"] == pytest.approx(drain_w * number["upload_time_s"], rel=1e-9)
        assert number["num_samples"] >= 2


def test_who_does_not_upload_has_no_link(folder):
    others = [row for row in table(folder, "devices.csv") if row["is_selected"] == "0"]
    assert others
    for row in others:
        assert row["channel_gain"] == row["interference_w"] == row["sinr"] == row["rate_bps"] == ""


def test_listening_is_in_the_sums_and_the_base_station_is_not(folder):
    devices = table(folder, "devices.csv")
    for row in table(folder, "rounds.csv"):
        own = [one for one in devices if one["round"] == row["round"]]
        assert float(row["downlink_energy_j"]) == pytest.approx(
            sum(float(one["downlink_energy_j"]) for one in own)
        )
        assert float(row["downlink_energy_j"]) == pytest.approx(
            0.55 * 300 * UNIT_W * len(own) * float(row["downlink_time_s"]), rel=1e-9
        )
        phases = ("downlink", "compute", "report", "upload", "idle")
        assert float(row["energy_j"]) == pytest.approx(sum(float(row[f"{one}_energy_j"]) for one in phases))
        power_w = 10 ** ((39.6 - 30) / 10)
        assert float(row["broadcast_energy_j"]) == pytest.approx(power_w * float(row["downlink_time_s"]))
