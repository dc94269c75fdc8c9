"""A radio cell: built once from config and seed, then asked for the channel of any round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.config import CellConfig, FadingConfig, FileChannel, UniformChannel
from fedwave.wireless.fading import rayleigh_power, rician_power
from fedwave.wireless.fleet import Fleet, draw_fleet
from fedwave.wireless.gains_file import GainsFile, load_gains
from fedwave.wireless.interference import check_interference, draw_interference_w
from fedwave.wireless.large_scale import LargeScale, draw_large_scale
from fedwave.wireless.sanity import unit_warnings


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """The radio channel of one round. The arrays are read-only."""

    channel_gain: FloatArray  # h: (n,), the same on all blocks, or (n, M)
    interference_w: FloatArray  # I: (M,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cell:
    """Everything about the cell that a run keeps: its devices, its noise, and how to draw a round.

    ``draw`` depends on the seed and the round alone, so a resumed run sees the channel it would have seen.
    """

    config: CellConfig
    seed: int
    fleet: Fleet
    num_blocks: int
    bandwidth_hz: float
    noise_psd_w_per_hz: float  # the receiver's noise figure included
    large_scale: LargeScale | None  # None: the channel has no geometry
    gains_file: GainsFile | None
    warnings: tuple[str, ...]  # units that look wrong, places outside a model's range

    @classmethod
    def build(cls, config: CellConfig, *, num_devices: int, seed: int) -> Cell:
        """Return the cell with its fleet and places drawn; files are read and checked here."""
        if num_devices < 1:
            raise ProblemError(f"num_devices must be >= 1, got {num_devices}. A cell needs a device.")
        check_interference(config.interference, num_blocks=config.num_blocks)
        fleet = draw_fleet(config.fleet, num_devices=num_devices, seed=seed)
        channel = config.channel
        large_scale = None
        gains_file = None
        if isinstance(channel, FileChannel):
            gains_file = load_gains(
                channel.path,
                num_devices=num_devices,
                num_blocks=config.num_blocks,
                in_db=channel.in_db,
                beyond_last_round=channel.beyond_last_round,
            )
        elif not isinstance(channel, UniformChannel):
            large_scale = draw_large_scale(channel, num_devices=num_devices, seed=seed)
        return cls(
            config=config,
            seed=seed,
            fleet=fleet,
            num_blocks=config.num_blocks,
            bandwidth_hz=config.bandwidth_hz,
            noise_psd_w_per_hz=config.effective_noise_psd_w_per_hz,
            large_scale=large_scale,
            gains_file=gains_file,
            warnings=unit_warnings(config, fleet=fleet, large_scale=large_scale, gains_file=gains_file),
        )

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return self.fleet.num_devices

    @property
    def noise_w(self) -> float:
        """Thermal noise power in one block, B N0."""
        return self.bandwidth_hz * self.noise_psd_w_per_hz

    @property
    def position_m(self) -> FloatArray | None:
        """Positions (n, 2), the base station at the origin; None where the channel has no geometry."""
        return None if self.large_scale is None else self.large_scale.position_m

    @property
    def distance_m(self) -> FloatArray | None:
        """Ground distances (n,) to the base station; None where the channel has no geometry."""
        return None if self.large_scale is None else self.large_scale.distance_m

    def draw(self, round_index: int) -> ChannelDraw:
        """Return the channel of one round. A static cell repeats round 0; a gains file keeps its rounds."""
        if self.config.redraw == "static" and self.gains_file is None:
            return self._static_draw
        return self._draw(round_index)

    @cached_property
    def _static_draw(self) -> ChannelDraw:
        return self._draw(0)

    def _draw(self, round_index: int) -> ChannelDraw:
        drawn_round = 0 if self.config.redraw == "static" else round_index
        interference_w = draw_interference_w(
            self.config.interference,
            num_blocks=self.num_blocks,
            noise_w=self.noise_w,
            rng=generator(self.seed, Stream.INTERFERENCE, drawn_round),
        )
        channel_gain = self._draw_gain(round_index, rng=generator(self.seed, Stream.CHANNEL, drawn_round))
        channel_gain.flags.writeable = False
        interference_w.flags.writeable = False
        return ChannelDraw(channel_gain=channel_gain, interference_w=interference_w)

    def _draw_gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        if self.gains_file is not None:
            return self.gains_file.round_gain(round_index)
        channel = self.config.channel
        if isinstance(channel, UniformChannel):
            return rng.uniform(channel.low, channel.high, self.num_devices)
        assert self.large_scale is not None  # build
        assert not isinstance(channel, FileChannel)
        return _fade(self.large_scale, channel.fading, num_blocks=self.num_blocks, rng=rng)


def _fade(
    large_scale: LargeScale, fading: FadingConfig, *, num_blocks: int, rng: np.random.Generator
) -> FloatArray:
    """Return the large-scale gains (n,) times fading: (n, M), or (n,) where blocks do not differ."""
    gain = large_scale.gain
    if fading.kind == "none":
        return gain.copy()
    shape = (len(gain), num_blocks if fading.per_block else 1)
    if fading.kind == "rayleigh":
        power = rayleigh_power(shape, rng=rng)
    else:
        # Only a device in sight has a steady path; K = 0 is Rayleigh.
        in_sight = large_scale.is_line_of_sight
        share_in_sight = np.ones(len(gain)) if in_sight is None else in_sight.astype(np.float64)
        k_factor = db_to_linear(fading.rician_k_db) * share_in_sight[:, np.newaxis]
        power = rician_power(shape, k_factor=k_factor, rng=rng)
    power *= gain[:, np.newaxis]
    return power if fading.per_block else power[:, 0]
