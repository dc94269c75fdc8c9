"""Public names: loaded at first use, from the modules that define them, and all of them listed."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedwave.lazy import homes

PACKAGES = ["fedwave", "fedwave.experiments", *(["fedwave.flower"] if find_spec("flwr") else [])]


@pytest.mark.parametrize("name", PACKAGES)
def test_the_names_of_a_package_are_those_of_their_modules(name: str) -> None:
    package = import_module(name)
    found = homes(name)
    assert set(package.__all__) - {"__version__"} == set(found)
    assert dir(package) == sorted(package.__all__)
    for public, home in found.items():
        assert getattr(package, public) is getattr(sys.modules[home], public)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        package.absent  # noqa: B018 - the look-up is what is tested


def test_a_name_is_loaded_when_it_is_used_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from fedwave.lazy import lazy_names\n"
        "if TYPE_CHECKING:\n    from shelf.heavy import book, lamp\n    from shelf.light import cup\n"
        "if not TYPE_CHECKING:\n    from shelf.light import spoon\n"
        "__all__ = ['book', 'cup', 'lamp']\n"
        "__getattr__, __dir__ = lazy_names(__name__)\n"
    )
    (tmp_path / "shelf" / "heavy.py").write_text("book, lamp = 1, 2\n")
    (tmp_path / "shelf" / "light.py").write_text("cup, spoon = 3, 4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        shelf = import_module("shelf")
        assert homes("shelf") == {"book": "shelf.heavy", "lamp": "shelf.heavy", "cup": "shelf.light"}
        assert shelf.cup == 3
        assert "shelf.heavy" not in sys.modules
        assert shelf.lamp == 2
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "shelf"]:
            del sys.modules[name]
