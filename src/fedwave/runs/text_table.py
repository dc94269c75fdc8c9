"""A table of text that leaves the program: as LaTeX, Markdown or HTML, with its notes below it."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# What LaTeX reads otherwise, and the signs of our numbers. A minus before a digit is set as one.
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "–": "--",
    "η": r"$\eta$",
    "†": r"\textsuperscript{\dag}",
}
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_NUMBER = re.compile(r"[-+]?\d")
_MARKDOWN = re.compile(r"([\\|*_`<>\[\]])")


class Best(str):
    """The text of a cell that is the best of its column."""


@dataclass(frozen=True)
class TextTable:
    """Rows of text under headings; the first column names the row, columns of numbers stand right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_latex(self) -> str:
        """Return a tabular with the rules of the package booktabs, the best in bold, notes as comments."""
        lines = [
            "% \\usepackage{booktabs}",
            *(f"% {note}" for note in self.notes),
            f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in self._stand_right)}}}",
            "\\toprule",
            " & ".join(map(latex_text, self.header)) + " \\\\",
            "\\midrule",
            *(" & ".join(map(_latex_cell, row)) + " \\\\" for row in self.rows),
            "\\bottomrule",
            "\\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def to_markdown(self) -> str:
        """Return a table of GitHub's Markdown, the best in bold, and its notes below."""
        rule = ["---:" if right else "---" for right in self._stand_right]
        rows = [
            list(map(_markdown_text, self.header)),
            rule,
            *(list(map(_markdown_cell, r)) for r in self.rows),
        ]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([*lines, "", *(f"- {_markdown_text(note)}" for note in self.notes)]).rstrip() + "\n"

    @property
    def _stand_right(self) -> list[bool]:
        """Whether each column holds a number; the first one never counts as one."""
        columns = list(zip(*self.rows, strict=True))[1:] or [()] * (len(self.header) - 1)
        return [False, *(not column or any(map(_NUMBER.match, column)) for column in columns)]

    def _repr_html_(self) -> str:
        """Return the table for a notebook. Every name in it is a user's, and stays text."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in self.header)
        rows = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in self.rows)
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def latex_text(text: str) -> str:
    """Return text as LaTeX sets it, whatever is in it."""
    parts = _MINUS.split(text)
    return "$-$".join("".join(_LATEX.get(sign, sign) for sign in part) for part in parts)


def _latex_cell(cell: str) -> str:
    return f"\\textbf{{{latex_text(cell)}}}" if isinstance(cell, Best) else latex_text(cell)


def _markdown_text(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _markdown_cell(cell: str) -> str:
    return f"**{_markdown_text(cell)}**" if isinstance(cell, Best) else _markdown_text(cell)


def _html_cell(cell: str) -> str:
    text = html.escape(cell)
    return f"<td><b>{text}</b></td>" if isinstance(cell, Best) else f"<td>{text}</td>"
