"""What is wrong with settings, in one line: which key, what was got, how to fix it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from fedwave.errors import ConfigError
from fedwave.settings import NonNegativeFloat, PositiveFloat, PositiveInt, Section, validate
from fedwave.settings.explain import explain
from tests.settings.kitchen import Dish, Electric, Kitchen

CHANGE = "Change it in the file or with -s"


def message(settings: Any, **where: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Kitchen, settings, **where)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "?", ")"))
    return text


def test_good_settings_become_the_model() -> None:
    kitchen = validate(Kitchen, {"num_cooks": 3, "stove": {"kind": "electric", "power_w": 2}})
    assert (kitchen.num_cooks, kitchen.stove) == (3, Electric(power_w=2.0))
    assert kitchen.dish == Dish(name="soup", bowls=2, minutes=20)  # the defaults of the choice are filled in


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dsh": {}}, 'unknown key "dsh". Did you mean "dish"?'),
        ({"dish": {"minuts": 3}}, 'unknown key "dish.minuts". Did you mean "minutes"?'),
        ({"stove": {"kind": "gas", "flam": 1}}, 'unknown key "stove.flam". Did you mean "flame"?'),
        (
            {"stove": {"kind": "gas", "power_w": 1}},  # electric has it
            'unknown key "stove.power_w". It is an option of electric, not of "gas". Leave it out.',
        ),
        ({"grill": {"zzz": 1}}, 'unknown key "grill.zzz". Choose one of: heat_c, heat_f, size_cm, size_in, '),
    ],
)
def test_an_unknown_key_is_named_in_full_with_the_nearest_or_all_known(
    settings: dict[str, Any], expected: str
) -> None:
    assert message(settings).startswith(expected)


def test_an_unknown_key_is_named_before_what_is_missing_because_of_it() -> None:
    text = message({"stove": {"kind": "electric", "powr_w": 3.0}})
    assert text == ('unknown key "stove.powr_w". Did you mean "power_w"? (1 more problem after this one.)')


def test_a_key_of_old_is_told_its_new_place() -> None:
    moved = {"cooks": "num_cooks", "dish.pots": "dish.bowls"}
    assert message({"cooks": 3}, moved=moved) == 'unknown key "cooks": it is num_cooks now. Use that.'
    text = message({"dish": {"pots": 3}}, moved=moved)
    assert text == 'unknown key "dish.pots": it is dish.bowls now. Use that.'
    assert message({"dish": {"bowl": 3}}, moved=moved) == 'unknown key "dish.bowl". Did you mean "bowls"?'
    # A known key is never called moved, and the root belongs to the name.
    under_root = message({"pots": 1}, root="dish", moved=moved)
    assert under_root == 'unknown key "dish.pots": it is dish.bowls now. Use that.'


def test_a_part_says_which_kinds_there_are() -> None:
    assert message({"stove": {"kind": "wood"}}) == (
        'stove: there is no stove "wood". Choose one of: gas, electric, fire. '
        "Your own is package.module:Name."
    )
    assert message({"stove": "gass"}).startswith('stove: there is no stove "gass". Did you mean "gas"?')
    assert message({"stove": {"power_w": 1}}) == (
        'stove needs a kind. Choose one of: "gas", "electric", "fire".'
    )
    assert message({"stove": 3}) == f"stove must be a name, or a table with a kind, got 3. {CHANGE} stove=..."
    assert message({"stove": {"kind": 3}}).startswith("stove.kind must be a valid string, got 3.")


def test_a_missing_key_is_asked_for() -> None:
    expected = "stove.power_w is missing. Set it, or start from a preset that has it."
    assert message({"stove": {"kind": "electric"}}) == expected
    with pytest.raises(ConfigError, match="^cell.power_w is missing. Set it"):
        validate(Electric, {}, root="cell")


def test_a_refusal_of_the_sections_own_is_its_own_sentence_behind_the_key() -> None:
    text = message({"dish": {"name": "toast", "bowls": 3}})
    assert 'dish.bowls belongs to name soup, got name "toast". Leave it out.' in text
    assert 'recipe.cook "dragon" is no cook. Hire a chef.' in message({"recipe": {"cook": "dragon"}})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"num_cooks": True}, "num_cooks must be a valid integer or 'auto', got True"),
        ({"num_cooks": "7"}, "num_cooks must be a valid integer or 'auto', got '7'"),
        ({"num_cooks": 7.0}, "num_cooks must be a valid integer or 'auto', got 7.0"),
        ({"num_cooks": 0}, "num_cooks must be greater than or equal to 1 or 'auto', got 0"),
        ({"is_open": 1}, "is_open must be a valid boolean, got 1"),
        ({"name": 3}, "name must be a valid string, got 3"),
        ({"dish": {"num_plates": "4"}}, "dish.num_plates must be a valid integer, got '4'"),
        ({"dish": {"name": "stew"}}, "dish.name must be 'soup', 'roast' or 'toast', got 'stew'"),
        ({"dish": 3}, "dish must be a table, got 3"),
        ({"dish": {"num_plates": {"x": 1}}}, "dish.num_plates must be a valid integer, got a table"),
        ({"grill": {"heat_c": float("nan")}}, "grill.heat_c must be a finite number, got nan"),
        ({"stove": {"kind": "gas", "flame": True}}, "stove.flame must be a valid integer, got True"),
        ({"spoons": []}, "spoons must have at least 1 item, got []"),
    ],
)
def test_a_wrong_value_says_what_it_must_be_and_where_to_change_it(
    settings: dict[str, Any], expected: str
) -> None:
    assert message(settings) == f"{expected}. {CHANGE} {expected.split()[0]}=..."


def test_an_entry_of_a_list_and_of_a_table_of_options_is_named() -> None:
    assert message({"spoons": [1, 0]}) == (
        f"spoons[1] must be greater than or equal to 1, got 0. {CHANGE} spoons=..."
    )
    text = message({"dish": {"name": "toast", "slices": [1, 2, "x"]}})
    assert text == f"dish.slices[2] must be a valid integer, got 'x'. {CHANGE} dish.slices=..."
    text = message({"recipe": {"method": {"kind": "boil", "lid": [1]}}})
    assert text == f"recipe.method.lid must be a valid boolean, got [1]. {CHANGE} recipe.method.lid=..."
    text = message({"stove": {"kind": "fire", "wood": ["oak", 3]}})
    assert text == f"stove.wood[1] must be a valid string, got 3. {CHANGE} stove.wood=..."


def test_the_number_of_further_problems_is_told() -> None:
    assert message({"name": 3, "is_open": 1}).endswith("=... (1 more problem after this one.)")
    assert message({"name": 3, "is_open": 1, "dish": 2}).endswith("=... (2 more problems after this one.)")
    assert "more" not in message({"num_cooks": "x"})  # neither a number nor "auto": one problem


@pytest.mark.parametrize(("length", "is_cut"), [(78, False), (79, True), (500, True)])
def test_a_long_value_is_shortened_to_80_characters(length: int, is_cut: bool) -> None:
    text = message({"spoons": "x" * length})  # its repr has two quotes more
    shown = text.partition("got ")[2].partition(f". {CHANGE}")[0]
    assert shown == ("'" + "x" * 76 + "..." if is_cut else "'" + "x" * length + "'")
    assert len(shown) == 80


class Radio(Section):
    num_blocks: PositiveInt = 1
    carrier_frequency_hz: Annotated[float, Field(ge=5e8, le=1e11)] = 1e9
    noise_psd_w_per_hz: PositiveFloat = 1.0
    power_w: NonNegativeFloat = 1.0


DBM = "If that is dBm, convert it: watts are 1e-3 * 10^(dBm/10)."


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("num_blocks", 0, "Without a radio block nobody can upload."),
        ("num_blocks", "0", None),
        ("num_blocks", True, None),
        ("carrier_frequency_hz", 3.5, "If that is GHz, write 3.5e9."),
        ("carrier_frequency_hz", 100, "If that is GHz, write 100e9."),
        ("carrier_frequency_hz", 101, None),
        ("carrier_frequency_hz", 0, None),
        ("noise_psd_w_per_hz", -174, "If that is dBm/Hz, use noise_psd_dbm_per_hz."),
        ("noise_psd_w_per_hz", 0, None),
        ("power_w", -20.0, DBM),
        ("power_w", "-20", None),
        ("power_w", float("inf"), None),
    ],
)
def test_a_value_in_the_wrong_unit_is_recognised(key: str, value: object, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(Radio, {key: value})
    assert str(caught.value).endswith(f"got {value!r}. {hint or f'{CHANGE} {key}=...'}")


def test_settings_that_are_no_table_are_called_settings() -> None:
    assert message([1]).startswith("settings must be a table, got [1].")


def test_the_first_problem_can_be_explained_from_pydantics_error_alone() -> None:
    with pytest.raises(ValidationError) as caught:
        Kitchen.model_validate({"nme": "x"})
    assert explain(Kitchen, caught.value) == 'unknown key "nme". Did you mean "name"?'
    assert explain(Kitchen, caught.value, root="a") == 'unknown key "a.nme". Did you mean "name"?'
