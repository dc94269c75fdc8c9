"""The tables of settings and schemes in docs/training.md, made from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from inspect import Parameter
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schema import Experiment, StopSection
from fedwave.experiments.schemes import SCHEMES
from fedwave.settings import Part
from fedwave.settings.section import sections_in
from fedwave.wireless.settings.battery import BatteryConfig
from fedwave.wireless.settings.config import CellConfig
from tools.docs.pages import escape

SCHEME_ROW = "| `scheme` | – | Stands for a local rule, a policy and a method: " + ", ".join(SCHEMES) + ". |"


def settings_tables() -> str:
    """Return one table per section, as they must stand in the page."""
    top = _table("Top level", "", [SCHEME_ROW, *_rows(Experiment)])
    return "\n".join([top, *_sections(), _options_of_parts()])


def schemes_table() -> str:
    """Return what each scheme's name stands for."""
    rows = [
        f"| `{name}` | `{scheme.rule}` | `{scheme.policy}` | "
        + ("any, or no cell" if scheme.method is None else f"`{scheme.method}`")
        + " |"
        for name, scheme in SCHEMES.items()
    ]
    heading = [
        "| `scheme` | `algorithm.rule` | `selection.policy` | `cell.method` |",
        "|---|---|---|---|",
    ]
    return "\n".join([*heading, *rows, ""])


def _sections() -> Iterator[str]:
    for name, info in Experiment.model_fields.items():
        if name == "cell":
            # The keys of a cell file are not repeated here: cell.md describes them.
            yield _table(
                f"`[{name}]`", " How the uploads over a cell are decided.", _rows(CellSection, CellConfig)
            )
            about = f" {(BatteryConfig.__doc__ or '').splitlines()[0]}"
            yield _table("`[cell.battery]`", about, _rows(BatteryConfig))
        elif name == "stop":  # absent by default
            yield _table("`[stop]`", f" {(StopSection.__doc__ or '').splitlines()[0]}", _rows(StopSection))
        elif _is_section(info.annotation):
            model: Any = info.annotation
            yield _table(f"`[{name}]`", f" {(model.__doc__ or '').splitlines()[0]}", _rows(model))


def _options_of_parts() -> str:
    """Return the options of every part that settings name, as its signature has them."""
    rows = []
    for key, part in _parts(Experiment, ""):
        kinds = part.kinds()
        for kind, entry in kinds.registry.items():
            options = kinds.parameters(entry).values()
            if options:
                told = ", ".join(f"`{one.name}`{_of_signature(one.default)}" for one in options)
                rows.append(f"| `{key}` | `{kind}` | {told} |")
    heading = ["**Options of parts**, with their defaults.", "", "| part | kind | options |", "|---|---|---|"]
    return "\n".join([*heading, *rows, ""])


def _parts(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[Part]]]:
    for name, info in model.model_fields.items():
        if name in CellConfig.model_fields and model is CellSection:
            continue  # cell.md describes them
        for section in sections_in(info.annotation):
            if issubclass(section, Part):
                yield prefix + name, section
            else:
                yield from _parts(section, f"{prefix}{name}.")


def _of_signature(default: Any) -> str:
    return "" if default in (None, Parameter.empty) else f" = {json.dumps(default)}"


def _rows(model: type[BaseModel], without: type[BaseModel] | None = None) -> list[str]:
    skipped = () if without is None else without.model_fields
    return [
        f"| `{key}` | {_default(info)} | {escape(info.description or '')} |"
        for key, info in model.model_fields.items()
        if key not in skipped and not _is_section(info.annotation)
    ]


def _table(title: str, about: str, rows: Iterable[str]) -> str:
    return "\n".join([f"**{title}**{about}", "", "| key | default | meaning |", "|---|---|---|", *rows, ""])


def _is_section(annotation: Any) -> bool:
    """Return whether a key stands for a table of its own, as a part does that has keys beside its kind."""
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return False
    return not issubclass(annotation, Part) or set(annotation.model_fields) != {"kind"}


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "needed"
    default = info.default.kind if isinstance(info.default, Part) else info.default
    return "–" if default is None else f"`{json.dumps(default)}`"
