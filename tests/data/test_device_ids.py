from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedwave.data.device_ids import index_devices
from fedwave.errors import DataError


def indexed(ids) -> tuple[list[int], tuple[str, ...]]:
    indices, names = index_devices(ids, name="mine")
    assert indices.dtype == np.int64
    return indices.tolist(), names


@given(st.lists(st.one_of(st.integers(-(10**6), 10**6), st.text(max_size=3))))
def test_equal_ids_are_one_device_different_ids_two_and_the_empty_ones_nobody(ids):
    texts = [str(one).strip() for one in ids]
    assume(all(len(text.splitlines()) <= 1 for text in texts))
    indices, names = indexed(ids)
    assert [names[index] if index >= 0 else "nobody" for index in indices] == [
        "nobody" if text in ("", "-1") else text for text in texts
    ]
    assert set(indices) - {-1} == set(range(len(names)))


def test_bytes_are_utf_8_and_what_is_not_still_has_a_name():
    assert indexed(np.array(["Zoë".encode(), b"\xff", b"Ann"]))[1] == ("Ann", "Zoë", "\\xff")


def test_numbers_sort_as_numbers_and_text_as_text():
    assert indexed([10, 9, 2, 10]) == ([2, 1, 0, 2], ("2", "9", "10"))
    assert indexed([-3, 5, -20]) == ([1, 2, 0], ("-20", "-3", "5"))
    assert indexed(["b10", "b9", "a"]) == ([1, 2, 0], ("a", "b10", "b9"))
    assert indexed(["10", "9", "007"]) == ([1, 2, 0], ("007", "10", "9"))  # not all are whole numbers
    assert indexed(["1" * 30, "9"]) == ([0, 1], ("1" * 30, "9"))


@pytest.mark.parametrize(
    "ids",
    [
        [3, 20, -1, 3],
        ["3", "20", "", "3"],
        [" 3", "20 ", " ", "3"],
        [3.0, 20.0, float("nan"), 3.0],
        [3, "20", None, np.int32(3)],
        np.array([3, 20, -1, 3], dtype=np.int16),
        np.array([3, 20, np.nan, 3], dtype=np.float32),
        np.array(["3", "20", "", "3"]),
        np.array([b"3", b"20", b"", b"3"]),
        np.array([3, "20", None, np.float64(3)], dtype=object),
    ],
    ids=repr,
)
def test_the_same_split_means_the_same_in_every_way_to_write_it(ids):
    assert indexed(ids) == ([0, 1, -1, 0], ("3", "20"))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            [0.5],
            "mine: device ids must be whole numbers or a line of text, got 0.5 (float). Name the device so.",
        ),
        (["a\nb"], "got 'a\\nb' (str)"),
        ([float("inf")], "got inf (float)"),
        ([True], "got True (bool)"),
        ([("a", 1)], "got ('a', 1) (tuple)"),
        (np.zeros((2, 2)), "mine: device ids must be one per sample, got an array of shape (2, 2)"),
        (np.array(3), "got an array of shape ()"),
    ],
)
def test_ids_that_are_no_ids_are_refused(ids, message):
    with pytest.raises(DataError, match=re.escape(message)):
        indexed(ids)
