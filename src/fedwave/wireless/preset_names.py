"""The names of the shipped cells, apart from what reads them: the command line asks for no more."""

from __future__ import annotations

CELL_PRESETS: tuple[str, ...] = (
    "paper",
    "paper-redrawn",
    "umi-3.5ghz",
    "uma-2ghz",
    "rma-700mhz",
    "chen2020",
    "fedl2021",
)
