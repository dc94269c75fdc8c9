"""What is wrong with settings, in one line: which key, what was got, how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fedwave.errors import ConfigError, did_you_mean, shown
from fedwave.settings.guess import guess_key
from fedwave.settings.section import sections_in

AnyModel = TypeVar("AnyModel", bound=BaseModel)
CHECKS_PARTS = "checks_parts"  # key of the context in which settings are read
UNKNOWN = ("extra_forbidden", "part_option")  # problems of a key, of a section's or of a part's


def validate(
    model: type[AnyModel],
    settings: Mapping[str, Any],
    *,
    root: str = "",
    moved: Mapping[str, str] | None = None,
    checks_parts: bool = True,
) -> AnyModel:
    """Return the settings as ``model``, or raise one line for the first thing wrong with them.

    ``root`` is where the settings stand, e.g. "cell". ``moved`` maps keys of old to where they are now.
    Without ``checks_parts`` a part's kind and options may be any: a finished run is read without its parts.
    """
    try:
        return model.model_validate(settings, context={CHECKS_PARTS: checks_parts})
    except ValidationError as error:
        raise ConfigError(explain(model, error, root=root, moved=moved or {})) from None


def explain(
    model: type[BaseModel], error: ValidationError, *, root: str = "", moved: Mapping[str, str] | None = None
) -> str:
    """Return the first problem as one line. A misspelt key is named before what is missing because of it."""
    found: list[tuple[Any, list[str], type[BaseModel] | None]] = []
    for problem in error.errors(include_url=False):
        is_unknown = problem["type"] == "extra_forbidden"
        place = [str(part) for part in problem["loc"]]
        found.append((problem, *walk(model, place, ends_in_unknown_key=is_unknown)))
    problem, keys, section = min(found, key=lambda entry: entry[0]["type"] not in UNKNOWN)
    keys_of = {tuple(other_keys): other["type"] for other, other_keys, _ in found}
    if problem["type"] == "missing":
        missing = [list(other) for other, kind in keys_of.items() if kind == "missing"]
        names = [".".join([*([root] if root else []), *own]) for own in missing]
        return f"{_missing(names)}{_more(len(keys_of) - len(missing))}"
    # A value that may be of several types, such as a number or "auto", has a problem for each of them.
    alike = [other for other, other_keys, _ in found if other_keys == keys]
    name = ".".join([*([root] if root else []), *keys]) or "settings"
    return f"{_line(model, problem, alike, name, keys, section, moved or {})}{_more(len(keys_of) - 1)}"


def _missing(names: list[str]) -> str:
    """Return the line that names all keys which are missing."""
    if len(names) == 1:
        return f"{names[0]} is missing. Set it, or start from a preset that has it."
    told = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{told} are missing. Set them, or start from a preset that has them."


def _line(
    model: type[BaseModel],
    problem: Any,
    alike: list[Any],
    name: str,
    keys: list[str],
    section: type[BaseModel] | None,
    moved: Mapping[str, str],
) -> str:
    kind, got = problem["type"], problem["input"]
    moved_to = f": it is {moved[name]} now. Use that." if name in moved else ""
    if kind == "extra_forbidden":
        if moved_to:
            return f'unknown key "{name}"{moved_to}'
        known = [] if section is None else list(section.model_fields)
        word = keys[-1] if keys else name
        elsewhere = "" if difflib.get_close_matches(word, known) else guess_key(model, word)
        return f'unknown key "{name}". {elsewhere or did_you_mean(word, known)}'
    if kind == "part_option":
        return f'unknown key "{name}"' + (moved_to or f". {problem['msg']}")
    if kind == "part_unknown":
        return f"{name.removesuffix('.kind')}: {problem['msg']}"
    if kind in ("part_kind", "too_large"):
        return f"{name} {problem['msg']}"
    if kind == "value_error":
        return f"{name}: {str(problem['ctx']['error']).rstrip('.')}."
    rule = " or ".join(dict.fromkeys(_rule(other) for other in alike)).replace(" or be ", " or ")
    hint = _hint(keys[-1].partition("[")[0] if keys else "", got)
    hint = hint or f" Change it in the file or with -s {name.partition('[')[0]}=..."
    return f"{name} must {rule}, got {_shown(got)}.{hint}"


def _rule(problem: Any) -> str:
    """Return what a value must, e.g. "be greater than 0" or "have at least 1 item"."""
    if problem["type"] == "model_type":
        return "be a table"
    _, should, rule = problem["msg"].partition(" should ")  # "Input should be ...", "List should have ..."
    return (rule if should else f"be valid: {problem['msg']}").split(" after validation")[0]


def _more(count: int) -> str:
    return "" if count == 0 else f" ({count} more problem{'s' if count > 1 else ''} after this one.)"


def _shown(got: object) -> str:
    if isinstance(got, dict):
        return "a table"
    return shown(got)


def _hint(key: str, got: object) -> str:
    is_number = isinstance(got, int | float) and not isinstance(got, bool) and abs(got) < 1e300
    if key == "num_blocks" and is_number:
        return " Without a radio block nobody can upload."
    if key == "carrier_frequency_hz" and is_number and 0 < float(str(got)) <= 100:
        return f" If that is GHz, write {float(str(got)):g}e9."
    if key.startswith("noise_psd") and is_number and float(str(got)) < 0:
        return " If that is dBm/Hz, use noise_psd_dbm_per_hz."
    if key.endswith("_w") and is_number and float(str(got)) < 0:
        return " If that is dBm, convert it: watts are 1e-3 * 10^(dBm/10)."
    return ""


def walk(
    model: type[BaseModel], place: list[str], *, ends_in_unknown_key: bool
) -> tuple[list[str], type[BaseModel] | None]:
    """Return the keys of a place without the tags pydantic adds for unions, and the last key's section."""
    sections: list[type[BaseModel]] = [model]
    keys: list[str] = []
    holder: type[BaseModel] | None = None
    for index, part in enumerate(place):
        with_field = [section for section in sections if part in section.model_fields]
        is_last = index == len(place) - 1
        if with_field:
            holder = with_field[0]
            sections = sections_in(holder.model_fields[part].annotation)
            keys.append(part)
        elif any(section.model_config.get("extra") == "allow" for section in sections):
            return [*keys, *place[index:]], None  # a part names its own keys
        elif is_last and sections and ends_in_unknown_key:
            holder = sections[0]
            keys.append(part)
        elif part.isdigit() and keys:
            keys[-1] += f"[{part}]"
        # What is left is a tag of a union of plain types, such as "number" or "range".
    return keys, holder
