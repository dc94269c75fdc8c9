"""What settings choose: all that differs from the defaults, so that a setting added later changes nothing."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from fedwave.settings.parts import Part
from fedwave.settings.section import Section


def chosen(section: BaseModel) -> dict[str, Any]:
    """Return the settings that are not at their defaults, as plain values; parts always say their kind."""
    defaults = defaults_of(section)
    found = {
        name: chosen(value) if isinstance(value, BaseModel) else to_jsonable_python(value)
        for name, value in section
        if name not in defaults or value != defaults[name]
    }
    kind = getattr(section, "kind", None)
    return found if kind is None else {"kind": kind, **found}


def defaults_of(section: BaseModel) -> dict[str, Any]:
    """Return the defaults of a section's settings and of its part's options, as far as they have any."""
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in type(section).model_fields.items()
        if not field.is_required()
    }
    if isinstance(section, Section) and section.choice is not None:
        defaults |= section.options_of(str(getattr(section, section.choice)))
    if isinstance(section, Part) and section.kind in section.kinds().registry:
        kinds = section.kinds()
        options = kinds.parameters(kinds.registry[section.kind])
        defaults |= {
            name: list(one.default) if isinstance(one.default, tuple) else one.default
            for name, one in options.items()
            if name not in type(section).model_fields and one.default is not one.empty
        }
    return defaults
