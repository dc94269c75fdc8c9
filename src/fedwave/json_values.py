"""Plain values for JSON, which has neither arrays nor infinity."""

from __future__ import annotations

import math
from typing import Any


def json_value(value: Any) -> Any:
    """Return what JSON can hold, deep inside as well: arrays as lists, None for what is not finite."""
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        value = value.tolist()
    if isinstance(value, dict):
        return {name: json_value(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
