"""One look for every figure: names are shown as they are, and files are pictures."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.plots.style import (
    MAX_NAME,
    SCHEME_COLOURS,
    Picture,
    new_figure,
    plain,
    require_picture_name,
    schemes_of,
)


def test_a_name_is_text_and_neither_a_formula_nor_hidden_nor_long() -> None:
    assert plain("a\nb  c") == "a b c"
    assert plain("5 $") == r"5 \$"
    assert plain("_own") == "own"
    assert plain("x" * MAX_NAME) == "x" * MAX_NAME
    assert plain("x" * (MAX_NAME + 1)) == "x" * (MAX_NAME - 1) + "…"


@pytest.mark.parametrize("name", ["a.png", "a.PDF", "a.svg"])
def test_a_picture_ends_in_its_format(name: str, tmp_path: Path) -> None:
    require_picture_name(tmp_path / name)
    (tmp_path / name).mkdir()
    for wrong in (tmp_path / name, tmp_path / "a.docx", tmp_path / "a"):
        with pytest.raises(RunError, match=r"cannot write the picture .*\.png"):
            require_picture_name(wrong)


def test_a_figure_has_its_axes_and_is_written_and_shown(tmp_path: Path) -> None:
    figure, axes = new_figure(2, num_rows=3)
    assert len(axes) == 6
    picture = Picture(figure)
    assert picture.save(tmp_path / "new" / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert picture._repr_png_()[:4] == b"\x89PNG"


def test_the_explorer_has_the_colours_of_the_schemes() -> None:
    static = resources.files("fedwave.explore") / "static"
    classes = dict(
        re.findall(r'"([^"]+)": "([a-z-]+)"', (static / "runs.js").read_text().split("looksOf")[0])
    )
    css = (static / "style.css").read_text()
    colours = dict(re.findall(r"(--[ms]-[a-z-]+): (#[0-9a-f]{6});", css.split(":root[data-theme")[0]))
    variables = dict(re.findall(r"\.q-([a-z-]+) \{ --c: var\((--[ms]-[a-z-]+)\); \}", css))
    shown = {name: colours[variables[classes[name]]].upper() for name in classes if name in SCHEME_COLOURS}
    assert shown == SCHEME_COLOURS


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["NUFM-Greedy, UMi"], {"NUFM-Greedy, UMi": "NUFM-Greedy"}),
        (["NUFM (meta_lr=0.1)", "mine"], {"NUFM (meta_lr=0.1)": "NUFM"}),
        (["URAL (optimal), 24 h", "mine"], {"URAL (optimal), 24 h": "URAL (optimal)"}),
        # Of two that could have the colour nobody has it, but for the scheme itself.
        (["NUFM (meta_lr=0.1)", "NUFM (meta_lr=0.2)"], {}),
        (["NUFM", "NUFM, 10,000 devices"], {"NUFM": "NUFM"}),
        (["NUFMs", "NUFM-like", ""], {}),
    ],
)  # fmt: skip
def test_a_name_that_says_more_keeps_the_colour_of_its_scheme(
    names: list[str], expected: dict[str, str]
) -> None:
    assert schemes_of(names) == expected
