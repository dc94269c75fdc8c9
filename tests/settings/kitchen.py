"""A small schema with every shape that settings can have, for the tests of the machinery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedwave.errors import ConfigError
from fedwave.settings import FiniteFloat, NonNegativeFloat, PositiveFloat, PositiveInt, Section


class Gas(Section):
    kind: Literal["gas"] = "gas"
    pressure_w: NonNegativeFloat = 1.0
    flame: PositiveInt = 3


class Electric(Section):
    kind: Literal["electric"] = "electric"
    power_w: FiniteFloat
    flame: PositiveInt = 1


class Grill(Section):
    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("heat_c", "heat_f"), ("size_cm", "size_in"))

    heat_c: PositiveFloat | None = None
    heat_f: PositiveFloat | None = None
    size_cm: PositiveFloat | None = None
    size_in: PositiveFloat | None = None
    tongs: PositiveInt = 1


class Dish(Section):
    place: ClassVar[str] = "dish"
    choice: ClassVar[str | None] = "name"

    name: Literal["soup", "roast", "toast"] = "soup"
    num_plates: PositiveInt = 4
    bowls: PositiveInt | None = None
    minutes: PositiveInt | None = None
    slices: list[PositiveInt] | None = None

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        return {
            "soup": {"bowls": 2, "minutes": 20},
            "roast": {"minutes": None},
            "toast": {"slices": None},
        }.get(value, {})


class Recipe(Section):
    place: ClassVar[str] = "recipe"
    option_tables: ClassVar[Mapping[str, str]] = {"method": "method_options", "cook": "cook_options"}

    method: str = "stir"
    method_options: dict[str, bool | int | float | str] = Field({})
    cook: str = "chef"
    cook_options: dict[str, bool | int | float | str] = Field({})

    @model_validator(mode="after")
    def _no_arson(self) -> Recipe:
        if self.method == "burn":
            raise ConfigError('recipe.method "burn" is not cooking. Stir instead.')
        return self


class Kitchen(Section):
    name: str = "home"
    num_cooks: PositiveInt | Literal["auto"] = "auto"
    is_open: bool = False
    stove: Annotated[Gas | Electric, Field(discriminator="kind")] = Gas()
    grill: Grill | None = None
    dish: Dish = Dish()
    recipe: Recipe = Recipe()
    spoons: list[PositiveInt] = Field([1], min_length=1)
