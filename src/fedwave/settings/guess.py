"""Which setting was meant by a word: all keys of a schema, and the nearest by name or by symbol."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from pydantic import BaseModel

from fedwave.settings.section import sections_in

_GREEK = ("alpha", "beta", "lambda", "tau", "eta", "iota", "nu")
_MOST = 3  # keys that are offered


def keys_of(model: type[BaseModel]) -> dict[str, str]:
    """Return every dotted key of a schema with its description, e.g. ``algorithm.meta_lr``."""
    return dict(_walk(model, ""))


def guess_key(model: type[BaseModel], word: str) -> str:
    """Return "Did you mean …?" with the keys that a word may stand for; "" where none is near.

    A word is a symbol of the paper, such as lambda or beta, which descriptions begin with; a part of a key's
    name, such as rounds; or a misspelt name.
    """
    known, asked = keys_of(model), word.rpartition(".")[2].strip("-").replace("-", "_").lower()
    if not asked:
        return ""
    by_symbol = [key for key, text in known.items() if _symbol(text) in (asked, *_numbered(asked))]
    last = {key: key.rpartition(".")[2] for key in known}
    by_part = [key for key, name in last.items() if asked == name or asked in name.split("_")]
    near = difflib.get_close_matches(asked, set(last.values()), n=_MOST, cutoff=0.75)
    by_name = [key for name in near for key in known if last[key] == name]
    found = (by_symbol or by_part or by_name)[:_MOST]
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}", field.description or ""
        for section in sections_in(field.annotation)[:1]:
            yield from _walk(section, f"{prefix}{name}.")


def _symbol(description: str) -> str:
    """Return the symbol that a description begins with: ``lambda_1`` of "lambda_1 of the contribution"."""
    found = re.match(rf"({'|'.join(_GREEK)})(_?\d)?\b", description)
    return "" if found is None else found[0].replace("_", "")


def _numbered(word: str) -> tuple[str, ...]:
    plain = word.replace("_", "")
    return plain, f"{plain}1", f"{plain}2"
