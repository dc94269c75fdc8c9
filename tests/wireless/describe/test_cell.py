"""A cell in words: the lines of its link budget, read back, are its numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.cell import CellDescription, describe_cell, si
from fedwave.wireless.describe.link_budget import link_budget
from fedwave.wireless.settings.load import load_cell_config
from fedwave.wireless.settings.presets import CELL_PRESETS


def describe(preset: str, overrides: dict[str, Any] | None = None, **options: Any) -> CellDescription:
    cell = Cell.build(load_cell_config(preset, overrides), num_devices=20, seed=1)
    return describe_cell(cell, name=preset, **options)


def lines(description: CellDescription) -> dict[str, list[float | str]]:
    """Return each row's values as numbers in SI units, where they are numbers."""
    scale = {"G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}

    def number(text: str) -> float | str:
        value, _, unit = text.partition(" ")
        try:
            prefix = unit[0] if unit[:1] in scale and len(unit) > 1 else ""
            return float(value) * scale.get(prefix, 1.0)
        except ValueError:
            return text

    return {label: [number(text) for text in texts] for label, *texts in description.budget_table.rows}


@pytest.mark.parametrize("preset", [name for name in CELL_PRESETS if not name.startswith("paper")])
def test_the_lines_of_a_link_budget_add_up(preset):
    description = describe(preset, {"channel": {"antenna_gain_db": 4.0}})
    shown = lines(description)
    assert description.budget_table.headings == ("best", "median", "worst")
    radio = description.cell.config.radio
    for column in range(3):
        labels = list(shown)
        end = labels.index("= received power")
        total_dbm = sum(
            {"+": 1.0, "-": -1.0, " ": 1.0}[label[0]] * shown[label][column]
            for label in labels[:end]
            if label[0] in "+- "
        )
        received_dbm = shown["= received power"][column]
        assert received_dbm == pytest.approx(total_dbm, abs=0.3)  # six lines rounded to 0.1 dB
        others = shown["  interference"][column]
        noise_mw = 10 ** ((shown["  thermal noise"][column] + shown["+ noise figure"][column]) / 10)
        noise_mw += 0.0 if others == "none" else 10 ** (others / 10)
        noise_dbm = shown["= noise, interference"][column]
        assert noise_dbm == pytest.approx(10 * math.log10(noise_mw), abs=0.15)
        assert shown["SINR"][column] == pytest.approx(received_dbm - noise_dbm, abs=0.15)
        power_w = 10 ** ((shown["  transmit power"][column] - 30) / 10)
        drain_w = power_w / radio.amplifier_efficiency + radio.circuit_power_w
        is_calibrated = preset in ("umi-3.5ghz", "uma-2ghz", "rma-700mhz")
        assert shown["+ antennas"][column] == (12.0 if is_calibrated else 4.0)
        floor_db = -7 if is_calibrated else -6
        if is_calibrated or preset.endswith("-bare"):
            label = f"margin over {floor_db} dB"
            assert shown[label][column] == pytest.approx(shown["SINR"][column] - floor_db, abs=0.11)
        if shown["rate"][column] == 0.0:  # below the floor
            assert shown["upload time"][column] == "never"
            continue
        bits = description.budget.model_bits
        assert shown["upload time"][column] == pytest.approx(bits / shown["rate"][column], rel=0.02)
        energy_j = drain_w * shown["upload time"][column]
        assert shown["upload energy"][column] == pytest.approx(energy_j, rel=0.03)


def test_a_line_is_shown_where_it_says_something():
    street = set(lines(describe("umi-3.5ghz-bare")))
    assert {"distance", "line of sight", "- path loss", "- shadowing", "+ fading", "+ antennas"} <= street
    assert "+ channel gain" not in street
    plain = {"channel": {"fading": {"kind": "none"}, "shadowing": False}}
    assert not {"- shadowing", "+ fading"} & set(lines(describe("umi-3.5ghz-bare", plain)))
    chen = set(lines(describe("chen2020")))
    assert "line of sight" not in chen
    assert "+ fading" not in chen
    flat = set(
        lines(describe("umi-3.5ghz-bare", {"channel": {"kind": "uniform", "low": 1e-9, "high": 1e-8}}))
    )
    assert "+ channel gain" in flat
    assert not {"distance", "- path loss", "- shadowing", "+ fading", "+ antennas"} & flat


def test_the_papers_cell_has_no_units():
    description = describe("paper")
    row = description.budget.rows[0]
    shown = lines(description)
    assert shown["channel gain h"][0] == pytest.approx(row.channel_gain, rel=1e-3)
    assert shown["transmit power p_max"][0] == pytest.approx(row.transmit_power_w, rel=1e-3)
    assert shown["rate"][0] == pytest.approx(row.rate_bps, rel=1e-3)
    assert shown["upload energy"][0] == pytest.approx(row.upload_energy_j, rel=1e-3)
    assert shown["upload time"][0] == pytest.approx(row.upload_delay_s, rel=1e-3)
    assert shown["noise, interference"][0] == pytest.approx(row.noise_w, rel=1e-3)
    assert description.budget_table.title == "Link budget at full power, upload of S = 1"
    assert description.facts == "20 devices, 20 blocks, B = 1, N0 = 1\nchannel drawn once, seed 1"
    assert not any(
        "W" in text or "Hz" in text or "dB" in text
        for _, *texts in description.fleet_table.rows
        for text in texts
    )


def test_the_facts_name_blocks_noise_and_redrawing():
    facts = describe("umi-3.5ghz-bare").facts
    # -174 + 10 lg 360e3 + 5 = -113.4 dBm
    assert (
        facts
        == "20 devices, 20 blocks of 360 kHz, noise -113.4 dBm in each\nchannel drawn anew each round, seed 1"
        "\nuploads outlast the fading: coherence time of 43.5 ms"
    )


def test_distances_and_sight_are_those_of_the_places(tmp_path):
    distances_m = np.array([9.94, 10.0, 10.4, 55.5, *[300.0] * 16])
    rows = "\n".join(f"{d},0" for d in distances_m)
    (tmp_path / "positions.csv").write_text(f"x_m,y_m\n{rows}\n")
    placement = {"kind": "file", "path": str(tmp_path / "positions.csv")}
    shown = {9.94: "9.9 m", 10.0: "10 m", 10.4: "10 m", 55.5: "56 m", 300.0: "300 m"}
    for sight, answer in (("always", "yes"), ("never", "no")):
        channel = {"placement": placement, "line_of_sight": sight}
        description = describe("umi-3.5ghz-bare", {"channel": channel})
        budget = {label: texts for label, *texts in description.budget_table.rows}
        assert budget["line of sight"] == [answer] * 3
        for row, text in zip(description.budget.rows, budget["distance"], strict=True):
            assert text == shown[distances_m[row.device_index]]
    # Every device alone, so that each of the distances is shown once.
    for d, text in shown.items():
        (tmp_path / "positions.csv").write_text(f"x_m,y_m\n{d},0\n")
        config = load_cell_config("umi-3.5ghz-bare", {"channel": {"placement": placement}})
        alone = describe_cell(Cell.build(config, num_devices=1, seed=1))
        assert ("distance", text, text, text) in alone.budget_table.rows


def test_the_first_round_is_described():
    description = describe("umi-3.5ghz-bare")
    cell = description.cell
    first = link_budget(cell, cell.draw(0), model_bits=description.budget.model_bits)
    assert description.budget.rows == first.rows
    assert description.budget_table.title == "Link budget at full power, upload of 3.62 Mbit"


def test_groups_of_blocks_are_stated():
    facts = describe("umi-3.5ghz-bare", {"blocks_per_device": 4, "num_blocks": 5}).facts
    assert "5 groups of 4 blocks of 360 kHz (1.44 MHz), noise -107.4 dBm in each" in facts
    assert describe("umi-3.5ghz-bare", {"blocks_per_device": 4}).as_json()["blocks_per_device"] == 4


def test_short_distances_keep_a_decimal():
    shown = describe("chen2020", {"channel": {"placement": {"max_distance_m": 12}}}).budget_table.rows
    texts = next(row[1:] for row in shown if row[0] == "distance")
    assert all(("." in text) == (float(text.split()[0]) < 10) for text in texts)
    assert any("." in text for text in texts)


def test_an_upload_has_the_size_of_the_papers_cnn_unless_told():
    assert describe("umi-3.5ghz-bare").budget.model_bits == 113_162 * 32
    assert describe("paper").budget.model_bits == 1.0
    assert describe("paper", model_bits=5.0).budget.model_bits == 5.0


def test_the_fleet_is_summed_up_by_its_smallest_median_and_largest():
    description = describe("fedl2021")
    frequency_hz = np.sort(description.cell.fleet.max_frequency_hz)
    summary = description.fleet_summary["max_frequency_hz"]
    assert summary == {
        "smallest": frequency_hz[0],
        "median": pytest.approx((frequency_hz[9] + frequency_hz[10]) / 2),
        "largest": frequency_hz[-1],
    }
    assert description.fleet_table.headings == tuple(summary)
    rows = {label: texts for label, *texts in description.fleet_table.rows}
    assert rows["max_power_dbm"] == ["30.0 dBm"] * 3
    assert rows["capacitance"] == ["2e-28"] * 3
    assert all(text.endswith(" GHz") for text in rows["max_frequency_hz"])


def test_plain_data_carries_the_same_numbers():
    description = describe("umi-3.5ghz-bare", {"bandwidth_hz": 180.0})
    data = json.loads(json.dumps(description.as_json(), allow_nan=False))
    cell = description.cell
    assert data["cell"] == "umi-3.5ghz-bare"
    assert (data["num_devices"], data["num_blocks"], data["seed"]) == (20, 20, 1)
    assert (data["bandwidth_hz"], data["noise_psd_w_per_hz"]) == (180.0, cell.noise_psd_w_per_hz)
    assert data["normalised"] is False
    assert data["model_bits"] == description.budget.model_bits
    assert [row["sinr_db"] for row in data["link_budget"]] == [row.sinr_db for row in description.budget.rows]
    assert data["fleet"] == description.fleet_summary
    assert data["warnings"] == list(cell.warnings) != []
    assert type(cell.config).model_validate(data["config"]) == cell.config


def test_a_device_that_is_never_heard_becomes_null(tmp_path):
    np.save(tmp_path / "gains.npy", np.array([[1e-9] * 20, *[[0.0] * 20] * 19]))
    channel = {"kind": "file", "path": str(tmp_path / "gains.npy")}
    description = describe("umi-3.5ghz-bare", {"channel": channel})
    worst = description.as_json()["link_budget"][-1]
    assert worst["sinr_db"] is worst["upload_delay_s"] is worst["upload_energy_j"] is None
    assert worst["rate_bps"] == 0.0
    last = {label: texts[-1] for label, *texts in description.budget_table.rows}
    assert last["upload time"] == "never"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(3_621_184, "bit", "3.62 Mbit"), (0.0, "W", "0 W"), (0.0, "s", "0 s"), (math.inf, "s", "never"),
     (math.inf, "J", "inf J"), (0.9995, "s", "1 s"), (0.99, "s", "990 ms"), (2e-3, "s", "2 ms"),
     (1500, "Hz", "1.5 kHz"), (1e-12, "W", "0.001 nW"), (2.5e9, "Hz", "2.5 GHz"),
     (3e-6, "W", "3 µW"), (-2e-3, "s", "-2 ms")],
)  # fmt: skip
def test_numbers_are_short(value, unit, text):
    assert si(value, unit) == text
