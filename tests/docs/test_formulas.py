"""Formulas: they are LaTeX that KaTeX and GitHub both read; the site brings along what typesets them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from tools.docs.pages import DOCS, PAGES, read

FENCE = re.compile(r"^( *)```(\w*).*?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!--=.*?<!--/=-->|<!-- \w+:begin .*?:end -->", re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
INLINE = re.compile(r"\$([^$\n]+)\$")
ASSETS = DOCS / "site_assets" / "katex"
RENDER = """
const katex = require(process.argv[1]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf8"));
const wrong = [];
for (const [page, isBlock, text] of formulas) {
  try { katex.renderToString(text, { displayMode: isBlock, throwOnError: true, strict: "error" }); }
  catch (error) { wrong.push(page + ": " + text + ": " + error.message); }
}
console.log(JSON.stringify(wrong));
"""


def prose(page: str) -> str:
    """Return a page without what a script writes, blocks and code in a line."""
    return CODE.sub("x", FENCE.sub("", GENERATED.sub("", read(page))))


PROSE = {path.name: prose(path.name) for path in PAGES}
BLOCKS = [(name, text) for name in PROSE for _, kind, text in FENCE.findall(read(name)) if kind == "math"]
INLINES = [(name, text) for name, page in PROSE.items() for text in INLINE.findall(page)]
FORMULAS = [*BLOCKS, *INLINES]


def test_every_equation_of_the_paper_has_a_formula():
    assert sum(name == "equations.md" for name, _ in BLOCKS) == 22
    assert len(FORMULAS) > 300


@pytest.mark.parametrize("name", PROSE)
def test_no_formula_is_left_as_plain_text(name):
    """A line that stands by itself, indented, and roots, sums, gradients and norms belong into formulas."""
    text = INLINE.sub("", PROSE[name])
    assert not re.findall(r"^    (?![-*\d ]).*[=≤≥].*$", text, re.MULTILINE)
    assert not re.findall(r"^.*(?:[Σ√∇‖ᵛᵏ]|e\^|\^\().*$", text, re.MULTILINE)


@pytest.mark.parametrize("name", PROSE)
def test_every_dollar_of_the_prose_belongs_to_a_formula(name):
    assert "$" not in INLINE.sub("", PROSE[name])


@pytest.mark.parametrize(("name", "formula"), FORMULAS)
def test_what_is_opened_in_a_formula_is_closed(name, formula):
    assert formula.count("{") == formula.count("}")
    assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula))
    assert re.findall(r"\\begin\{(\w+)\}", formula) == re.findall(r"\\end\{(\w+)\}", formula)
    assert formula.isascii()  # letters by their names: fonts of KaTeX have no others


@pytest.mark.parametrize(("name", "formula"), INLINES)
def test_a_formula_in_a_line_has_nothing_that_markdown_takes_for_its_own(name, formula):
    """GitHub drops a backslash before punctuation, stars make text slanted, bars end a table's cell."""
    assert formula == formula.strip()
    assert not re.search(r"\\[^A-Za-z]|[*|<>]", formula)


def test_katex_reads_every_formula():
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node is installed: only the site's own test in a browser reads the formulas")
    told = [(name, True, text) for name, text in BLOCKS] + [(name, False, text) for name, text in INLINES]
    done = subprocess.run(
        [node, "-e", RENDER, str(ASSETS / "katex.min.js")],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_the_fonts_that_the_sheet_names_are_there_and_no_others():
    named = re.findall(r"url\(([^)]+)\)", (ASSETS / "katex.min.css").read_text(encoding="utf-8"))
    assert {ASSETS / name for name in named} == set((ASSETS / "fonts").iterdir())
    assert "MIT" in (ASSETS / "LICENSE.txt").read_text(encoding="utf-8")
