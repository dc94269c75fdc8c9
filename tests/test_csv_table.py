"""One reader of CSV for all: what it returns, and what it says about files that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedwave.csv_table import CsvTable, read_columns, read_rows, read_table
from fedwave.errors import DataError, ProblemError


def table(tmp_path: Path, content: str, *, has_comments: bool = False) -> CsvTable:
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode())
    return read_table(path, what="small table", error=DataError, fix="Mend it.", has_comments=has_comments)


def test_a_table_has_a_header_columns_and_the_line_of_each_row(tmp_path: Path) -> None:
    found = table(tmp_path, '\ufeffname , age\r\n ann,3\r\n\r\n"bob\nthe, second",4\r\n')
    assert found.header == ["name", "age"]
    assert found.column("name") == ["ann", "bob\nthe, second"]
    assert found.column("age") == ["3", "4"]
    assert found.lines == [2, 5]  # a row that spans two lines ends on the second


def test_a_blank_line_is_an_empty_cell_of_a_single_column(tmp_path: Path) -> None:
    assert table(tmp_path, "id\na\n\nb\n").rows == [["a"], [""], ["b"]]
    assert table(tmp_path, "id,x\na,1\n\nb,2\n").rows == [["a", "1"], ["b", "2"]]


def test_comments_and_blank_lines_are_left_out_where_there_may_be_some(tmp_path: Path) -> None:
    content = "# made by hand\nid\na\n\n  # half way\n \nb\n"
    found = table(tmp_path, content, has_comments=True)
    assert (found.header, found.rows, found.lines) == (["id"], [["a"], ["b"]], [3, 7])
    assert table(tmp_path, "id\n#a\n").rows == [["#a"]]
    assert table(tmp_path, "id,x\n,1\n", has_comments=True).rows == [["", "1"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty. Its first row must name the columns"),
        ("\n", "is empty"),
        ("a,b,a\n1,2,3\n", 'has two columns "a"'),
        ("a,b\n1,2\n3\n", "has 1 values in line 3, but 2 columns"),
        ("a,b\n1,2,3\n", "has 3 values in line 2, but 2 columns"),
        ('a\n1\n"2', "as CSV after line 2: unexpected end of data. Mend it."),
    ],
)
def test_what_is_wrong_with_a_table_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        table(tmp_path, content)
    assert message in str(caught.value)
    assert "small table" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_column_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'table\.csv has no column "nam". Did you mean "name"'):
        table(tmp_path, "name,age\nann,3\n").column("nam")


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"a\n" * 9000 + b"\xff\n")
    for name, reason in (
        ("absent.csv", "No such file"),
        (".", "Is a directory"),
        ("latin.csv", "no text in UTF-8"),
        ("zero\0byte", "no text"),
    ):
        with pytest.raises(DataError, match=f"Cannot read the rows .*{reason}.* Mend it"):
            read_rows(tmp_path / name, what="rows", error=DataError, fix="Mend it.")


def test_rows_without_a_header_come_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1, 2\n\n3\n")
    rows, lines = read_rows(tmp_path / "rows.csv", what="rows", error=DataError, fix="Mend it.")
    assert (rows, lines) == ([["1", " 2"], [], ["3"]], [1, 2, 3])


def columns(tmp_path: Path, content: str, **options: Any) -> dict[str, list[float]]:
    path = tmp_path / "table.csv"
    path.write_text(content)
    found = read_columns(path, known=("x", "y"), what="small", **options)
    return {name: values.tolist() for name, values in found.items()}


def test_columns_hold_a_number_for_each_device_in_the_order_of_devices(tmp_path: Path) -> None:
    assert columns(tmp_path, "# made by hand\nx,y\n1,2e3\n3,4\n") == {"x": [1.0, 3.0], "y": [2000.0, 4.0]}
    assert columns(tmp_path, "x,device\n1,2\n2,0\n3,1\n", num_devices=3) == {"x": [2.0, 3.0, 1.0]}


def test_a_column_may_be_in_decibels_or_milliwatts(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    path.write_text("send_dbm,channel_gain_db\n30,-90\n0,-10\n")
    found = read_columns(path, known=("send_w", "channel_gain"), what="small")
    assert found["send_w"] == pytest.approx([1.0, 1e-3])
    assert found["channel_gain"] == pytest.approx([1e-9, 0.1])
    path.write_text("send_mw\n250\n")
    assert read_columns(path, known=("send_w",), what="small")["send_w"].tolist() == [0.25]
    path.write_text("send_w,send_dbm\n1,30\n")
    with pytest.raises(ProblemError, match=r"gives send_w twice \(as send_dbm, too\)"):
        read_columns(path, known=("send_w",), what="small")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,device\n1,0\n2,0\n", "device 0 twice, in lines 2 and 3"),
        ("x,device\n1,0\n2,2\n", 'unknown device "2" in line 3'),
        ("x,device\n1,0\n2,-1\n", 'unknown device "-1" in line 3'),
        ("z\n1\n2\n", 'unknown column "z"'),
        ("y\n1\n2\n", 'no column "x"'),
        ("x\n1\nb\n", '"b" for device 1 in line 3'),
        ("x\n1\n", "has 1 devices, but the cell has 2"),
    ],
)
def test_what_is_wrong_with_a_column_is_said_with_its_line(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(ProblemError, match=message):
        columns(tmp_path, content, required=("x",), num_devices=2)
