"""A group of settings: frozen, strict, and without options that its choice would ignore."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fedwave.errors import ConfigError
from fedwave.settings import Section
from fedwave.settings.section import LARGEST_FLOAT32, in_float32
from tests.settings.kitchen import Dish, Gas


def test_a_section_cannot_be_changed_and_takes_nothing_unknown_or_of_another_type() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Gas().flame = 2  # type: ignore[misc]
    for wrong in ({"extra": 1}, {"flame": True}, {"flame": "2"}, {"flame": 2.0}):
        with pytest.raises(ValidationError):
            Gas.model_validate(wrong)
    assert Gas.model_validate({"pressure_w": 2}).pressure_w == 2.0  # a whole number is a number


def test_options_belong_to_the_choices_that_name_them() -> None:
    assert tuple(Dish.choices()) == ("soup", "roast", "toast")
    assert Dish.all_options() == {"bowls", "minutes", "slices"}
    assert Dish.foreign_options("soup") == {"slices"}
    assert Dish.foreign_options("roast") == {"bowls", "slices"}
    assert Dish.foreign_options("unheard of") == {"bowls", "minutes", "slices"}
    assert Dish.foreign_options(3) == frozenset()
    assert Gas.foreign_options("gas") == Gas.all_options() == frozenset()
    assert tuple(Gas.choices()) == ()
    assert Section.options_of("x") == {}


def test_defaults_of_the_choice_are_filled_in_where_nothing_is_given() -> None:
    assert (Dish().bowls, Dish().minutes, Dish().slices) == (2, 20, None)
    assert (Dish(bowls=5).bowls, Dish(bowls=5).minutes) == (5, 20)
    roast = Dish(name="roast")
    assert (roast.bowls, roast.minutes) == (None, None)


def test_an_option_of_another_choice_is_refused_with_its_owners() -> None:
    with pytest.raises(ConfigError) as caught:
        Dish(name="toast", minutes=3)
    assert str(caught.value) == (
        'dish.minutes belongs to name soup or roast, got name "toast". Leave it out.'
    )


def test_the_largest_number_of_a_model_is_torchs() -> None:
    assert torch.finfo(torch.float32).max == LARGEST_FLOAT32
    for size in (LARGEST_FLOAT32, -LARGEST_FLOAT32, 0, True):
        assert in_float32(size) == size
    with pytest.raises(PydanticCustomError, match=r"^must be at most 3.4e38"):
        in_float32(math.nextafter(LARGEST_FLOAT32, math.inf))
