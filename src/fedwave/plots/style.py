"""One look for every figure."""

from __future__ import annotations

import errno
import io
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedwave.errors import RunError, import_extra

# Okabe and Ito's colour-blind safe palette, most distinct first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A900")

# One colour for one scheme in every picture, page and in the explorer (``explore/static/style.css``), where
# a scheme over a cell has the colour of its method.
SCHEME_COLOURS = {
    "NUFM": "#000000",
    "Per-FedAvg": "#E69F00",
    "FedAvg": "#56B4E9",
    "URAL (optimal)": "#009E73",
    "URAL (IVES)": "#D55E00",
    "NUFM-Greedy": "#0072B2",
    "NUFM-Random": "#8A8F98",
    "RU-Greedy": "#CC79A7",
    "RU-Random": "#B8A900",
    "Threshold": "#5B3FA0",
    "Value-rate": "#4B6B00",
    "Proportional fair": "#7A5230",
}


def schemes_of(names: Iterable[str]) -> dict[str, str]:
    """Return the scheme of each name that has one: "NUFM-Greedy, UMi" is NUFM-Greedy, if no other name is."""
    given = list(dict.fromkeys(names))
    longest_first = sorted(SCHEME_COLOURS, key=len, reverse=True)
    found = {
        name: next(
            (one for one in longest_first if name == one or name.startswith((f"{one}, ", f"{one} ("))), ""
        )
        for name in given
    }
    return {
        name: scheme
        for name, scheme in found.items()
        if scheme and (name == scheme or (scheme not in given and list(found.values()).count(scheme) == 1))
    }


# Inches of a column and of a page of IEEE's two-column papers (21 and 43 picas).
WIDTHS_IN = {"column": 3.5, "page": 7.16}

MAX_NAME = 60  # characters of a name in a legend or title
FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg")
WIDE_DECADES = 2.5  # of a logarithmic axis from which on powers of ten are labels enough
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a disk


@dataclass(frozen=True)
class Style:
    """Sizes of a figure: its type, its lines, and a panel where no width is asked for."""

    font_pt: float = 9.0
    line_pt: float = 1.5
    panel_in: tuple[float, float] = (3.5, 2.75)  # width and height
    has_heading: bool = True

    @property
    def scale(self) -> float:
        """Its type beside that of a screen."""
        return self.font_pt / SCREEN_PT


SCREEN_PT = 9.0
STYLES = {
    "screen": Style(),
    "paper": Style(font_pt=8.0, line_pt=1.2, panel_in=(2.4, 1.9), has_heading=False),  # its caption says it
    "slides": Style(font_pt=18.0, line_pt=3.0, panel_in=(10.0, 5.6)),
}

_SETTINGS: Any = {
    "pdf.fonttype": 42,  # publishers refuse type 3
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


def new_figure(num_columns: int, *, width: float = 3.6, height: float = 3.0, num_rows: int = 1) -> Any:
    """Return a figure and its flat list of axes, in the project's style."""
    import_extra("matplotlib", purpose="Plotting", extra="plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # not by pyplot: a notebook keeps its own way of showing figures

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(width * num_columns, height * num_rows), layout="constrained")
        axes = figure.subplots(num_rows, num_columns, squeeze=False)
    return figure, list(axes.flat)


def set_log_scale(axis: Any, low: float, high: float) -> None:
    """Make an axis (``axes.xaxis`` or ``.yaxis``) logarithmic over a range, with labels that stand apart."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    decades = math.log10(high / low) if 0.0 < low < high else 0.0
    if 0.0 < decades < WIDE_DECADES:  # decades alone would leave an axis with one label or none
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.0 else (1.0, 3.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing that a notebook shows by itself; ``figure`` is matplotlib's, to change it."""

    figure: Any

    def save(self, path: Path | str) -> Path:
        """Write it; the file name's ending chooses the format."""
        return save_figure(self.figure, Path(path))

    def _repr_png_(self) -> bytes:
        from matplotlib import rc_context

        content = io.BytesIO()
        with rc_context(_SETTINGS):
            self.figure.savefig(content, format="png")
        return content.getvalue()


def plain(text: str, *, most: int = MAX_NAME) -> str:
    """Return a user's name for a figure: no formula (a dollar begins one), no line break, not hidden."""
    line = " ".join(text.split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return line.replace("$", r"\$").removeprefix("_")


def save_figure(figure: Any, path: Path) -> Path:
    """Write the figure; the file name's ending chooses the format."""
    from matplotlib import rc_context

    try:
        require_picture_name(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with rc_context(_SETTINGS), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
            figure.savefig(path)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in FULL:  # the next one may be on another disk
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"cannot write the picture {path}: {reason}. Choose another path, ending in .png, .pdf or .svg."
        ) from error
    return path


def require_picture_name(path: Path) -> None:
    """Raise if a path does not end in a format of pictures; before time goes into drawing one."""
    if path.suffix.lower() not in FORMATS or path.is_dir():
        raise RunError(
            f"cannot write the picture {path}: it must be a file that ends in {', '.join(FORMATS)}. "
            "Choose another path."
        )
