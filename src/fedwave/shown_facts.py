"""A thing shown in one line or as a small table of its facts, as prompts and notebooks ask for it."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping


class ShownFacts:
    """What has a short ``repr`` and a table in a notebook; ``_facts`` says what stands there."""

    def _facts(self) -> Mapping[str, object]:
        raise NotImplementedError

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {fact_text(value)}" for name, value in self._facts().items())
        return f"<{type(self).__name__}: {said}>"

    def _repr_html_(self) -> str:
        """Return the facts as a small table. Every name in it is a user's, and stays text."""
        return facts_table(self._facts())


def facts_table(facts: Mapping[str, object]) -> str:
    """Return facts as a table of HTML; whatever is in them stays text."""
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(fact_text(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"


def fact_text(value: object) -> str:
    """Return a fact as text; numbers have four digits."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return str(value)
