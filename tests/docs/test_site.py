"""The site builds from the repository alone; what is broken fails the build; no page needs the network."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pages.browser import browser
from tools.docs.api_table import GROUPS
from tools.docs.pages import DOCS, ROOT, read

PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASING.md", "CODE_OF_CONDUCT.md", "README.md")
PARTS = (*PAGES, "mkdocs.yml", "docs", "examples", "src")


@pytest.fixture(scope="module")
def hook() -> Any:
    spec = importlib.util.spec_from_file_location("site_hook", DOCS / "site_hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_link_into_the_repository_leads_to_a_page_of_the_site(hook: Any) -> None:
    def rewritten(text: str, folder: Path) -> str:
        return hook.LINK.sub(lambda link: hook._rewritten(link, folder), text)

    assert rewritten("[a](../CONTRIBUTING.md#style)", DOCS) == "[a](contributing.md#style)"
    assert rewritten("[a](../src/fedwave/rng.py)", DOCS) == "[a](source/src/fedwave/rng.py.md)"
    assert rewritten("[a](docs/cell.md#fading)", ROOT) == "[a](cell.md#fading)"
    for untouched in ("[a](https://arxiv.org/abs/1#x)", "[a](#here)", "![a](figures/demo.png)"):
        assert rewritten(untouched, DOCS) == untouched


def test_marks_of_our_tests_do_not_show(hook: Any) -> None:
    class Page:
        class file:  # noqa: N801 - as mkdocs calls it
            src_uri = "tutorial.md"

    class Config:
        nav = ({"Home": "index.md"}, {"Guides": ({"Radio cells": "cell.md"},)})

    text = "```python runnable\nx = 1\n```\n```python file=a.py\ny = 2\n```\nsee [cell.md](cell.md#fading)\n"
    made = hook.on_page_markdown(text, Page, Config, None)
    assert made == (
        '```python\nx = 1\n```\n```python title="a.py"\ny = 2\n```\nsee [Radio cells](cell.md#fading)\n'
    )


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        "<img alt='' src='//cdn.example/x.png'>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link href="https://fonts.example" rel="preconnect">',
        "@import url(https://fonts.example/css)",
        "a { background: url('//cdn.example/x.png') }",
    ],
)
def test_a_page_that_fetches_from_elsewhere_is_noticed(hook: Any, tmp_path: Path, page: str) -> None:
    (tmp_path / ("a.html" if page.startswith("<") else "a.css")).write_text(page)
    with pytest.raises(SystemExit, match="fetches from elsewhere"):
        hook.on_post_build({"site_dir": str(tmp_path)})


def test_a_page_that_only_links_elsewhere_is_not(hook: Any, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://arxiv.org">x</a><script src="js/a.js"></script>')
    (tmp_path / "a.css").write_text("a { background: url(x.png) }")
    hook.on_post_build({"site_dir": str(tmp_path)})


def test_the_navigation_has_every_page_once(hook: Any) -> None:
    named = re.findall(r"^ +- .+: ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {path.name for path in DOCS.glob("*.md")} | set(hook.OF_REPOSITORY.values())
    assert sorted(named) == sorted(pages)


def test_a_name_that_a_module_has_too_is_the_functions(hook: Any) -> None:
    assert hook._full_name("user_split") == "fedwave.data.user_split.user_split"
    assert hook._full_name("allocate") == "fedwave.allocate"
    assert hook._full_name("fedwave.runs.run.RunResult") == "fedwave.runs.run.RunResult"
    with pytest.raises(SystemExit, match="names nothing, which is no public name"):
        hook._full_name("nothing")


# Whole builds ----------------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / part)
    return tmp_path


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_site_builds_with_search_and_a_reference_of_every_public_name(copy: Path) -> None:
    done = build(copy)
    assert done.returncode == 0, done.stderr
    reference = (copy / "site" / "api.html").read_text(encoding="utf-8")
    described = re.findall(r'<h3 id="(fedwave[\w.]+)"', reference)
    named = [name.rpartition(".")[2] for names in GROUPS.values() for name in names]
    assert [name.rpartition(".")[2] for name in described] == named
    assert "doc-symbol-module" not in reference  # user_split the function, not its file
    assert 'id="fedwave.runs.run.RunResult.heldout"' in reference
    index = json.loads((copy / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].split("#")[0] for entry in index["docs"] if "turning point" in entry["text"]}
    assert "training.html" in found
    for page in (copy / "site").glob("*.html"):
        assert "<p>```" not in page.read_text(encoding="utf-8"), f"a block of {page.name} is no block"
    round_page = (copy / "site" / "one-round.html").read_text(encoding="utf-8")
    assert "<svg" in round_page
    for page, anchor in re.findall(r'<a href="([\w-]+\.html)#([\w-]+)"><tspan', round_page):
        assert f'id="{anchor}"' in (copy / "site" / page).read_text(encoding="utf-8"), anchor
    assert (copy / "site" / "source" / "src" / "fedwave" / "simulation" / "round.py.html").exists()


@pytest.mark.processes
def test_a_browser_typesets_every_formula_of_the_site(copy: Path) -> None:
    program = browser()
    done = build(copy)
    assert done.returncode == 0, done.stderr
    pages = [
        page for page in (copy / "site").glob("*.html") if 'class="arithmatex"' in page.read_text("utf-8")
    ]
    assert len(pages) >= 12
    for page in pages:
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += [
            f"--user-data-dir={copy / 'profile'}",
            "--virtual-time-budget=8000",
            "--dump-dom",
            page.as_uri(),
        ]
        seen = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
        formulas = re.findall(r'<(?:span|div) class="arithmatex">(.{40})', seen, re.DOTALL)
        assert formulas, page.name
        assert [text for text in formulas if 'class="katex' not in text] == [], page.name
        assert "katex-error" not in seen, page.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("](extending.md)", "](extendin.md)", "extendin.md"),
        ("equations.md#alg-1)", "equations.md#alg-11)", "alg-11"),
        ("../src/fedwave/simulation/round.py", "../src/fedwave/simulation/rounds.py", "rounds.py"),
    ],
    ids=["page", "anchor", "source file"],
)
def test_a_broken_link_fails_the_build(copy: Path, old: str, new: str, said: str) -> None:
    page = copy / "docs" / "one-round.md"
    assert old in read("one-round.md")
    page.write_text(read("one-round.md").replace(old, new, 1), encoding="utf-8")
    done = build(copy)
    assert done.returncode != 0
    assert said in done.stderr
