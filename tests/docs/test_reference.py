"""The reference: every public name is in it, and every equation leads to a file that cites it."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import fedwave
from tools.docs.api_table import GROUPS
from tools.docs.pages import ROOT, read

EQUATIONS = read("equations.md")
SECTIONS = re.findall(r"^### (.+)\n((?:(?!^###? ).*\n?)*)", EQUATIONS, re.MULTILINE)


def test_the_reference_names_every_public_name_once():
    named = [name for names in GROUPS.values() for name in names if "." not in name]
    assert sorted(named) == sorted(set(fedwave.__all__) - {"__version__"})


@pytest.mark.parametrize("name", [name for names in GROUPS.values() for name in names])
def test_a_public_name_is_explained(name):
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module) if module else fedwave, attribute)
    assert len((found.__doc__ or "").splitlines()[0]) > 10


def numbers_in(text: str) -> set[str]:
    """Return the equations, lemmas, theorems and algorithms that a text cites: {"(25)", "Lemma 6", ...}."""
    found = set(re.findall(r"(?:Lemma|Theorem|Alg\.) \d", text))
    for kind, first, second in re.findall(r"(Lemma|Theorem)s (\d) and (\d)", text):
        found |= {f"{kind} {first}", f"{kind} {second}"}
    for first, last in re.findall(r"\((\d+)\)(?:-|–| to )\((\d+)\)", text):
        found |= {f"({number})" for number in range(int(first), int(last) + 1)}
    return found | set(re.findall(r"\(\d+\)", text)) | ({"(P)"} if "(P)" in text else set())


@pytest.mark.parametrize(("title", "body"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_the_files_of_an_equation_cite_it(title, body):
    files = re.findall(r"\]\(\.\./((?:src|examples)/[\w/.]+\.py)\)", body)
    assert files, "no file"
    cited = set().union(*(numbers_in((ROOT / file).read_text(encoding="utf-8")) for file in files))
    for number in numbers_in(title):
        assert number in cited, f"none of {files} cites {number}"


def test_every_equation_that_the_learning_radio_and_allocation_code_cites_is_on_the_page():
    there = set().union(*(numbers_in(title) | numbers_in(body) for title, body in SECTIONS))
    for part in ("learning", "selection", "allocation", "server", "devices", "theory", "simulation"):
        for path in (ROOT / "src" / "fedwave" / part).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                for number in re.findall(r"Eq\. (\(\d+\))|(Lemma \d|Theorem \d|Alg\. \d)", line):
                    cited = number[0] or number[1]
                    assert cited in there, f"{path.name} cites {cited}"


def test_functions_that_the_page_names_are_in_the_file_before_them():
    for file, names in re.findall(r"\]\(\.\./(src/[\w/.]+\.py)\), ((?:`\w+`(?: and )?)+)", EQUATIONS):
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert f"def {name}(" in text, f"{name} is not in {file}"


def test_each_step_of_one_round_has_its_equation_and_its_file():
    steps = re.findall(r"^\d\. \*\*`[\w.]+`\*\* .*\n(?:    - .*\n)+", read("one-round.md"), re.MULTILINE)
    assert len(steps) == 8
    for step in steps:
        assert "](equations.md#" in step
        assert "](../src/fedwave/" in step
