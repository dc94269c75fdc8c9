"""The kinds of channel. A new one is a file like its neighbours here, and a line in ``CHANNELS``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from fedwave.wireless.channels.base import Channel, ChannelKind, ChannelSection
from fedwave.wireless.channels.gains_file import FileChannel, FileConfig
from fedwave.wireless.channels.log_distance import LogDistanceChannel, LogDistanceConfig
from fedwave.wireless.channels.sionna import SionnaChannel, SionnaConfig
from fedwave.wireless.channels.three_gpp import ThreeGppChannel, ThreeGppConfig
from fedwave.wireless.channels.uniform import UniformChannel, UniformConfig

CHANNELS: dict[str, ChannelKind] = {
    "uniform": ChannelKind(UniformConfig, UniformChannel.build),
    "3gpp": ChannelKind(ThreeGppConfig, ThreeGppChannel.build),
    "log-distance": ChannelKind(LogDistanceConfig, LogDistanceChannel.build),
    "file": ChannelKind(FileConfig, FileChannel.build),
    "sionna": ChannelKind(SionnaConfig, SionnaChannel.build),
}

if TYPE_CHECKING:
    ChannelConfig = ChannelSection
else:  # the settings of any kind, told apart by their ``kind``
    _settings = tuple(kind.settings for kind in CHANNELS.values())
    ChannelConfig = Annotated[Union[_settings], Field(discriminator="kind")]  # noqa: UP007 - made from the dict

__all__ = ["CHANNELS", "Channel", "ChannelConfig", "ChannelKind", "ChannelSection"]
