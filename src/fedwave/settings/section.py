"""What every group of settings has in common: immutable, strictly typed, nothing unknown, nothing ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from fedwave.errors import ConfigError, shown

LARGEST = 2**63 - 1  # what tables, checkpoints and JSON can hold
LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127  # 3.4e38
PositiveInt = Annotated[int, Field(ge=1, le=LARGEST)]
NonNegativeInt = Annotated[int, Field(ge=0, le=LARGEST)]
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Decibel = Annotated[float, Field(ge=-1000.0, le=1000.0)]  # beyond it the linear value leaves the float range


def in_float32(value: float) -> float:
    """Return a number that reaches a model; refuse one that none can hold."""
    if abs(value) > LARGEST_FLOAT32:
        rule = "must be at most 3.4e38, the largest number of a model, got {got}. Choose a smaller one."
        raise PydanticCustomError("too_large", rule, {"got": shown(value)})
    return value


PositiveFloat32 = Annotated[PositiveFloat, AfterValidator(in_float32)]
NonNegativeFloat32 = Annotated[NonNegativeFloat, AfterValidator(in_float32)]


def file_name(text: str) -> Path:
    """Return the path that a setting names; refuse what no file can be called, or no TOML can hold."""
    if "\0" in text or not text:
        raise ValueError("a file's name must not be empty or hold a zero byte")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the name must be UTF-8, so that config.toml can hold it. Rename the file") from None
    return Path(text)


def _from_text(value: Any) -> Any:
    return file_name(value) if isinstance(value, str) else value


FileName = Annotated[Path, BeforeValidator(_from_text)]  # settings are strict, but TOML writes paths as text


class Section(BaseModel):
    """A group of settings.

    A section whose options depend on one of its keys names that key in ``choice`` and says in ``options_of``
    what belongs to each value. An option of another choice is refused; where it comes from a preset and the
    choice was overridden, ``merge`` drops it.
    """

    # Built when first used: most commands use few sections.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    place: ClassVar[str] = ""  # how messages call the section, e.g. "model"
    choice: ClassVar[str | None] = None
    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = ()  # spellings of one quantity: the later wins
    replaces: ClassVar[
        dict[str, tuple[str, ...]]
    ] = {}  # what a key of a later layer takes from an earlier one

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return the options that belong to this value of ``choice``, with their defaults."""
        del value
        return {}

    @classmethod
    def choices(cls) -> Iterable[str]:
        """Return the values of ``choice`` that have options of their own."""
        return get_args(cls.model_fields[cls.choice].annotation) if cls.choice else ()

    @classmethod
    def all_options(cls) -> frozenset[str]:
        """Return every option that belongs to some choice."""
        return frozenset(option for value in cls.choices() for option in cls.options_of(value))

    @classmethod
    def foreign_options(cls, value: object) -> frozenset[str]:
        """Return the options that do not belong to this value of ``choice``."""
        if cls.choice is None or not isinstance(value, str):
            return frozenset()
        return cls.all_options() - set(cls.options_of(value))

    @model_validator(mode="after")
    def _options_fit_the_choice(self) -> Section:
        if self.choice is None:
            return self
        value = str(getattr(self, self.choice))
        prefix = f"{self.place}." if self.place else ""
        for option in sorted(self.foreign_options(value)):
            if getattr(self, option, None) is not None:
                owners = " or ".join(own for own in self.choices() if option in self.options_of(own))
                raise ConfigError(
                    f"{prefix}{option} belongs to {self.choice} {owners}, "
                    f'got {self.choice} "{value}". Leave it out.'
                )
        for option, default in self.options_of(value).items():
            if getattr(self, option, None) is None and default is not None:
                object.__setattr__(self, option, default)
        return self


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation may stand for."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for inner in get_args(annotation) for section in sections_in(inner)]
