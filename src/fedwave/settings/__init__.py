"""Settings as data: TOML files, presets and overrides in layers, checked strictly, explained in one line."""

from fedwave.settings.explain import validate
from fedwave.settings.layers import anchor_paths, merge, read_toml
from fedwave.settings.overrides import parse_overrides
from fedwave.settings.parts import Part
from fedwave.settings.section import (
    Decibel,
    FileName,
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeFloat32,
    NonNegativeInt,
    PositiveFloat,
    PositiveFloat32,
    PositiveInt,
    Probability,
    Section,
)

__all__ = [
    "Decibel",
    "FileName",
    "FiniteFloat",
    "NonNegativeFloat",
    "NonNegativeFloat32",
    "NonNegativeInt",
    "Part",
    "PositiveFloat",
    "PositiveFloat32",
    "PositiveInt",
    "Probability",
    "Section",
    "anchor_paths",
    "merge",
    "parse_overrides",
    "read_toml",
    "validate",
]
