"""Layers of settings: the later one beats the earlier, and takes along what its choice makes meaningless."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.settings import Section, anchor_paths, merge, read_toml
from fedwave.settings.layers import Settings, toml_from_text
from fedwave.settings.section import sections_in
from tests.settings.kitchen import Dish, Grill, Kitchen, Recipe, StovePart

TREES = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.sampled_from("abcd"), TREES, max_size=4)


def leaves(table: Settings, place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return every value that is no table by its place, and every empty table."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            found |= leaves(value, (*place, key))
        else:
            found[*place, key] = value
    return found


@given(base=TABLES, change=TABLES)
def test_without_a_schema_each_place_has_the_later_value_or_else_the_earlier(
    base: Settings, change: Settings
) -> None:
    before = copy.deepcopy((base, change))
    merged = leaves(merge(base, change))
    assert (base, change) == before
    later, earlier = leaves(change), leaves(base)
    for place, value in later.items():
        if value != {}:
            assert merged[place] == value
    for place, value in merged.items():
        if place not in later and value != {}:
            assert earlier[place] == value
    for place, value in earlier.items():
        is_overruled = any(place[: len(other)] == other or other[: len(place)] == place for other in later)
        if not is_overruled:
            assert merged[place] == value


def test_neither_layer_shares_a_list_or_table_with_the_outcome() -> None:
    base: Settings = {"dish": {"slices": [1]}, "spoons": [1]}
    change: Settings = {"grill": {"tongs": [2]}, "stove": {"kind": "electric", "power_w": [3]}}
    merged = merge({**base, "stove": {"kind": "gas"}}, change, Kitchen)
    merged["dish"]["slices"].append(0)
    merged["spoons"].append(0)
    merged["grill"]["tongs"].append(0)
    merged["stove"]["power_w"].append(0)
    assert base == {"dish": {"slices": [1]}, "spoons": [1]}
    assert change == {"grill": {"tongs": [2]}, "stove": {"kind": "electric", "power_w": [3]}}


def test_the_later_spelling_of_a_quantity_replaces_the_earlier() -> None:
    base = {"heat_c": 200.0, "size_cm": 40.0, "tongs": 2}
    assert merge(base, {"heat_f": 400.0}, Grill) == {"heat_f": 400.0, "size_cm": 40.0, "tongs": 2}
    assert merge(base, {"heat_c": 180.0}, Grill) == {**base, "heat_c": 180.0}
    # Two spellings in one layer are that layer's own mistake: they stay, to be refused.
    assert merge(base, {"heat_c": 1.0, "heat_f": 2.0}, Grill) == {**base, "heat_c": 1.0, "heat_f": 2.0}
    nested = merge({"grill": base}, {"grill": {"heat_f": 400.0}}, Kitchen)
    assert nested["grill"] == {"heat_f": 400.0, "size_cm": 40.0, "tongs": 2}


class Cellar(Section):
    replaces: ClassVar[dict[str, tuple[str, ...]]] = {
        "rack.label": ("rack.litres", "door.width_m"),
        "light_w": ("rack.label",),
    }


def test_a_key_of_a_later_layer_takes_away_what_it_replaces_at_any_depth() -> None:
    base: Settings = {"rack": {"label": "red", "litres": 3, "rows": 2}, "door": {"width_m": 1}, "light_w": 5}
    assert merge(base, {"rack": {"label": "white"}}, Cellar) == {
        "rack": {"label": "white", "rows": 2},
        "door": {},
        "light_w": 5,
    }
    # What the same layer says stays, and so does everything where nothing is replaced.
    assert merge(base, {"rack": {"label": "white", "litres": 4}}, Cellar)["rack"]["litres"] == 4
    assert merge(base, {"rack": {"rows": 9}}, Cellar) == {**base, "rack": {**base["rack"], "rows": 9}}
    assert merge(base, {"light_w": 6}, Cellar)["rack"] == {"litres": 3, "rows": 2}
    assert merge({"door": 7}, {"rack": {"label": "white"}}, Cellar) == {"door": 7, "rack": {"label": "white"}}
    assert merge({}, {"rack": "label"}, Cellar) == {"rack": "label"}
    assert base["rack"]["litres"] == 3


def test_another_kind_replaces_the_whole_part_and_the_same_kind_is_merged() -> None:
    base = {"stove": {"kind": "gas", "pressure_w": 2.0, "flame": 9}}
    other = {"stove": {"kind": "electric", "power_w": 5.0}}
    assert merge(base, other, Kitchen) == other
    assert merge(base, {"stove": "fire"}, Kitchen) == {"stove": {"kind": "fire"}}
    for same in ({"kind": "gas", "flame": 1}, {"flame": 1}):
        assert merge(base, {"stove": same}, Kitchen) == {
            "stove": {"kind": "gas", "pressure_w": 2.0, "flame": 1}
        }
    # Without a schema nothing says that the table is a part.
    assert merge(base, other)["stove"] == {"kind": "electric", "power_w": 5.0, "pressure_w": 2.0, "flame": 9}


def test_a_name_is_a_part_without_options() -> None:
    fried = {"kind": "fry", "fat": "oil"}
    assert merge({"method": fried}, {"method": "boil"}, Recipe) == {"method": {"kind": "boil"}}
    assert merge({"method": fried}, {"method": "fry"}, Recipe) == {"method": fried}
    assert merge({"method": "fry"}, {"method": {"fat": "oil"}}, Recipe) == {"method": fried}
    assert merge({}, {"method": "boil"}, Recipe) == {"method": "boil"}
    assert merge({"method": fried}, {"method": 3}, Recipe) == {"method": 3}  # to be refused
    # One of the user's own has options that nobody knows yet.
    own = {"kind": "my.kitchen:Steam", "minutes": 3}
    assert merge({"method": fried}, {"method": own}, Recipe) == {"method": own}
    assert merge({"method": own}, {"method": {"minutes": 4}}, Recipe) == {"method": {**own, "minutes": 4}}


def test_options_of_the_default_part_stay_when_the_part_is_named_by_its_default() -> None:
    base = {"method": {"spoon": "wooden"}}
    assert merge(base, {"method": "stir"}, Recipe) == {"method": {"kind": "stir", "spoon": "wooden"}}
    assert merge(base, {"method": "fry"}, Recipe) == {"method": {"kind": "fry"}}


def test_a_table_that_is_itself_a_part_keeps_its_own_keys_and_the_options_that_both_kinds_have() -> None:
    base = {"course": {"kind": "fry", "fat": "oil", "minutes": 3, "num_guests": 7}}
    assert merge(base, {"course": {"kind": "boil"}}, Kitchen)["course"] == {
        "kind": "boil",
        "minutes": 3,
        "num_guests": 7,
    }
    for unknown in ("my.kitchen:Steam", "no such kind"):
        assert merge(base, {"course": {"kind": unknown}}, Kitchen)["course"] == {
            "kind": unknown,
            "num_guests": 7,
        }


def test_a_changed_choice_drops_the_options_of_the_old_one_but_not_what_both_have() -> None:
    base = {"name": "soup", "num_plates": 6, "bowls": 3, "minutes": 30}
    assert merge(base, {"name": "roast"}, Dish) == {"name": "roast", "num_plates": 6, "minutes": 30}
    assert merge(base, {"name": "toast"}, Dish) == {"name": "toast", "num_plates": 6}
    assert merge(base, {"name": "soup"}, Dish) == base
    assert merge(base, {"num_plates": 1}, Dish) == {**base, "num_plates": 1}
    # An option that the later layer itself gives stays, to be refused with its own message.
    assert merge(base, {"name": "toast", "bowls": 9}, Dish) == {"name": "toast", "num_plates": 6, "bowls": 9}
    assert merge({"dish": base}, {"dish": {"name": "toast"}}, Kitchen)["dish"] == {
        "name": "toast",
        "num_plates": 6,
    }


def test_a_choice_that_is_no_word_drops_nothing_and_is_left_to_the_check() -> None:
    base = {"name": "soup", "bowls": 3}
    assert merge(base, {"name": 7}, Dish) == {"name": 7, "bowls": 3}


def test_a_value_replaces_a_table_and_a_table_a_value() -> None:
    assert merge({"dish": {"name": "soup"}}, {"dish": 3}, Kitchen) == {"dish": 3}
    assert merge({"dish": 3}, {"dish": {"name": "soup"}}, Kitchen) == {"dish": {"name": "soup"}}


def test_an_annotation_tells_its_sections() -> None:
    assert sections_in(Kitchen.model_fields["stove"].annotation) == [StovePart]
    assert sections_in(Kitchen.model_fields["grill"].annotation) == [Grill]
    assert sections_in(dict[str, int]) == sections_in(None) == []


# Files and their paths --------------------------------------------------------------------------------------


def test_relative_paths_start_at_the_folder_at_any_depth_and_nothing_else_changes() -> None:
    table: Settings = {
        "path": "a.npy",
        "gains_path": "b/c.csv",
        "name": "path",
        "paths": "d",
        "path_of": "e",
        "cell": {"fleet": {"path": "f.csv", "num": 3}, "path": 7},
        "list": [{"path": "g"}],
    }
    before = copy.deepcopy(table)
    assert anchor_paths(table, Path("/base")) == {
        **table,
        "path": "/base/a.npy",
        "gains_path": "/base/b/c.csv",
        "cell": {"fleet": {"path": "/base/f.csv", "num": 3}, "path": 7},
    }
    assert table == before
    assert anchor_paths({"path": "/abs/x"}, Path("/base")) == {"path": "/abs/x"}


def test_a_file_is_read_as_toml_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    for mark in (b"", b"\xef\xbb\xbf"):
        file.write_bytes(mark + 'name = "Küche"\n[dish]\nminutes = 3\n'.encode())
        assert read_toml(file, what="file", advice="") == {"name": "Küche", "dish": {"minutes": 3}}


def test_a_file_that_cannot_be_read_is_named_in_one_line_with_advice(tmp_path: Path) -> None:
    def message(path: Path) -> str:
        with pytest.raises(ConfigError) as caught:
            read_toml(path, what="cell file", advice="Look again.")
        assert "\n" not in str(caught.value)
        return str(caught.value)

    absent = tmp_path / "absent.toml"
    assert message(absent) == f"cannot read the cell file {absent}: No such file or directory. Look again."
    assert "Is a directory. Look again." in message(tmp_path)
    assert "null" in message(Path("a\0b"))
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "K\xfcche"')
    assert message(latin) == f"the cell file {latin} is not a text file in UTF-8. Save it as such."
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("a = = 1")
    assert message(wrong).startswith(f"the cell file {wrong} is not valid TOML: Invalid value")


def test_brackets_without_end_are_no_crash() -> None:
    with pytest.raises(ConfigError, match="^it is not valid TOML: it is nested too deeply. Correct"):
        toml_from_text("a = " + "[" * 5000, name="it")
