"""A small schema with every shape that settings can have, for the tests of the machinery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedwave.errors import ConfigError
from fedwave.parts import PartKind
from fedwave.settings import FiniteFloat, NonNegativeFloat, Part, PositiveFloat, PositiveInt, Section


class StovePart(Part):
    of: ClassVar[str] = "tests.settings.kitchen:STOVE"


class Gas(StovePart, extra="forbid"):
    kind: Literal["gas"] = "gas"
    pressure_w: NonNegativeFloat = 1.0
    flame: PositiveInt = 3


class Electric(StovePart, extra="forbid"):
    kind: Literal["electric"] = "electric"
    power_w: FiniteFloat
    flame: PositiveInt = 1

    def build(self, *, num_cooks: int) -> str:
        return f"{self.power_w:g} W for {num_cooks}"


def camp_fire(num_cooks: int, *, wood: tuple[str, ...] = ("oak",), log: Path | None = None) -> str:
    return f"{num_cooks} around {', '.join(wood)}{'' if log is None else f' on {log}'}"


STOVES: dict[str, Any] = {"gas": Gas, "electric": Electric, "fire": camp_fire}
STOVE = PartKind("stove", STOVES, ("kind", "num_cooks"))


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


@dataclass(frozen=True)
class Fry:
    num_cooks: int
    fat: str
    minutes: int = 5


def boil(*, lid: bool = True, minutes: int | None = None) -> tuple[bool, int | None]:
    return lid, minutes


def burn(**anything: Any) -> dict[str, Any]:
    return anything


METHODS: dict[str, Any] = {
    "stir": lambda: "stirred",
    "fry": Fry,
    "deep-fry": partial(Fry, fat="lard"),
    "boil": boil,
}
METHOD = PartKind("method", METHODS, ("num_cooks",))


class MethodPart(Part):
    of: ClassVar[str] = "tests.settings.kitchen:METHOD"
    stand_ins: ClassVar[tuple[str, ...]] = ("by-ear",)

    kind: str = "stir"


class Recipe(Section):
    place: ClassVar[str] = "recipe"

    method: MethodPart = MethodPart()
    cook: str = "chef"

    @model_validator(mode="after")
    def _no_arson(self) -> Recipe:
        if self.cook == "dragon":
            raise ConfigError('recipe.cook "dragon" is no cook. Hire a chef.')
        return self


class Course(Part):
    """A table that is itself the part, beside a key that all kinds have."""

    of: ClassVar[str] = "tests.settings.kitchen:METHOD"

    kind: str = "stir"
    num_guests: PositiveInt = 2


class Kitchen(Section):
    name: str = "home"
    num_cooks: PositiveInt | Literal["auto"] = "auto"
    is_open: bool = False
    stove: StovePart = Gas()
    grill: Grill | None = None
    dish: Dish = Dish()
    recipe: Recipe = Recipe()
    course: Course = Course()
    spoons: list[PositiveInt] = Field([1], min_length=1)
