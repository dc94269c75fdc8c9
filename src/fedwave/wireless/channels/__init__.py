"""The kinds of channel. A new one is a file like its neighbours here, and a line in ``CHANNELS``.

A channel of one's own needs neither: settings name it as ``package.module:Name``.
"""

from __future__ import annotations

from typing import Any

from fedwave.parts import PartKind
from fedwave.wireless.channels.base import Channel, ChannelPart, ChannelSection
from fedwave.wireless.channels.gains_file import FileConfig
from fedwave.wireless.channels.log_distance import LogDistanceConfig
from fedwave.wireless.channels.sionna import SionnaConfig
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.channels.uniform import UniformConfig

# Each is a section with a ``build``, or a class or function that returns a ``Channel``.
CHANNELS: dict[str, Any] = {
    "uniform": UniformConfig,
    "3gpp": ThreeGppConfig,
    "log-distance": LogDistanceConfig,
    "file": FileConfig,
    "sionna": SionnaConfig,
}
CHANNEL = PartKind("channel", CHANNELS, ("kind", "num_devices", "num_blocks", "bandwidth_hz", "seed"))

__all__ = ["CHANNEL", "CHANNELS", "Channel", "ChannelPart", "ChannelSection"]
