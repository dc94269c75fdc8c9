"""A table's checksum is that of the bytes which a checkpoint counts on, however they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.table_digest import TableDigest

ROWS = [b"round,loss\n", b"0,1.5\n", b"1,0.25\n"]


def digest_of(*rows: bytes) -> TableDigest:
    digest = TableDigest()
    for row in rows:
        digest.add(row)
    return digest


def test_rows_that_are_added_one_by_one_have_the_checksum_of_all(tmp_path: Path) -> None:
    whole = b"".join(ROWS)
    assert digest_of(*ROWS).to_json() == (len(whole), hashlib.sha256(whole).hexdigest())
    (tmp_path / "t.csv").write_bytes(whole)
    read = TableDigest.of_file(tmp_path / "t.csv", digest_of(*ROWS[:2]).to_json(), fix="Restore it.")
    read.add(ROWS[2])
    assert read.to_json() == digest_of(*ROWS).to_json()


@pytest.mark.parametrize("after", [b"", b"2", b"2,7\n", b"\xff\0"])
def test_what_follows_may_be_anything_and_is_cut_off(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"".join(ROWS) + after)
    inode = path.stat().st_ino
    TableDigest.of_file(path, digest_of(*ROWS).to_json(), fix="Restore it.").cut(path)
    assert path.read_bytes() == b"".join(ROWS)
    assert (path.stat().st_ino == inode) == (after == b"")  # who reads it sees that it is another file


@pytest.mark.parametrize("at", range(len(b"".join(ROWS))))
def test_a_flipped_bit_anywhere_is_refused(tmp_path: Path, at: int) -> None:
    content = bytearray(b"".join(ROWS))
    content[at] ^= 1
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(RunError, match=r"is not as the run wrote it \(its first 24 bytes were changed"):
        TableDigest.of_file(tmp_path / "t.csv", digest_of(*ROWS).to_json(), fix="Restore it.")


def test_a_table_that_is_cut_off_or_gone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"".join(ROWS)[:-1])
    with pytest.raises(RunError, match=r"it has 23 of the 24 bytes that the checkpoint counts on\)"):
        TableDigest.of_file(path, digest_of(*ROWS).to_json(), fix="Restore it.")
    path.unlink()
    with pytest.raises(RunError, match="is gone, and the checkpoint cannot rebuild it. Restore it."):
        TableDigest.of_file(path, digest_of(*ROWS).to_json(), fix="Restore it.")
    path.mkdir()
    with pytest.raises(RunError, match="cannot read .*: Is a directory. Restore it."):
        TableDigest.of_file(path, digest_of(*ROWS).to_json(), fix="Restore it.")
