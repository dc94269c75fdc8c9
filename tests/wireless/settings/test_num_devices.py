"""The number of devices follows from a cell's files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.wireless.settings.load import load_cell, load_cell_config
from fedwave.wireless.settings.num_devices import num_devices_of


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cell file in the current folder, with five devices in its fleet and four blocks in its gains."""
    monkeypatch.chdir(tmp_path)
    Path("fleet.csv").write_text("max_power_dbm\n" + "23\n" * 5)
    np.save("gains.npy", np.full((3, 5, 4), 1e-9))
    Path("cell.toml").write_text(
        "num_blocks = 4\nbandwidth_hz = 1e6\nnoise_psd_dbm_per_hz = -174\n"
        '[channel]\nkind = "file"\npath = "gains.npy"\n[fleet]\ncpu = "phone"\npath = "fleet.csv"\n'
    )
    return Path("cell.toml")


def test_a_cell_has_as_many_devices_as_its_files(cell: Path) -> None:
    assert load_cell(cell).num_devices == 5
    for shape in ((5,), (5, 4)):
        np.save("gains.npy", np.full(shape, 1e-9))
        assert load_cell(cell).num_devices == 5
    only_gains = load_cell_config(
        "paper", {"channel": {"kind": "file", "path": "gains.npy"}, "num_blocks": 4}
    )
    assert num_devices_of(only_gains) == 5
    assert num_devices_of(load_cell_config("paper", {"fleet": {"path": "fleet.csv"}})) == 5
    Path("places.csv").write_text("x_m,y_m\n" + "10,20\n" * 7)
    placed = {"channel": {"placement": {"kind": "file", "path": "places.csv"}}}
    assert num_devices_of(load_cell_config("umi-3.5ghz", placed)) == 7


def test_without_files_it_is_as_asked_or_a_hundred() -> None:
    assert load_cell("paper").num_devices == 100
    assert load_cell("paper", num_devices=3).num_devices == 3


def test_files_that_disagree_with_each_other_or_with_what_is_asked_are_refused(cell: Path) -> None:
    told = r"The fleet file .*fleet\.csv has 5 devices, but 6 were asked for\. Leave that number out"
    with pytest.raises(ProblemError, match=told):
        load_cell(cell, num_devices=6)
    assert load_cell(cell, num_devices=5).num_devices == 5
    Path("fleet.csv").write_text("max_power_dbm\n23\n23\n")
    told = r"The fleet file .* has 2 devices and The gains file .* has 5 devices\. Give every file one row"
    with pytest.raises(ProblemError, match=told):
        load_cell(cell)


def test_all_keys_that_a_cell_lacks_are_named_at_once(cell: Path) -> None:
    cell.write_text('[channel]\nkind = "file"\npath = "gains.npy"\n')
    told = (
        r"^cell\.num_blocks, cell\.bandwidth_hz, cell\.fleet and cell\.noise_psd_dbm_per_hz are missing\. "
        r"Set them, or start from a preset that has them\.$"
    )
    with pytest.raises(ConfigError, match=told):
        load_cell(cell)
    cell.write_text(
        'num_blocks = 4\nbandwidth_hz = 1e6\n[channel]\nkind = "file"\npath = "gains.npy"\n[fleet]\n'
    )
    with pytest.raises(ConfigError, match="exactly one of noise_psd_w_per_hz and noise_psd_dbm_per_hz"):
        load_cell(cell)
