"""Settings as data: TOML files, presets and overrides in layers, checked strictly, explained in one line."""

from fedwave.settings.explain import validate
from fedwave.settings.layers import anchor_paths, merge, read_toml
from fedwave.settings.overrides import parse_overrides
from fedwave.settings.parts import Part
from fedwave.settings.section import (
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Section,
)

__all__ = [
    "FiniteFloat",
    "NonNegativeFloat",
    "NonNegativeInt",
    "Part",
    "PositiveFloat",
    "PositiveInt",
    "Section",
    "anchor_paths",
    "merge",
    "parse_overrides",
    "read_toml",
    "validate",
]
