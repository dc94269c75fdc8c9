"""What a shell completes beside commands and options: the names of presets."""

from __future__ import annotations


def preset_beginning(incomplete: str) -> list[str]:
    """Return the presets of experiments whose names begin so."""
    from fedwave.experiments.preset_files import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


def cell_beginning(incomplete: str) -> list[str]:
    """Return the presets of cells whose names begin so."""
    from fedwave.wireless.load import CELL_PRESETS

    return [name for name in CELL_PRESETS if name.startswith(incomplete)]
