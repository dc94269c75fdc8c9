"""Parts by name: found in their dict or in a module, asked for their options, called with what they name."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from fedwave.errors import ConfigError, ModelError
from fedwave.parts import PartKind, imported, is_import_name, signature_of

if TYPE_CHECKING:
    from decimal import Decimal


def plain(first: int, /, second: int, third: int = 3, *rest: int, fourth: int, **others: Any) -> Any:
    return first, second, third, rest, fourth, others


@dataclass(frozen=True)
class Sized:
    size: int
    colour: str = "red"


def typed_elsewhere(share: Decimal) -> Decimal:
    return share


KIND = PartKind(
    "toy",
    {"plain": plain, "sized": Sized, "big": partial(Sized, size=9), "elsewhere": typed_elsewhere},
    ("second",),
)


def test_options_are_what_a_part_takes_by_keyword_without_what_is_filled_in_or_bound() -> None:
    assert KIND.options("plain") == ("third", "fourth")
    assert KIND.options("sized") == ("size", "colour")
    assert KIND.options("big") == ("colour",)
    assert PartKind("toy", {"sized": Sized}, num_positional=1).options("sized") == ("colour",)
    assert PartKind("toy", {"sized": [Sized]}, function_of=lambda entry: entry[0]).options("sized") == (
        "size",
        "colour",
    )


def test_types_are_read_where_they_can_be() -> None:
    assert KIND.parameters(Sized)["size"].annotation is int
    assert KIND.parameters(typed_elsewhere)["share"].annotation == "Decimal"

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, share: int) -> None:
            raise NotImplementedError

    assert list(signature_of(Unhashable()).parameters) == ["share"]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        KIND.find("size", key="toys.first")
    expected = 'toys.first: there is no toy "size". Did you mean "sized"? Your own is package.module:Name.'
    assert str(caught.value) == expected
    with pytest.raises(ModelError, match="^There is no toy 3. Choose one of: a."):
        PartKind("toy", {"a": 1}, error=ModelError).find(3)


@pytest.mark.parametrize(
    ("name", "option", "hint"),
    [
        ("sized", "color", 'Did you mean "colour"?'),
        ("sized", "fourth", 'It is an option of plain, not of "sized". Leave it out.'),
        ("sized", "xyz", "Choose one of: size, colour."),
        ("sized", "second", "It is filled in for every such part. Leave it out."),
        ("plain", "second", "It is filled in for every such part. Leave it out."),
        ("nothing", "xyz", '"nothing" has no options. Leave it out.'),
    ],
)
def test_an_option_that_a_part_does_not_have_is_refused(name: str, option: str, hint: str) -> None:
    kind = PartKind("toy", {**KIND.registry, "nothing": lambda: None}, ("second",))
    with pytest.raises(ConfigError) as caught:
        kind.require_options(name, [option])
    assert str(caught.value) == f'toy "{name}" has no option {option!r}. {hint}'


def test_options_that_a_part_has_or_takes_by_any_name_are_fine() -> None:
    KIND.require_options("sized", ["size", "colour"])
    KIND.require_options("plain", ["third", "whatever"])


def test_a_part_is_called_with_its_options_and_with_the_offers_that_it_names() -> None:
    assert KIND.call(Sized, {"colour": "blue"}, size=3, second=4) == Sized(3, "blue")
    assert KIND.call(partial(Sized, size=9), {}, second=4) == Sized(9)
    assert KIND.call(lambda **anything: anything, {"a": 1}, second=4) == {"a": 1}


def test_a_part_of_the_users_own_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_parts.py").write_text("def mine(size=3): return size\n")
    (tmp_path / "my_broken.py").write_text("raise SystemExit('no\\nway')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert KIND.options("my_parts:mine") == ("size",)
    assert KIND.call(KIND.find("my_parts:mine"), {"size": 5}, second=1) == 5
    for name, problem in {
        "my_parts:yours": '"my_parts" has no "yours". Check the spelling',
        "absent:mine": "cannot import \"absent\" (ModuleNotFoundError: No module named 'absent')",
        "my_broken:x": 'cannot import "my_broken" (SystemExit: no way)',
        ":x": 'cannot import ""',
    }.items():
        with pytest.raises(ModelError) as caught:
            imported(name, key="model.kind", error=ModelError)
        assert str(caught.value).startswith(f'model.kind "{name}": {problem}')
    sys.modules.pop("my_parts")


def test_only_a_text_with_a_colon_names_a_module() -> None:
    assert is_import_name("a.b:C")
    assert not any(map(is_import_name, ("a.b", 3, None)))


class Rolls(Protocol):
    @property
    def wheels(self) -> int: ...

    def roll(self) -> None: ...


def test_what_a_part_makes_has_what_every_such_part_has() -> None:
    kind = PartKind("toy", {}, protocol=Rolls)
    kind.require_members(SimpleNamespace(wheels=4, roll=print, colour="red"), "car", key="toys.first")
    with pytest.raises(ConfigError) as caught:
        kind.require_members(SimpleNamespace(roll=print), "lab:sledge", key="toys.first")
    assert str(caught.value) == (
        'toys.first "lab:sledge" has no wheels. A toy has wheels, roll; docs/extending.md has one to copy.'
    )
    KIND.require_members(object(), "anything", key="toys.first")
