"""The shipped cells. The command line asks for their names alone, so nothing is loaded here."""

from __future__ import annotations

from importlib import resources

CELL_PRESETS: tuple[str, ...] = (
    "paper",
    "paper-redrawn",
    "umi-3.5ghz",
    "uma-2ghz",
    "rma-700mhz",
    "umi-3.5ghz-bare",
    "uma-2ghz-bare",
    "rma-700mhz-bare",
    "chen2020",
    "fedl2021",
    "fedl2021-tdma",
)


def preset_text(name: str) -> str:
    """Return the TOML text of one of ``CELL_PRESETS``."""
    return resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
