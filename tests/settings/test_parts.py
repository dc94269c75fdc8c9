"""A part in settings: a name or a table, checked by the part's own signature, dumped as it was given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from fedwave.errors import ConfigError
from fedwave.settings import validate
from tests.settings.kitchen import Course, Electric, Fry, Gas, Kitchen, MethodPart, Recipe, StovePart

MODULE = """
from __future__ import annotations
from typing import TYPE_CHECKING
from tests.settings.kitchen import StovePart
if TYPE_CHECKING:
    from decimal import Decimal

def steam(num_cooks, *, minutes: int, pots: set[str] = frozenset(), heat: Decimal = 1):
    return num_cooks, minutes, pots, heat

def smoke(wood="oak", *, glow: float = 1.0):
    return wood, glow

class Solar(StovePart, extra="forbid"):
    mirrors: int
"""


@pytest.fixture(autouse=True)
def my_kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's own."""
    (tmp_path / "my_kitchen.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_kitchen", None)


def method(given: Any) -> MethodPart:
    return validate(Recipe, {"method": given}, root="recipe").method


def refusal(given: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        method(given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_name_or_a_table_is_a_part() -> None:
    assert (method("boil").kind, method("boil").options) == ("boil", {})
    part = method({"kind": "fry", "fat": "oil"})
    assert (part.kind, part.options) == ("fry", {"fat": "oil"})
    assert method({}) == MethodPart()  # the default kind
    assert method({"kind": "boil", "minutes": None}) == method("boil")  # None is not given
    assert method(part) is part
    assert method("by-ear").kind == "by-ear"  # no part's name, but a word that may stand there


def test_a_part_that_is_a_section_is_read_as_that_section() -> None:
    kitchen = validate(Kitchen, {"stove": "gas"})
    assert kitchen.stove == Gas()
    assert validate(Kitchen, {"stove": {"kind": "electric", "power_w": 3}}).stove == Electric(power_w=3.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "fry", "fatt": 1}, 'unknown key "recipe.method.fatt". Did you mean "fat"? (1 more problem'),
        (
            {"kind": "boil", "fat": 1},
            'unknown key "recipe.method.fat". It is an option of fry, not of "boil".',
        ),
        ({"kind": "stir", "fat": 1}, 'unknown key "recipe.method.fat". It is an option of fry'),
        ({"kind": "deep-fry", "fat": "oil"}, 'unknown key "recipe.method.fat". It is an option of fry'),
        ({"kind": "stir", "xyz": 1}, 'unknown key "recipe.method.xyz". "stir" has no options. Leave it out.'),
        ({"kind": "fry", "num_cooks": 1}, 'unknown key "recipe.method.num_cooks". It is filled in'),
        ({"kind": "fry"}, "recipe.method.fat is missing. Set it"),
        ({"kind": "boil", "minutes": 2.0}, "recipe.method.minutes must be a valid integer, got 2.0"),
        ({"kind": "boil", "minutes": True}, "recipe.method.minutes must be a valid integer, got True"),
        ({"kind": "boil", "lid": "yes"}, "recipe.method.lid must be a valid boolean, got 'yes'"),
        ({"kind": "fry", "fat": "\udcff"}, "recipe.method.fat must be UTF-8"),
        ({"kind": "a:b", "fat": ["\udcff"]}, "recipe.method.fat must be UTF-8"),
        ({"kind": "a:b", "heat": float("nan")}, "recipe.method.heat must be finite, got nan"),
        ({"kind": "a:b", "heat": {"low": [float("inf")]}}, "recipe.method.heat must be finite, got inf"),
        ({"kind": "a:b", "heat": [None]}, "recipe.method.heat must be finite, got None"),
        ({"kind": "simmer"}, 'recipe.method: there is no method "simmer". '),
    ],
)
def test_another_name_or_type_is_one_line(given: dict[str, Any], message: str) -> None:
    assert refusal(given).startswith(message)


def test_what_toml_cannot_write_is_made_of_what_it_can(tmp_path: Path) -> None:
    part = validate(Kitchen, {"stove": {"kind": "fire", "wood": ["elm", "ash"], "log": str(tmp_path)}}).stove
    assert part.options == {"wood": ["elm", "ash"], "log": str(tmp_path)}
    assert part.checked_options("stove") == {"wood": ("elm", "ash"), "log": tmp_path}
    assert part.create("stove", num_cooks=2) == f"2 around elm, ash on {tmp_path}"
    with pytest.raises(ConfigError, match="^stove.log: a file's name must not be empty"):
        validate(Kitchen, {"stove": {"kind": "fire", "log": "a\0b"}})


def test_a_dump_for_json_holds_plain_values_alone(tmp_path: Path) -> None:
    kitchen = Kitchen(stove=StovePart.model_validate({"kind": "fire", "log": tmp_path}))
    assert kitchen.model_dump(mode="json")["stove"] == {"kind": "fire", "log": str(tmp_path)}
    assert kitchen.model_dump()["stove"]["log"] == tmp_path


