from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.explore.source import CellView, Source
from fedwave.explore.workbench import Workbench
from fedwave.units import watt_to_dbm
from fedwave.wireless.describe.cell import describe_cell
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.settings.presets import CELL_PRESETS


def changed(view: CellView, **values: object) -> CellView:
    return view.model_copy(update=values)


@pytest.mark.parametrize("name", CELL_PRESETS)
def test_a_preset_is_shown_as_it_is(name: str) -> None:
    source = Source.preset(name)
    view = source.first_view(num_devices=12, seed=3)
    assert source.overrides(view) == {}
    shown, given = Workbench.of([source]).cell(source, view), load_cell(name, num_devices=12, seed=3)
    assert np.array_equal(shown.draw(0).channel_gain, given.draw(0).channel_gain)
    assert np.array_equal(shown.draw(0).interference_w, given.draw(0).interference_w)
    assert np.array_equal(shown.fleet.max_power_w, given.fleet.max_power_w)
    assert view.max_power_w is not None
    assert view.max_power_w >= given.fleet.max_power_w.max() * (1 - 1e-12)


def test_an_access_and_its_limits_are_settings_of_the_cell(tmp_path: Path) -> None:
    source = Source.preset("umi-3.5ghz")
    first = source.first_view(num_devices=12, seed=0)
    view = changed(first, access="blocks", work_conserving=True, max_uploads=4)
    assert source.overrides(view) == {"access": "blocks", "work_conserving": True, "max_uploads": 4}
    problem = Workbench.of([source]).problem(source, view)
    assert (problem.access, problem.max_uploads) == ("blocks", 4)
    file = tmp_path / "cell.toml"
    file.write_text('preset = "umi-3.5ghz"\naccess = "blocks"\nwork_conserving = true\n')
    own = Source.file(file)
    shown = own.first_view(num_devices=12, seed=0)
    assert (shown.access, shown.work_conserving, shown.max_uploads) == ("blocks", True, None)
    assert own.overrides(shown) == {}
    turns = own.overrides(changed(shown, access="tdma", work_conserving=False))
    assert turns == {"access": "tdma", "work_conserving": False}


def test_the_first_weights_are_those_that_fedwave_cell_prints() -> None:
    printed = describe_cell(load_cell("umi-3.5ghz", num_devices=100, seed=0)).suggested_weights
    view = Source.preset("umi-3.5ghz").first_view(num_devices=100, seed=0)
    assert f"{view.energy_weight:.2g}" == f"{printed['energy_weight']:.2g}"
    assert f"{view.delay_weight:.2g}" == f"{printed['delay_weight']:.2g}"
    paper = Source.preset("paper").first_view(num_devices=100, seed=0)
    assert (paper.energy_weight, paper.delay_weight, paper.model_bits) == (1.0, 1.0, 1.0)


def test_sliders_change_the_settings_they_name_and_no_others() -> None:
    source = Source.preset("umi-3.5ghz")
    view = changed(
        source.first_view(num_devices=12, seed=0),
        num_blocks=7,
        bandwidth_hz=180e3,
        max_power_w=0.1,
        deadline_s=4.0,
    )
    assert source.overrides(view) == {
        "num_blocks": 7,
        "bandwidth_hz": 180e3,
        "fleet": {"max_power_w": 0.1},
        "losses": {"deadline_s": 4.0},
    }
    cell = Workbench.of([source]).cell(source, view)
    assert cell.num_blocks == 7
    assert cell.bandwidth_hz == 180e3
    assert (cell.fleet.max_power_w == 0.1).all()
    assert cell.upload_risks.deadline_s == 4.0


@pytest.mark.parametrize(
    ("power", "largest_w", "expected"),
    [
        ("max_power_w = { low = 0.1, high = 0.5 }", 0.25, {"max_power_w": {"low": 0.1, "high": 0.25}}),
        ("max_power_w = { low = 0.1, high = 0.5 }", 0.05, {"max_power_w": {"low": 0.05, "high": 0.05}}),
        ("max_power_w = 0.5", 0.25, {"max_power_w": 0.25}),
        ("max_power_dbm = 23", 0.25, {"max_power_w": 0.25}),
        (
            "max_power_dbm = { low = 10, high = 23 }",
            0.1,
            {"max_power_dbm": {"low": 10.0, "high": watt_to_dbm(0.1)}},
        ),
    ],
)
def test_a_range_of_powers_keeps_its_lower_end(
    tmp_path: Path, power: str, largest_w: float, expected: dict[str, object]
) -> None:
    file = tmp_path / "cell.toml"
    file.write_text(f'preset = "umi-3.5ghz"\n[fleet]\n{power}\n')
    source = Source.file(file)
    view = source.first_view(num_devices=5, seed=0)
    assert source.overrides(view) == {}
    after = changed(view, max_power_w=largest_w)
    assert source.overrides(after) == {"fleet": expected}
    powers = Workbench.of([source]).cell(source, after).fleet.max_power_w
    assert powers.max() <= largest_w * (1 + 1e-12)


def test_powers_of_a_file_have_no_slider(tmp_path: Path) -> None:
    (tmp_path / "fleet.csv").write_text("max_power_w\n0.1\n0.2\n0.3\n")
    file = tmp_path / "cell.toml"
    file.write_text('preset = "umi-3.5ghz"\n[fleet]\npath = "fleet.csv"\n[explore]\nnum_devices = 3\n')
    source = Source.file(file)
    view = source.first_view()
    assert (view.num_devices, view.max_power_w) == (3, None)
    assert Workbench.of([source]).cell(source, view).fleet.max_power_w.tolist() == [0.1, 0.2, 0.3]


def test_a_table_explore_starts_the_page(tmp_path: Path) -> None:
    file = tmp_path / "cell.toml"
    file.write_text('preset = "paper"\nnum_blocks = 4\n[explore]\nseed = 9\ndelay_weight = 0.5\n')
    view = Source.file(file).first_view()
    assert (view.num_blocks, view.seed, view.delay_weight, view.energy_weight) == (4, 9, 0.5, 1.0)
    assert view.num_devices == 100
    asked_for = Source.file(file).first_view(num_devices=20, seed=2)  # the command line beats the file
    assert (asked_for.num_devices, asked_for.seed, asked_for.delay_weight) == (20, 2, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[explore]\nsed = 1", "explore.sed"),
        ('[explore]\nseed = "1"', "explore.seed"),
        ("[explore]\nnum_devices = 0", "explore.num_devices"),
        ("colour = 1", "cell.colour"),
        ("= 1", "not valid TOML"),
    ],
)
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cell.toml"
    file.write_text(f'preset = "paper"\n{text}\n')
    with pytest.raises(ConfigError, match=message) as error:
        Source.file(file).first_view(num_devices=5, seed=0)
    assert "\n" not in str(error.value)
