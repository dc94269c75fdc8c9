"""Formulas: they are LaTeX that is complete, and the site typesets them with what it brings along."""

from __future__ import annotations

import re

import pytest

from tools.docs.pages import DOCS, read

BLOCK = re.compile(r"^```math\n(.*?)^```", re.MULTILINE | re.DOTALL)
FORMULAS = BLOCK.findall(read("equations.md"))
ASSETS = DOCS / "site_assets" / "katex"


def test_every_equation_of_the_page_has_a_formula():
    assert len(FORMULAS) == 22
    assert not re.search(r"^    \S", BLOCK.sub("", read("equations.md")), re.MULTILINE)  # none left as code


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_is_opened_in_a_formula_is_closed(formula):
    assert formula.count("{") == formula.count("}")
    assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula))
    assert re.findall(r"\\begin\{(\w+)\}", formula) == re.findall(r"\\end\{(\w+)\}", formula)
    assert formula.isascii()  # letters by their names: fonts of KaTeX have no others


def test_the_fonts_that_the_sheet_names_are_there_and_no_others():
    named = re.findall(r"url\(([^)]+)\)", (ASSETS / "katex.min.css").read_text(encoding="utf-8"))
    assert {ASSETS / name for name in named} == set((ASSETS / "fonts").iterdir())
    assert "MIT" in (ASSETS / "LICENSE.txt").read_text(encoding="utf-8")
