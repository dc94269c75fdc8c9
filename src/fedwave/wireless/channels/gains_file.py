"""The channel of a file: gains that were measured, or made by Sionna, ns-3, DeepMIMO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedwave.units import FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.gains_reader import GainsFile, load_gains
from fedwave.wireless.sanity import gain_warnings
from fedwave.wireless.setting_types import FileName


class FileConfig(ChannelSection):
    """Power gains from a .npy or .csv file: measured, or made by Sionna, ns-3, DeepMIMO."""

    kind: Literal["file"] = "file"
    path: FileName
    in_db: bool = False
    beyond_last_round: Literal["error", "cycle"] = "error"

    def build(self, *, num_devices: int, num_blocks: int) -> FileChannel:
        """Return the channel after reading and checking the file."""
        file = load_gains(
            self.path,
            num_devices=num_devices,
            num_blocks=num_blocks,
            in_db=self.in_db,
            beyond_last_round=self.beyond_last_round,
        )
        return FileChannel(file=file)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileChannel:
    """The file's gains; those with a round axis are played round by round."""

    file: GainsFile
    large_scale: None = None
    ergodic_k_factor: None = None

    @property
    def has_own_rounds(self) -> bool:
        """Whether the file has a round axis."""
        return self.file.num_rounds is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1."""
        return gain_warnings(
            self.file.max_gain, advice="Are the values dB (channel.in_db = true) or amplitudes?"
        )

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the file's gains of the round."""
        del rng
        return self.file.round_gain(round_index)
