"""What the site needs beside docs/: the repository's own pages, linked source files, diagrams inside pages.

The pages in docs/ are written to read well in the repository, too. So links may leave docs/ there
(``../src/fedwave/rng.py``, ``../CONTRIBUTING.md``); on the site each such file becomes a page. A link to a
file that does not exist fails the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

from fedwave.lazy import homes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# Pages of the repository: their file, and their page on the site.
OF_REPOSITORY = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    "RELEASING.md": "releasing.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
# A source page has the whole width, and is not searched: its words are not the documentation's.
SOURCE_PAGE = "---\nhide: [toc]\nsearch:\n  exclude: true\n---\n"
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml"}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
DIAGRAM = re.compile(r"^!\[[^\]]*\]\((figures/[\w-]+\.svg)\)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the repository's pages, and a page for every source file that a page links to."""
    for name, page in OF_REPOSITORY.items():
        files.append(File.generated(config, page, content=_read(name)))
    linked = set()
    for path in [*DOCS.glob("*.md"), *(ROOT / name for name in OF_REPOSITORY)]:
        for target, _ in LINK.findall(_without_code(path.read_text(encoding="utf-8"))):
            found = _in_repository(target, path.parent)
            if found is not None and Path(found).suffix in LANGUAGES and not found.startswith("docs/"):
                if not (ROOT / found).is_file():
                    raise SystemExit(f"error: {path.name} links to {found}, which does not exist.")
                linked.add(found)
    for found in sorted(linked):
        language = LANGUAGES[Path(found).suffix]
        text = f"{SOURCE_PAGE}# {Path(found).name}\n\n`{found}`\n\n~~~~{language}\n{_read(found)}~~~~\n"
        page = File.generated(config, _source_page(found), content=text, inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make links into the repository links into the site, and marks of our tests ordinary code blocks."""
    del files
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    folder = ROOT if uri in OF_REPOSITORY.values() else DOCS
    markdown = _with_titles(markdown, config.nav)
    markdown = LINK.sub(lambda link: _rewritten(link, folder), markdown)
    markdown = DIAGRAM.sub(lambda picture: _inline(DOCS / picture[1]), markdown)
    markdown = re.sub(r"^```python (?:runnable|flower)$", "```python", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^```python file=(\S+)$", r'```python title="\1"', markdown, flags=re.MULTILINE)
    return _with_reference(markdown) if uri == "api.md" else markdown


def on_post_build(config: Any) -> None:
    """Fail if a built page would fetch anything from elsewhere: the site must work offline."""
    fetched = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//[^\s>]+|"
        r"<link[^>]+href=[\"']?(?:https?:)?//[^\s>]+"
    )
    site = Path(config["site_dir"])
    for page in site.rglob("*.html"):
        found = fetched.search(page.read_text(encoding="utf-8"))
        if found:
            raise SystemExit(f"error: {page.relative_to(site)} fetches from elsewhere: {found[0]}")
    for sheet in site.rglob("*.css"):
        found = re.search(
            r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", sheet.read_text(encoding="utf-8")
        )
        if found:
            raise SystemExit(f"error: {sheet.relative_to(site)} fetches from elsewhere: {found[0]}")


def _rewritten(link: re.Match[str], folder: Path) -> str:
    target, anchor = link[1], link[2] or ""
    found = _in_repository(target, folder)
    if found is None:
        return link[0]
    if found in OF_REPOSITORY:
        return f"]({OF_REPOSITORY[found]}{anchor})"
    if found.startswith("docs/"):
        return f"]({found.removeprefix('docs/')}{anchor})"
    if found == "README.md":
        return "](index.md)"
    return f"]({_source_page(found)}{anchor})" if Path(found).suffix in LANGUAGES else link[0]


def _with_titles(markdown: str, nav: Any) -> str:
    """Return links like ``[cell.md](cell.md#fading)`` with the page's title for the name of its file."""
    titles = {name: title for title, name in _entries(nav)}

    def titled(link: re.Match[str]) -> str:
        return f"[{titles[link[1]]}]({link[2]})" if link[1] in titles else link[0]

    return re.sub(r"\[([\w-]+\.md)\]\((\1(?:#[^)\s]*)?)\)", titled, markdown)


def _entries(nav: Any) -> Iterator[tuple[str, str]]:
    for entry in nav:
        for title, inside in entry.items():
            if isinstance(inside, str):
                yield title, inside
            else:
                yield from _entries(inside)


def _in_repository(target: str, folder: Path) -> str | None:
    """Return a link's target as a path in the repository; None for the web."""
    if re.match(r"[a-z]+:", target):
        return None
    return posixpath.normpath(posixpath.join(folder.relative_to(ROOT).as_posix(), target))


def _source_page(found: str) -> str:
    return f"source/{found}.md"


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _without_code(text: str) -> str:
    return CODE.sub("", text)


def _inline(path: Path) -> str:
    """Return a drawing as part of its page, where it has the page's colours and its links lead on."""
    text = re.sub(r"<\?xml.*?\?>\s*", "", path.read_text(encoding="utf-8"))
    return f'<div class="diagram">\n{text.strip()}\n</div>'


def _with_reference(markdown: str) -> str:
    """Return api.md with a directive below each of its tables for every name in it, and links to them."""
    lines: list[str] = []
    names: list[str] = []
    for line in [*markdown.splitlines(), ""]:
        row = re.match(r"\| `([\w.]+)` (\|.*)", line)
        if row:
            full = _full_name(row[1])
            names.append(full)
            line = f"| [`{row[1].rpartition('.')[2]}`](#{full}) {row[2]}"
        elif names:
            lines += ["", *map(_directive, names)]
            names = []
        lines.append(line)
    return "\n".join(lines)


def _directive(name: str) -> str:
    """Return what makes a name's reference; what a call returns has all that it inherits, too."""
    is_inherited = name.rpartition(".")[2] in ("RunResult", "FinishedRun")
    return f"::: {name}\n" + ("    options:\n      inherited_members: true\n" if is_inherited else "")


def _full_name(name: str) -> str:
    """Return where a public name is defined if a module has the same name, which would be taken for it."""
    if "." in name:
        return name
    home = homes("fedwave").get(name)
    if home is None:
        raise SystemExit(f"error: docs/api.md names {name}, which is no public name of fedwave.")
    has_namesake = (ROOT / "src" / home.replace(".", "/") / f"{name}.py").exists()
    return f"{home}.{name}.{name}" if has_namesake else f"fedwave.{name}"
