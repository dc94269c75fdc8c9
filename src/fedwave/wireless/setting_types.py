"""Kinds of values that a cell's settings have beside plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fedwave.settings.section import file_name


def _from_text(value: Any) -> Any:
    return file_name(value) if isinstance(value, str) else value


Decibel = Annotated[float, Field(ge=-1000.0, le=1000.0)]  # beyond it the linear value leaves the float range
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
FileName = Annotated[Path, BeforeValidator(_from_text)]  # settings are strict, but TOML writes paths as text
