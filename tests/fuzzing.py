"""Damaged input for property-based tests, and how much of it is tried.

The default suite tries few examples, always the same. By hand, ``FEDWAVE_FUZZ_EXAMPLES=20000 python -m pytest
tests/misuse/test_fuzz.py tests/misuse/test_fuzz_runs.py`` tries so many of each, and others every time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from hypothesis import settings
from hypothesis import strategies as st

from fedwave.errors import FedwaveError

ASKED = os.environ.get("FEDWAVE_FUZZ_EXAMPLES")


def tries(usual: int) -> settings:
    """The usual number of examples, or as many as are asked for."""
    return settings(max_examples=int(ASKED or usual), derandomize=ASKED is None)


def answers(call: Callable[[], object]) -> bool:
    """Call it: it works, or says what is wrong in one line. Return whether it worked."""
    said = ""
    try:
        call()
    except FedwaveError as error:
        said = str(error)
    assert "\n" not in said
    return not said


def mutated(text: bytes) -> st.SearchStrategy[bytes]:
    """The text with a few cuts, copies and strange bytes."""
    strange = st.sampled_from(
        [bytes([byte]) for byte in b"\xff\0\n,\"=[]#;\r '"]
        + [
            b"1e999",
            b"-1",
            b"nan",
            b"9" * 40,
            b"\xef\xbb\xbf",
            b"true",
            b"{}",
            b"0x" + b"f" * 30,
            b"1979-05-27",
        ]
    )
    edit = st.tuples(st.integers(0, len(text)), st.integers(0, 12), strange | st.binary(max_size=4))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        content = text
        for where, length, new in edits:
            content = content[:where] + new + content[where + length :]
        return content

    return st.lists(edit, min_size=1, max_size=4).map(apply)


def damaged(content: bytes, others: Sequence[bytes]) -> st.SearchStrategy[bytes | None]:
    """A file's content, edited, cut off, in another order or coding, or another file's; None: it is gone."""
    lines = content.splitlines(keepends=True)
    columns = st.integers(0, max(lines[0].count(b",") if lines else 0, 1))
    return st.one_of(
        mutated(content),
        st.integers(0, len(content)).map(lambda end: content[:end]),
        st.integers(0, len(content)).map(lambda end: content[:end] + bytes(len(content) - end)),
        st.tuples(st.integers(0, max(len(lines) - 1, 0)), st.integers(0, max(len(lines) - 1, 0))).map(
            lambda both: _swapped(lines, *both)
        ),
        columns.map(lambda column: _without_column(lines, column)),
        st.sampled_from([b"\xef\xbb\xbf" + content, content.decode("latin1").encode("utf-16")]),
        st.sampled_from([None, b"", *others]),
    )


def flipped(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with one bit flipped."""

    def flip(bit: int) -> bytes:
        damage = bytearray(content)
        damage[bit // 8] ^= 1 << (bit % 8)
        return bytes(damage)

    return st.integers(0, 8 * len(content) - 1).map(flip)


def _swapped(lines: list[bytes], one: int, other: int) -> bytes:
    lines = list(lines)
    if lines:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _without_column(lines: list[bytes], column: int) -> bytes:
    rows = [line.rstrip(b"\n").split(b",") for line in lines]
    return b"".join(b",".join(row[:column] + row[column + 1 :]) + b"\n" for row in rows)
