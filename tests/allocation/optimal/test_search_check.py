"""The program that a new library of the search must pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedwave.allocation.optimal import search_check
from fedwave.allocation.optimal.compiled_search import SEARCH
from fedwave.native_library import FLAGS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: Python searches")


def built(folder: Path, text: str) -> str:
    (folder / "made.c").write_text(text)
    target = str(folder / "made.so")
    subprocess.run(["cc", *FLAGS, "-o", target, str(folder / "made.c"), *SEARCH.links], check=True)
    return target


def test_the_source_passes(tmp_path: Path) -> None:
    library = built(tmp_path, SEARCH.file.read_text())
    command = [sys.executable, "-I", "-S", search_check.__file__, library]
    printed = subprocess.run(command, check=True, capture_output=True).stdout
    assert printed.decode() == search_check.RIGHT_DIGEST


def test_the_compiler_has_nothing_to_say(tmp_path: Path) -> None:
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    target = str(tmp_path / "strict.so")
    subprocess.run(["cc", *FLAGS, *strict, "-o", target, str(SEARCH.file), *SEARCH.links], check=True)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("cost[k] * factor - worth[k]", "cost[k] * factor + worth[k]"),
        ("u[row] += reached", "u[row] -= reached"),
        ("height - slope * rise", "height + slope * rise"),
        ("sum_contribution[n] - (", "sum_contribution[n] + ("),
    ],
)
def test_a_wrong_sign_does_not(tmp_path: Path, right: str, wrong: str) -> None:
    text = SEARCH.file.read_text()
    assert right in text
    library = search_check.load(built(tmp_path, text.replace(right, wrong)))
    assert search_check.digest_of(search_check.results(library)) != search_check.RIGHT_DIGEST


def test_a_library_without_the_search_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it has no function fedwave_search"):
        search_check.load(built(tmp_path, "int nothing;"))
