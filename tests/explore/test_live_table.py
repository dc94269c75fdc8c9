from __future__ import annotations

from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.explore.live_table import LiveTable
from fedwave.runs.tables import read_table

HEADER = "round,train_loss,selected_devices,note\n"


def test_a_growing_table_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    table = LiveTable(file)
    table.refresh()
    assert table.num_rows == 0
    written = HEADER + '0,1.5,3 4,"a, b"\n1,,,\n2,0.25,7,end\n'
    seen = []
    for end in range(len(written) + 1):  # as if the disk showed one byte after the other
        file.write_bytes(written[:end].encode()) if end == 0 else _grow(file, written[:end].encode())
        table.refresh()
        seen.append(table.num_rows)
    assert sorted(seen) == seen
    assert set(seen) == {0, 1, 2, 3}
    whole = read_table(file)
    assert table.columns["round"].tolist() == whole["round"].tolist() == [0, 1, 2]
    assert table.columns["train_loss"].tolist()[::2] == [1.5, 0.25]
    assert [one.tolist() for one in table.columns["selected_devices"]] == [[3, 4], [], [7]]
    assert table.columns["note"] == whole["note"] == ["a, b", "", "end"]


def _grow(file: Path, content: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(content[file.stat().st_size :])


def test_a_table_that_was_cut_or_replaced_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    file.write_text(HEADER + "0,1,,\n1,2,,\n")
    table = LiveTable(file)
    table.refresh()
    other = tmp_path / "other"
    other.write_text(HEADER + "0,9,,\n1,8,,\n2,7,,\n")
    other.replace(file)  # longer, but not the same file
    table.refresh()
    assert table.columns["train_loss"].tolist() == [9.0, 8.0, 7.0]
    file.write_text(HEADER + "0,5,,\n")
    table.refresh()
    assert table.columns["train_loss"].tolist() == [5.0]
    file.unlink()
    table.refresh()
    assert table.num_rows == 0


def test_a_broken_table_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    file.write_text(HEADER + "0,many,,\n")
    with pytest.raises(RunError, match="not as the run wrote it"):
        LiveTable(file).refresh()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"train_loss\n0\n", 'it has no column "round"'),
        (b"round,train_loss\n0,1\n1\n", "line 3 has 1 of 2 values"),
        (b"\0" * 99 + b"\n", "it is no text in UTF-8"),
        ("round\n0\n".encode("utf-16"), "it is no text in UTF-8"),
        (b'round,note\n0,"x\n', "unexpected end of data"),
        (b"round,train_loss\n1,1\n0,1\n", "its rounds are not in order"),
    ],
)
def test_every_kind_of_damage_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "rounds.csv").write_bytes(content)
    with pytest.raises(RunError, match=said):
        LiveTable(tmp_path / "rounds.csv").refresh()


def test_what_was_added_is_held_against_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    file.write_bytes(b"\xef\xbb\xbf" + (HEADER + "0,1,,\n1,2,,\n").encode())
    table = LiveTable(file)
    table.refresh()
    assert table.columns["round"].tolist() == [0, 1]
    whole = file.read_bytes()
    _grow(file, whole + b"1,3,,\n")
    for _ in range(2):  # it is refused again, not taken for read
        with pytest.raises(RunError, match="its rounds are not in order"):
            table.refresh()
    file.write_bytes(whole + b"2,3,4,\n3\n")
    with pytest.raises(RunError, match="line 5 has 1 of 4 values"):
        table.refresh()


def test_a_round_of_many_devices_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    file.write_text(HEADER + "0,1," + " ".join(map(str, range(30_000))) + ",\n")
    table = LiveTable(file)
    table.refresh()
    assert table.columns["selected_devices"][0].tolist() == list(range(30_000))
