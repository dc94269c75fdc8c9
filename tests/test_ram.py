"""What cannot fit is refused before it is made, in units that people read."""

from __future__ import annotations

import os

import pytest

from fedwave.errors import TooLargeError
from fedwave.ram import in_words, memory_limit, require_memory


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (1023, "1.02e+03 bytes"),
        (1024, "1 KiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 60, "1 EiB"),
        (1 << 70, "1.02e+03 EiB"),
        (1 << 2000, "inf EiB"),
    ],
)
def test_bytes_have_the_unit_below_a_thousand(num_bytes: int, words: str) -> None:
    assert in_words(num_bytes) == words


def test_what_is_just_enough_is_allowed_and_a_byte_more_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedwave.ram.memory_limit", lambda: 1 << 30)
    require_memory(1 << 30, what="The table", fix="Use fewer rows.")
    with pytest.raises(TooLargeError, match=r"The table .* 2 GiB .* 1 GiB\. Use fewer rows\."):
        require_memory(1 << 31, what="The table", fix="Use fewer rows.")


def test_the_limit_of_the_process_counts_if_it_is_the_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for allowed, expected in ((resource.RLIM_INFINITY, machine), (1 << 20, 1 << 20), (machine + 1, machine)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert memory_limit() == expected
