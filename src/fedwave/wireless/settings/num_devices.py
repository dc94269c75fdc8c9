"""How many devices a cell has: as many as its files, where it has any."""

from __future__ import annotations

from collections.abc import Iterator

from fedwave.errors import ProblemError
from fedwave.wireless.settings.config import CellConfig

DEFAULT = 100  # where neither a file nor anybody says


def num_devices_of(config: CellConfig, *, asked: int | None = None) -> int:
    """Return the number of devices: as asked, or as the cell's files have, or else 100."""
    found = dict(_of_files(config))
    if asked is not None:
        for file, count in found.items():
            if count != asked and isinstance(asked, int):
                raise ProblemError(
                    f"{file} has {count} devices, but {asked} were asked for. Leave that number out: it "
                    "follows from the file."
                )
        return asked
    if len(set(found.values())) > 1:
        told = " and ".join(f"{file} has {count} devices" for file, count in found.items())
        raise ProblemError(f"{told}. Give every file one row per device.")
    return next(iter(found.values()), DEFAULT)


def _of_files(config: CellConfig) -> Iterator[tuple[str, int]]:
    """Yield what each file of the cell is called, and its number of devices."""
    sections = (
        ("fleet", config.fleet),
        ("gains", config.channel),
        ("positions", getattr(config.channel, "placement", None)),
    )
    for what, section in sections:
        of_file = getattr(section, "num_devices_of_file", None)
        count = None if of_file is None else of_file()
        if count is not None:
            yield f"The {what} file {getattr(section, 'path', '')}", count
