"""Says what does not fit together before a version comes out: version, tag, changelog, citation, addresses.

    python -m tools.release [--tag vX.Y.Z] [--repository ADDRESS [--write]]

Needs nothing but Python. ``--write`` puts another address of the repository into every file that names it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/fedwave/__init__.py"
# The files that name where the repository is. pyproject.toml decides; the others follow.
ADDRESSED = (
    "pyproject.toml",
    "CITATION.cff",
    ".github/ISSUE_TEMPLATE/config.yml",
    "notebooks/*.py",
    "notebooks/*.ipynb",
)
SLUG = re.compile(r"(?:github\.com|githubusercontent\.com|/github|/gh)/([\w.-]+/[\w.-]+?)(?=/|\"|'|\)|\s|$)")


def version(root: Path = ROOT) -> str:
    """Return the version of the package, from the one place where it stands."""
    return _found(r'^__version__ = "(.+)"$', root / VERSION_FILE)


def repository(root: Path = ROOT) -> str:
    """Return the address of the repository, from ``[project.urls]``."""
    urls = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    return str(urls["Repository"])


def problems(root: Path = ROOT, *, tag: str | None = None, at: str | None = None) -> Iterator[str]:
    """Yield every reason why this version cannot come out, as a line each."""
    now, address = version(root), repository(root)
    if tag is not None and tag != f"v{now}":
        yield f"the tag must be v{now}, got {tag}. Set __version__ in {VERSION_FILE}, or tag again."
    if at is not None and at != address:
        yield (
            f"pyproject.toml names {address}, but this is {at}. "
            f"Run: python -m tools.release --repository {at} --write"
        )
    headings = re.findall(
        r"^## ([^\n]+)\n(.*?)(?=^## |\Z)",
        (root / "CHANGELOG.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    if headings[0][0] != "Unreleased":
        yield f'CHANGELOG.md must begin with "Unreleased", got "{headings[0][0]}".'
    elif tag is not None and headings[0][1].strip():
        yield f'CHANGELOG.md has lines under "Unreleased". Move them under {now}.'
    dated = re.fullmatch(rf"{re.escape(now)} - (\d{{4}}-\d\d-\d\d)", headings[1][0] if headings[1:] else "")
    if dated is None:
        yield f'CHANGELOG.md needs the heading "## {now} - YYYY-MM-DD" below "Unreleased".'
    citation = root / "CITATION.cff"
    if _found(r"^version: (.+)$", citation) != now:
        yield f"CITATION.cff has version {_found(r'^version: (.+)$', citation)}, the package {now}."
    if dated is not None and _found(r"^date-released: (.+)$", citation) != dated[1]:
        yield f"CITATION.cff has another date than CHANGELOG.md, which has {dated[1]}."
    for path in addressed(root):
        for slug in sorted(set(SLUG.findall(path.read_text(encoding="utf-8")))):
            if not address.endswith(f"/{slug}"):
                yield f"{path.relative_to(root)} names the repository {slug}, pyproject.toml {address}."


def addressed(root: Path = ROOT) -> list[Path]:
    """Return the files that name the repository."""
    return sorted(path for pattern in ADDRESSED for path in root.glob(pattern))


def write_repository(address: str, root: Path = ROOT) -> None:
    """Put another repository into every file that names it; the site is taken to be its GitHub Pages."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", address)
    if found is None:
        raise SystemExit(f"error: --repository must be https://github.com/OWNER/NAME, got {address}.")
    old = "/".join(repository(root).rsplit("/", 2)[1:])
    old_owner, old_name = old.split("/")
    for path in addressed(root):
        text = path.read_text(encoding="utf-8")
        text = text.replace(f"{old_owner}.github.io/{old_name}", f"{found[1]}.github.io/{found[2]}")
        path.write_text(SLUG.sub(lambda slug: slug[0].replace(old, f"{found[1]}/{found[2]}"), text), "utf-8")


def _found(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: {path.name} has no line like {pattern}.")
    return found[1]


def main() -> None:
    """Print the problems, one a line; the exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tag")
    parser.add_argument("--repository")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write:
        if given.repository is None:
            raise SystemExit("error: --write needs --repository ADDRESS.")
        write_repository(given.repository)
    found = list(problems(tag=given.tag, at=given.repository))
    print("\n".join(found) or f"fedwave {version()} of {repository()} fits together.")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