def test_a_part_is_created_with_its_options_and_what_is_filled_in() -> None:
    assert method({"kind": "fry", "fat": "oil"}).create("m", num_cooks=3, unwanted=1) == Fry(3, "oil")
    assert method("deep-fry").create("m", num_cooks=1) == Fry(1, "lard")
    assert Gas().create("stove", num_cooks=1) == Gas()
    assert Electric(power_w=2.0).create("stove", num_cooks=4, other=1) == "2 W for 4"


def test_a_part_of_the_users_own_is_read_without_its_module_and_checked_when_it_is_created() -> None:
    method({"kind": "no.such.module:Part", "any": [1]})
    part = method({"kind": "my_kitchen:steam", "minutes": 3, "pots": ["a"], "heat": "high"})
    assert "my_kitchen" not in sys.modules
    assert part.create("recipe.method", num_cooks=2) == (
        2,
        3,
        {"a"},
        "high",
    )  # no type is known for heat here
    for given, message in (
        ({"minuts": 3}, 'unknown key "recipe.method.minuts". Did you mean "minutes"? (1 more problem'),
        ({"minutes": "3"}, "recipe.method.minutes must be a valid integer, got '3'"),
        ({}, "recipe.method.minutes is missing"),
    ):
        with pytest.raises(ConfigError) as caught:
            method({"kind": "my_kitchen:steam", **given}).create("recipe.method", num_cooks=2)
        assert str(caught.value).startswith(message)
    assert method({"kind": "my_kitchen:smoke", "wood": 3}).create("m") == (3, 1.0)
    with pytest.raises(ConfigError, match='^recipe.method.kind "my_kitchen:nothing": "my_kitchen" has no'):
        method("my_kitchen:nothing").create("recipe.method")


def test_a_section_of_the_users_own_is_checked_when_it_is_created() -> None:
    solar = validate(Kitchen, {"stove": {"kind": "my_kitchen:Solar", "mirrors": 3}}).stove
    assert type(solar) is StovePart
    assert solar.create("stove").mirrors == 3
    wrong = validate(Kitchen, {"stove": {"kind": "my_kitchen:Solar", "mirors": 3}}).stove
    with pytest.raises(ConfigError, match='^unknown key "stove.mirors". Did you mean "mirrors"?'):
        wrong.create("stove")


def test_a_table_that_is_itself_a_part_has_keys_of_its_own_too() -> None:
    kitchen = validate(Kitchen, {"course": {"kind": "fry", "fat": "oil", "num_guests": 3}})
    assert (kitchen.course.num_guests, kitchen.course.options) == (3, {"fat": "oil"})
    with pytest.raises(ConfigError, match="^course.num_guests must be greater than or equal to 1, got 0"):
        validate(Kitchen, {"course": {"num_guests": 0}})
    with pytest.raises(ConfigError, match='^unknown key "course.num_guest"'):
        validate(Kitchen, {"course": {"num_guest": 1}})


@pytest.mark.parametrize(
    ("settings", "dumped"),
    [
        ({"recipe": {"method": "boil"}}, "boil"),
        ({"recipe": {"method": {"kind": "boil"}}}, "boil"),
        ({"recipe": {"method": {"kind": "boil", "lid": False}}}, {"kind": "boil", "lid": False}),
    ],
)
def test_a_part_is_dumped_as_a_name_or_with_its_options_and_read_back_equal(
    settings: dict[str, Any], dumped: Any
) -> None:
    kitchen = validate(Kitchen, settings)
    table = kitchen.model_dump(mode="json", exclude_none=True)
    assert table["recipe"]["method"] == dumped
    assert table["course"] == {"kind": "stir", "num_guests": 2}
    assert table["stove"] == {"kind": "gas", "pressure_w": 1.0, "flame": 3}
    assert validate(Kitchen, table) == kitchen
    assert Course(kind="fry", fat="oil").model_dump()["fat"] == "oil"  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "written_out"),
    [
        ("stir", {}),
        ({"kind": "fry", "fat": "oil"}, {"fat": "oil", "minutes": 5}),
        ({"kind": "fry", "fat": "oil", "minutes": 9}, {"fat": "oil", "minutes": 9}),
        ("deep-fry", {"minutes": 5}),  # what the dict itself has set is no option
        ("boil", {"lid": True}),  # no default at all is none that could be written out
        ("by-ear", {}),
        ({"kind": "my_kitchen:smoke", "glow": 2.0}, {"wood": "oak", "glow": 2.0}),
    ],
)
def test_defaults_of_options_are_written_out(given: Any, written_out: dict[str, Any]) -> None:
    part = method(given).with_defaults()
    assert (type(part), part.kind) == (MethodPart, method(given).kind)
    assert part.options == written_out
    assert part.with_defaults() == part == method(part.model_dump(exclude_none=True))


def test_written_out_defaults_are_as_toml_has_them() -> None:
    fire = validate(Kitchen, {"stove": "fire"}).stove.with_defaults()
    assert fire.options == {"wood": ["oak"]}
    gas = validate(Kitchen, {"stove": "gas"}).stove
    assert gas.with_defaults() is gas  # a section has its defaults as fields
    assert "flame" in gas.model_dump()
