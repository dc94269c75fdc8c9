"""What every dataset loader is told, beside its own options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedwave.data.dataset import Split
from fedwave.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where to look for files, the seed for data that is drawn, and which published split to read."""

    data_dir: Path | None = None
    seed: int = 0
    split: Split = "all"

    @property
    def wants_train(self) -> bool:
        """Whether the published training files are asked for."""
        return self.split in ("all", "train")

    @property
    def wants_test(self) -> bool:
        """Whether the published test (or validation) files are asked for."""
        return self.split in ("all", "test")


def require_count(option: str, value: object, *, at_least: int) -> int:
    """Return ``value`` when it is a whole number not below ``at_least``; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{option} must be a whole number >= {at_least}, got {value!r}. Change {option}.")
    return value
