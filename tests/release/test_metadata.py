"""Version, changelog, citation, addresses, pins and interpreters say the same wherever they stand."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

import fedwave
from tools import release
from tools.docs.pages import DOCS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copies of the files that a release looks at."""
    for path in (*release.addressed(), ROOT / "CHANGELOG.md", ROOT / release.VERSION_FILE):
        to = tmp_path / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_is_here_fits_together():
    assert release.version() == fedwave.__version__
    assert list(release.problems()) == []
    assert f"fedwave {fedwave.__version__}\n" in (DOCS / "command-line.md").read_text(encoding="utf-8")


def test_the_version_stands_in_one_place():
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CHANGELOG.md", "## Unreleased\n", "", 'must begin with "Unreleased", got "0.2.0 - 2026-11-18"'),
        ("CHANGELOG.md", "## 0.2.0 - 2026-11-18", "## 0.2.0", 'needs the heading "## 0.2.0 - YYYY-MM-DD"'),
        (
            "CITATION.cff",
            "version: 0.2.0",
            "version: 0.1.0",
            "CITATION.cff has version 0.1.0, the package 0.2.0",
        ),
        ("CITATION.cff", "date-released: 2026-11-18", "date-released: 2026-11-17", "which has 2026-11-18"),
        (
            "CITATION.cff",
            "github.com/fedwave/fedwave",
            "github.com/other/fedwave",
            "the repository other/fedwave",
        ),
        ("pyproject.toml", "usercontent.com/fedwave/", "usercontent.com/other/", "pyproject.toml names the"),
        (release.VERSION_FILE, '"0.2.0"', '"0.3.0"', 'needs the heading "## 0.3.0'),
    ],
)
def test_what_does_not_fit_is_named(copy, name, old, new, said):
    assert list(release.problems(copy)) == []
    change(copy / name, old, new)
    assert any(said in line for line in release.problems(copy))


def test_a_tag_must_be_the_versions_and_nothing_may_be_unreleased(copy):
    text = (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    (copy / "CHANGELOG.md").write_text(
        re.sub(
            r"## Unreleased.*?(?=^## )", "## Unreleased\n\n", text, count=1, flags=re.DOTALL | re.MULTILINE
        ),
        encoding="utf-8",
    )
    assert list(release.problems(copy, tag="v0.2.0")) == []
    assert "the tag must be v0.2.0, got v0.2.1" in next(release.problems(copy, tag="v0.2.1"))
    change(copy / "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- A line.\n")
    assert list(release.problems(copy)) == []  # between two releases that is as it should be
    assert list(release.problems(copy, tag="v0.2.0")) == [
        'CHANGELOG.md has lines under "Unreleased". Move them under 0.2.0.'
    ]


def test_another_repository_is_noticed_and_put_in_everywhere(copy):
    there = "https://github.com/lab/their-fork"
    assert f"but this is {there}" in next(release.problems(copy, at=there))
    release.write_repository(there, copy)
    assert list(release.problems(copy, at=there)) == []
    for path in release.addressed(copy):
        assert "fedwave/fedwave" not in path.read_text(encoding="utf-8"), path
    assert "https://lab.github.io/their-fork" in (copy / "CITATION.cff").read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="must be https://github.com/OWNER/NAME, got their-fork"):
        release.write_repository("their-fork", copy)


def test_the_citation_has_what_a_reference_needs():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    assert citation["url"] == PROJECT["urls"]["Documentation"]
    assert citation["license"] == PROJECT["license"]
    (paper,) = citation["references"]
    assert {"journal", "volume", "issue", "start", "end", "doi", "year", "title"} <= set(paper)
    assert [author["family-names"] for author in paper["authors"]][:2] == ["Yue", "Ren"]


def test_pre_commit_has_the_ruff_of_ci():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"\nruff=={repository['rev'].removeprefix('v')}\n" in pins
    assert {hook["id"] for hook in repository["hooks"]} == {"ruff-check", "ruff-format"}
