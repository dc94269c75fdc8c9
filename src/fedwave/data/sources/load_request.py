"""What every dataset loader is told, beside its own options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedwave.data.dataset import Split


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
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
