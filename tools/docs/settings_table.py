"""The tables of settings and schemes in docs/training.md, made from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schema import Experiment
from fedwave.experiments.schemes import SCHEMES
from fedwave.wireless.config import CellConfig
from tools.docs.pages import escape

SCHEME_ROW = "| `scheme` | – | Stands for a gradient, a policy and a method: " + ", ".join(SCHEMES) + ". |"


def settings_tables() -> str:
    """Return one table per section, as they must stand in the page."""
    return "\n".join([_table("Top level", "", [SCHEME_ROW, *_rows(Experiment)]), *_sections()])


def schemes_table() -> str:
    """Return what each scheme's name stands for."""
    rows = [
        f"| `{name}` | `{scheme.gradient}` | `{scheme.policy}` | "
        + ("any, or no cell" if scheme.method is None else f"`{scheme.method}`")
        + " |"
        for name, scheme in SCHEMES.items()
    ]
    heading = [
        "| `scheme` | `algorithm.gradient` | `selection.policy` | `cell.method` |",
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
        elif _is_section(info.annotation):
            model: Any = info.annotation
            yield _table(f"`[{name}]`", f" {(model.__doc__ or '').splitlines()[0]}", _rows(model))


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
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _default(info: FieldInfo) -> str:
    return "–" if info.default is None else f"`{json.dumps(info.default)}`"
