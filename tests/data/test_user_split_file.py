from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.data import read_split, user_split
from fedwave.errors import DataError

TABLE = """path,writer,test,shot
a.png,zoe,1,yes
b.png,ann,0,no
c.png,zoe,TRUE,False
d.png,,,
e.png," ann ",no,1
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "split.csv"
    path.write_text(TABLE)
    return path


def written(folder: Path, content: str | bytes, name: str = "split.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_of_a_table_are_the_split(table):
    split = read_split(
        table, num_samples=5, device_column="writer", heldout_column="test", support_column="shot"
    )
    assert split.device_names == ("ann", "zoe")
    assert split.device_of_sample.tolist() == [1, 0, 1, -1, 0]
    assert split.is_heldout.tolist() == [False, True]
    assert split.is_support.tolist() == [True, False, False, False, True]


def test_only_the_columns_asked_for_are_read(table):
    split = read_split(str(table), num_samples=5, device_column="writer")
    assert split.is_heldout is None
    assert split.is_support is None


def test_a_file_in_the_home_folder_is_found(table, monkeypatch):
    monkeypatch.setenv("HOME", str(table.parent))
    assert read_split("~/split.csv", num_samples=5, device_column="writer").num_devices == 2


@pytest.mark.parametrize(
    "content",
    [
        "device\n3\n20\n\n3\n",
        "\ufeffdevice\r\n3\r\n20\r\n\r\n3\r\n",
        'device\n"3"\n20\n""\n3',
        "device,other\n3,\n20,x\n,\n3,y\n\n",
        " device \n 3\n20 \n-1\n3\n",
        'name,device\n"a, b",3\n"c\nd",20\ne,\nf,3\n',
    ],
    ids=["blank line", "byte-order mark", "quotes", "blank last line", "spaces", "quoted commas"],
)
def test_ways_to_write_the_same_split(content, tmp_path):
    split = read_split(written(tmp_path, content), num_samples=4)
    assert split.fingerprint() == user_split([3, 20, None, 3]).fingerprint()


@given(st.lists(st.text(st.characters(exclude_categories=["C"]), max_size=4), min_size=1, max_size=12))
def test_a_written_table_is_read_back(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("tables") / "split.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["row", "device"], *enumerate([*ids, "last"])])
    found = read_split(path, num_samples=len(ids) + 1)
    expected = user_split([*ids, "last"])
    assert found.device_names == expected.device_names
    assert found.device_of_sample.tolist() == expected.device_of_sample.tolist()


def test_arrays_of_a_file_are_the_split(tmp_path):
    path = tmp_path / "split.NPZ"
    with path.open("wb") as stream:
        np.savez(
            stream,
            user=["zoe", "ann", "zoe", ""],
            test=[True, False, True, False],
            shot=[1, 0, 0, 1],
            other=np.array([{}, None], dtype=object),  # not asked for: not unpickled
        )
    split = read_split(
        path, num_samples=4, device_column="user", heldout_column="test", support_column="shot"
    )
    expected = user_split(
        ["zoe", "ann", "zoe", ""], is_heldout=["zoe"], is_support=[True, False, False, True]
    )
    assert split.fingerprint() == expected.fingerprint()
    assert read_split(path, num_samples=4, device_column="user").is_heldout is None


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "is empty. Its first row must name the columns."),
        ("device\n", {}, "has 0 rows of device, but the dataset has 3 samples. Give one row per sample"),
        ("device\na\nb\n", {}, "has 2 rows of device, but the dataset has 3 samples"),
        ("device\na\nb\nc\nd\n", {}, "has 4 rows of device, but the dataset has 3 samples"),
        ("device,x\na,1\n\nb,2\n", {}, "has 2 rows of device, but the dataset has 3 samples"),
        ("device,device\na,b\n", {}, 'has two columns "device". Keep one'),
        ("x,device,x\n1,a,2\n", {}, 'has two columns "x"'),
        ("devices\na\nb\nc\n", {}, 'has no column "device". Did you mean "devices"?'),
        ("a,b\n1,2\n", {}, 'has no column "device". Choose one of: a, b.'),
        ("device\na\nb\nc\n", {"heldout_column": "test"}, 'has no column "test"'),
        ("device\na\nb\nc\n", {"support_column": "shot"}, 'has no column "shot"'),
        ("device,x\na,1\nb\nc,2\n", {}, "has 1 values in line 3, but 2 columns. Fill every column"),
        ("device\na\nb,2\nc\n", {}, "has 2 values in line 3, but 1 columns"),
        (
            'device\na\n"b\nc\n',
            {},
            "as CSV after line 2: unexpected end of data. Give the path of a CSV file",
        ),
        (b"device\n\xff\xfe\nb\nc\n", {}, "as CSV after line 1: no text in UTF-8"),
        (
            'device\na\n"b\nc"\nd\n',
            {},
            "split.csv: device ids must be whole numbers or a line of text, got 'b\\nc'",
        ),
        ("device\n\n\n\n", {}, "no sample belongs to a device"),
        (
            "device,test\na,1\nb,0\na,0\n",
            {"heldout_column": "test"},
            "split.csv: device a is held out in 1 of its 2 samples",
        ),
        (
            "device,test\na,1\nb,maybe\na,1\n",
            {"heldout_column": "test"},
            'has test = "maybe" for sample 1 (from 0). Write 1 or 0, true or false.',
        ),
        (
            "device,shot\na,1\nb,\na,1\n",
            {"support_column": "shot"},
            'has shot = "" for sample 1 (from 0)',
        ),
        (
            "device,shot\na,1\n,what\na,0\n",
            {"support_column": "shot"},
            'has shot = "what" for sample 1 (from 0)',
        ),
        ("device,test\na,1\nb,1\na,1\n", {"heldout_column": "test"}, "all 2 devices are held out"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(content, options, message, tmp_path):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_split(written(tmp_path, content), num_samples=3, **options)
    assert "\n" not in str(caught.value)


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"Cannot read the split file .*none\.csv: No such file"):
        read_split(tmp_path / "none.csv", num_samples=3)
    with pytest.raises(DataError, match=r"none\.npz does not exist"):
        read_split(tmp_path / "none.npz", num_samples=3)
    with pytest.raises(DataError, match=r"Cannot read the split file .*: Is a directory"):
        read_split(tmp_path, num_samples=3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"writer": [1, 2, 3]},
            "lacks device, got: writer. Save plain arrays with: np.savez(file, device=ids)",
        ),
        ({"device": [1, 2]}, "has 2 rows of device, but the dataset has 3 samples"),
        (
            {"device": [[1], [2], [3]]},
            "device must hold one value per sample, got shape (3, 1). Use one column.",
        ),
        ({"device": 1}, "device must hold one value per sample, got shape ()"),
        (
            {"device": np.array(["a", None, "b"], dtype=object)},
            "Object arrays cannot be loaded when allow_pickle",
        ),
        ({"device": [0.5, 1, 2]}, "device ids must be whole numbers or a line of text, got 0.5"),
        ({"device": [1, 2, 3], "test": [0, 1]}, "has 2 rows of test, but the dataset has 3 samples"),
        (
            {"device": [1, 2, 3], "test": [0, 1, 2]},
            "split.npz: test must be True or False for each sample, got int64",
        ),
        ({"device": [1, 1, 3], "test": [0, 1, 1]}, "split.npz: device 1 is held out in 1 of its 2 samples"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, message, tmp_path):
    path = tmp_path / "split.npz"
    np.savez(path, **arrays)
    options = {"heldout_column": "test"} if "test" in arrays else {}
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_split(path, num_samples=3, **options)
    assert "\n" not in str(caught.value)
