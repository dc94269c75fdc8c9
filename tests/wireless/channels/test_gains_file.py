"""Gains from files: what is read, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fedwave.errors import ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.gains_file import FileChannel, FileConfig, read_gains
from fedwave.wireless.settings.load import load_cell_config


@pytest.fixture
def gains() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.0, 1e-9, (4, 5, 3))  # rounds, devices, blocks


def save(tmp_path, array, name="gains.npy"):
    path = tmp_path / name
    np.save(path, array)
    return path


def load(path, **options) -> FileChannel:
    return FileConfig(path=path, **options).build(num_devices=5, num_blocks=3)


def gain(channel: FileChannel, round_index: int) -> np.ndarray:
    return channel.gain(round_index, rng=np.random.default_rng(0))


def test_each_shape_of_npy_is_read(tmp_path, gains):
    assert_array_equal(gain(load(save(tmp_path, gains[0, :, 0])), 7), gains[0, :, 0])
    assert_array_equal(gain(load(save(tmp_path, gains[0])), 7), gains[0])
    by_round = load(save(tmp_path, gains))
    assert_array_equal(gain(by_round, 0), gains[0])
    assert_array_equal(gain(by_round, 3), gains[3])


def test_a_csv_has_a_row_per_device_and_a_column_per_block(tmp_path, gains):
    path = tmp_path / "gains.csv"
    np.savetxt(path, gains[0], delimiter=",")
    assert_allclose(gain(load(path), 0), gains[0])
    np.savetxt(path, gains[0], delimiter=",", header="b0,b1,b2", comments="")
    assert_allclose(gain(load(path), 0), gains[0])
    np.savetxt(path, gains[0, :, 0])
    assert_allclose(gain(load(path), 0), gains[0, :, 0])


def test_columns_that_end_in_db_are_in_db(tmp_path, gains):
    path, in_db = tmp_path / "gains.csv", 10.0 * np.log10(gains[0] + 1e-12)
    np.savetxt(path, in_db, delimiter=",", header="b0_db,b1_db,b2_db", comments="")
    assert_allclose(gain(load(path), 0), gains[0] + 1e-12)
    assert_allclose(gain(load(path, in_db=True), 0), gains[0] + 1e-12)  # said twice, converted once
    rows = [f"{i},{m},{in_db[i, m]:.17g}" for i, m in np.ndindex(in_db.shape)]
    path.write_text("device,block,channel_gain_db\n" + "\n".join(rows))
    assert_allclose(gain(load(path), 0), gains[0] + 1e-12)
    assert_allclose(read_gains(path), gains[0] + 1e-12)
    np.savetxt(path, in_db, delimiter=",", header="b0_db,b1,b2_db", comments="")
    with pytest.raises(ProblemError, match="in_db"):  # one of them is not said to be
        load(path)


def test_a_long_csv_can_hold_rounds(tmp_path, gains):
    path = tmp_path / "gains.csv"
    rows = [f"{k},{i},{m},{gains[k, i, m]:.17g}" for k, i, m in np.ndindex(gains.shape)]
    path.write_text("round,device,block,channel_gain\n" + "\n".join(reversed(rows)))
    assert_allclose(gain(load(path), 2), gains[2])
    rows = [f"{i},{m},{gains[0, i, m]:.17g}" for i, m in np.ndindex(gains.shape[1:])]
    path.write_text("device,block,channel_gain\n" + "\n".join(rows))
    assert_allclose(gain(load(path), 2), gains[0])
    path.write_text("device,block,channel_gain\n" + "\n".join(rows[:-1]))
    with pytest.raises(ProblemError, match=r"14 rows, but its indices span 5 x 3\. Give every combination"):
        load(path)


def test_decibels_are_converted_when_asked(tmp_path):
    path = save(tmp_path, np.full((5, 3), -90.0))
    assert_allclose(gain(load(path, in_db=True), 0), 1e-9)
    assert load(path, in_db=True).max_gain == pytest.approx(1e-9)
    with pytest.raises(
        ProblemError, match=r"has 1e\+06 dB at index \(0, 0\)\. Gains must lie within 1000 dB"
    ):
        load(save(tmp_path, np.full((5, 3), 1e6)), in_db=True)


def test_rounds_past_the_end_are_refused_or_start_over(tmp_path, gains):
    path = save(tmp_path, gains)
    with pytest.raises(ProblemError, match=r"holds 4 rounds, but round 4 is asked for.*\"cycle\""):
        gain(load(path), 4)
    assert_array_equal(gain(load(path, beyond_last_round="cycle"), 5), gains[1])


@pytest.mark.parametrize("shape", [(5, 4), (4, 3), (3, 5), (4,), (2, 5, 4), (0, 5, 3), (1, 1, 5, 3), ()])
def test_a_wrong_shape_is_named_with_the_right_one(tmp_path, shape):
    with pytest.raises(
        ProblemError, match=r"has shape \(.*\), but the cell has 5 devices and 3 blocks\. Give \(5\)"
    ):
        load(save(tmp_path, np.ones(shape)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-1e-9, r"a negative gain, -1e-09 at index \(2, 1, 0\).*if these are dB, set channel\.in_db"),
        (np.nan, r"has nan at index \(2, 1, 0\)\. Gains must be finite"),
        (np.inf, r"has inf at index \(2, 1, 0\)\. Gains must be finite"),
    ],
)
def test_a_bad_value_is_named_with_its_place(tmp_path, gains, bad, message):
    gains[2, 1, 0] = bad
    with pytest.raises(ProblemError, match=message):
        load(save(tmp_path, gains))


def test_complex_amplitudes_are_refused_with_the_conversion(tmp_path):
    with pytest.raises(ProblemError, match=r"complex amplitudes\. .* save abs\(h\) \*\* 2"):
        load(save(tmp_path, np.ones((5, 3), dtype=complex)))


def test_unreadable_files_are_refused_in_one_line(tmp_path):
    with pytest.raises(ProblemError, match=r"Cannot read the gains file .*none\.npy: No such file"):
        load(tmp_path / "none.npy")
    with pytest.raises(ProblemError, match=r"Cannot read the gains file .*none\.csv: No such file"):
        load(tmp_path / "none.csv")
    with pytest.raises(ProblemError, match=r'of kind "\.mat"\. Save it as \.npy or \.csv'):
        load(tmp_path / "gains.mat")
    text = tmp_path / "text.npy"
    text.write_text("hello")
    with pytest.raises(ProblemError, match=r"not a plain \.npy array"):
        load(text)
    words = tmp_path / "words.npy"
    np.save(words, np.array(["a", "b"]))
    with pytest.raises(ProblemError, match="Save floating-point numbers"):
        load(words)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("1,2,3\n1,2\n")
    with pytest.raises(ProblemError, match=r"has 2 values, not 3 in line 2\. Write one row per device"):
        load(ragged)
    ragged.write_text("# gains\nfirst,2,3\n1,2,3\n4, five,6\n")  # one word makes a header
    with pytest.raises(ProblemError, match=r'has "five" in line 4\. Write one row per device'):
        load(ragged)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(ProblemError, match="is empty"):
        load(empty)


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ProblemError, match=r"not a plain \.npy array"):
        load(path)


def test_a_cell_reads_its_gains_beside_its_toml(tmp_path, gains):
    save(tmp_path, gains)
    toml = tmp_path / "mine.toml"
    toml.write_text('preset = "umi-3.5ghz"\nnum_blocks = 3\n[channel]\nkind = "file"\npath = "gains.npy"\n')
    cell = Cell.build(load_cell_config(str(toml)), num_devices=5, seed=0)
    assert_array_equal(cell.draw(2).channel_gain, gains[2])
    assert cell.position_m is None


def test_zero_gains_are_allowed(tmp_path):
    assert not gain(load(save(tmp_path, np.zeros((5, 3)))), 0).any()
