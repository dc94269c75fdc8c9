"""Options of a named part (a policy, a method, a server step): names and types are those of its signature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fedwave.errors import ConfigError
from fedwave.settings.options import require_options

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def require_part_options(
    given: Mapping[str, Any], part: Callable[..., Any], known: Collection[str], *, table: str, owner: str
) -> None:
    """Raise if an option is not one of the part's, or not of the type that the part declares."""
    require_options(given, known, table=table, owner=owner)
    types = _declared_types(part)
    for name, value in given.items():
        if name not in types:
            continue
        try:
            TypeAdapter(types[name], config=_STRICT).validate_python(value)
        except ValidationError as error:
            rule = error.errors(include_url=False)[0]["msg"].removeprefix("Input should be ")
            raise ConfigError(
                f'{table}.{name} of "{owner}" must be {rule}, got {value!r}. Give it that type.'
            ) from None


def _declared_types(part: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's arguments or a class's fields, as far as they are known here."""
    try:
        return get_type_hints(part)
    except (NameError, TypeError):  # a user's part may import its types for type checkers alone
        return {}
