"""The tables of settings in docs/training.md, made from the schema.

python -m tests.docs.settings_table        # rewrites them
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.schema import Experiment

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BETWEEN = re.compile(r"(<!-- settings:begin .*? -->\n).*?(<!-- settings:end -->)", re.DOTALL)


def settings_tables() -> str:
    """Return one table per section, as they must stand in the page."""
    sections = {"Top level": Experiment, **{f"[{key}]": model for key, model in _sections()}}
    return "\n".join(_table(title, model) for title, model in sections.items())


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    for name, info in Experiment.model_fields.items():
        if name == "cell":
            yield name, CellSection
        elif isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield name, info.annotation


def _table(title: str, model: type[BaseModel]) -> str:
    heading = title if title == "Top level" else f"`{title}`"
    about = "" if model is Experiment else f" {(model.__doc__ or '').splitlines()[0]}"
    rows = [
        f"| `{key}` | {_default(info)} | {_escape(info.description or '')} |"
        for key, info in model.model_fields.items()
        if not _is_section(info.annotation) or key == "cell"
    ]
    return "\n".join([f"**{heading}**{about}", "", "| key | default | meaning |", "|---|---|---|", *rows, ""])


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _default(info: FieldInfo) -> str:
    return "–" if info.default is None else f"`{json.dumps(info.default)}`"


def _escape(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BETWEEN.sub(lambda m: m[1] + settings_tables() + m[2], page), encoding="utf-8")
