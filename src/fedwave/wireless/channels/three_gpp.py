"""The channel of 3GPP TR 38.901, clause 7.4: street, city and countryside."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedwave.errors import ProblemError
from fedwave.rng import FleetStream, fleet_generator
from fedwave.settings import Decibel, PositiveInt, Probability
from fedwave.units import BoolArray, FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.channels.fading import DelayLineFading, Fading, FadingPart, NoFading, combined
from fedwave.wireless.channels.placement import (
    LargeScale,
    PlacementPart,
    draw_shadowing_db,
    ground_distance_m,
    place_devices,
    place_warnings,
)
from fedwave.wireless.multipath import (
    MovingRays,
    Multipath,
    draw_multipath,
    independent_echoes,
    max_doppler_hz,
)
from fedwave.wireless.path_loss import (
    MIN_DISTANCE_M,
    SCENARIOS,
    Scenario,
    UrbanMacro,
    draw_environment_height_m,
    highest_environment_m,
)
from fedwave.wireless.penetration import (
    HIGHEST_DEVICE_M,
    INDOOR_SHADOWING_STD_DB,
    Whereabouts,
    draw_whereabouts,
)

# What only some scenarios ask about, with the defaults of Table 7.4.1-1.
_OPTIONS: dict[str, dict[str, Any]] = {
    "umi": {},
    "uma": {},
    "rma": {"building_height_m": 5.0, "street_width_m": 20.0},
}


class ThreeGppConfig(ChannelSection):
    """Path loss, line of sight and shadowing of 3GPP TR 38.901, clause 7.4, times fading."""

    choice: ClassVar[str | None] = "scenario"

    kind: Literal["3gpp"] = "3gpp"
    scenario: Literal["umi", "uma", "rma"]
    carrier_frequency_hz: Annotated[float, Field(ge=0.5e9, le=100e9)]  # range of the report's models
    base_station_height_m: Annotated[float, Field(ge=5.0, le=150.0)] | None = None  # None: the scenario's own
    device_height_m: Annotated[float, Field(ge=1.0, le=22.5)] = 1.5
    building_height_m: Annotated[float, Field(ge=5.0, le=50.0)] | None = None
    street_width_m: Annotated[float, Field(ge=5.0, le=50.0)] | None = None
    line_of_sight: Literal["random", "always", "never"] = "random"
    shadowing: bool = True
    antenna_gain_db: Decibel = 0.0  # both ends together
    base_station_antenna_gain_dbi: Decibel = 0.0  # added to it
    num_receive_antennas: PositiveInt = 1  # of the base station, combined by maximum ratio
    indoor_share: Probability = 0.0  # of all devices, in buildings: clause 7.4.3.1
    high_loss_share: Probability | None = None  # of the buildings; None: half of them, none in RMa
    indoor_floors: bool = False  # devices in buildings are spread over 4 to 8 floors; False: at ground level
    car_share: Probability = 0.0  # of all devices, in cars: clause 7.4.3.2
    placement: PlacementPart
    fading: FadingPart = NoFading()

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return what a scenario can be told, with the defaults."""
        return _OPTIONS.get(value, {})

    @model_validator(mode="after")
    def _check_whereabouts(self) -> ThreeGppConfig:
        if self.indoor_share + self.car_share > 1.0 + 1e-9:
            raise ValueError(
                f"indoor_share and car_share must sum to at most 1, got {self.indoor_share:g} and "
                f"{self.car_share:g}. Both are shares of all devices"
            )
        if self.scenario == "rma" and (self.high_loss_share or self.indoor_floors):
            raise ValueError(
                "high_loss_share and indoor_floors are for umi and uma, got scenario rma. "
                "TR 38.901 has low-loss buildings of one floor there; leave them out"
            )
        return self

    @model_validator(mode="after")
    def _check_heights(self) -> ThreeGppConfig:
        try:
            scenario = self.build_scenario()
            height_m = self.device_height_m
            if self.indoor_floors:
                height_m = HIGHEST_DEVICE_M
                scenario = self.build_scenario(height_m)
            if isinstance(scenario, UrbanMacro):
                highest_m = highest_environment_m(height_m)
                dataclasses.replace(scenario, environment_height_m=highest_m)
        except ProblemError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def delay_line(self) -> DelayLineFading | None:
        """The echoes that are asked for; None: fading of another kind."""
        return self.fading if isinstance(self.fading, DelayLineFading) else None

    @property
    def max_doppler_hz(self) -> float:
        """v f / c of the fading's speed; 0 where the fading has none."""
        speed_km_per_h = 0.0 if self.delay_line is None else self.delay_line.speed_km_per_h
        return max_doppler_hz(
            speed_m_per_s=speed_km_per_h / 3.6,
            carrier_frequency_hz=self.carrier_frequency_hz,
        )

    def draw_whereabouts(self, num_devices: int, *, seed: int) -> Whereabouts | None:
        """Return who is in a building or a car; None: nobody."""
        if self.indoor_share == self.car_share == 0.0:
            return None
        usual_share = 0.0 if self.scenario == "rma" else 0.5  # Table 7.8-1: 50 % low loss, 50 % high loss
        return draw_whereabouts(
            self.scenario,
            num_devices,
            carrier_frequency_hz=self.carrier_frequency_hz,
            indoor_share=self.indoor_share,
            car_share=self.car_share,
            high_loss_share=usual_share if self.high_loss_share is None else self.high_loss_share,
            on_floors=self.indoor_floors,
            rng=fleet_generator(seed, FleetStream.WHEREABOUTS),
        )

    def build_scenario(self, device_height_m: float | FloatArray | None = None) -> Scenario:
        """Return the column of Table 7.4.1-1 with this frequency, these heights and surroundings."""
        given = {name: getattr(self, name) for name in ("base_station_height_m", *_OPTIONS[self.scenario])}
        return SCENARIOS[self.scenario](
            carrier_frequency_hz=self.carrier_frequency_hz,
            device_height_m=self.device_height_m if device_height_m is None else device_height_m,
            **{name: value for name, value in given.items() if value is not None},
        )

    def build(self, *, num_devices: int, num_blocks: int, bandwidth_hz: float, seed: int) -> ThreeGppChannel:
        """Return the channel with its places, lines of sight and shadowing drawn."""
        position_m = place_devices(self.placement, num_devices, seed=seed)
        distance_m = ground_distance_m(position_m)
        inside = self.draw_whereabouts(num_devices, seed=seed)
        height_m: float | FloatArray = self.device_height_m
        if inside is not None:
            height_m = np.minimum(height_m + inside.height_m, HIGHEST_DEVICE_M)
        scenario = self.build_scenario(height_m)
        if isinstance(scenario, UrbanMacro):  # its h_E differs from device to device
            environment_height_m = draw_environment_height_m(
                distance_m,
                device_height_m=height_m,
                rng=fleet_generator(seed, FleetStream.ENVIRONMENT_HEIGHT),
            )
            scenario = dataclasses.replace(scenario, environment_height_m=environment_height_m)
        in_sight = _draw_line_of_sight(
            self.line_of_sight,
            scenario.los_probability(
                distance_m if inside is None else np.maximum(distance_m - inside.inside_m, 0.0)
            ),
            rng=fleet_generator(seed, FleetStream.LINE_OF_SIGHT),
        )
        shadowing_std_db = scenario.shadowing_std_db(distance_m, in_sight)
        if inside is not None:
            indoor_std_db = INDOOR_SHADOWING_STD_DB[self.scenario]
            shadowing_std_db = np.where(inside.is_indoor, indoor_std_db, shadowing_std_db)
        large_scale = LargeScale(
            position_m=position_m,
            distance_m=distance_m,
            is_line_of_sight=in_sight,
            path_loss_db=scenario.path_loss_db(distance_m, in_sight),
            shadowing_db=draw_shadowing_db(
                shadowing_std_db * float(self.shadowing), rng=fleet_generator(seed, FleetStream.SHADOWING)
            ),
            antenna_gain_db=self.antenna_gain_db + self.base_station_antenna_gain_dbi,
            num_receive_antennas=self.num_receive_antennas,
            whereabouts=inside,
        )
        multipath, rays = _draw_echoes(self, large_scale, seed=seed)
        return ThreeGppChannel(
            config=self,
            fading=self.fading.create("cell.channel.fading"),
            large_scale=large_scale,
            num_blocks=num_blocks,
            bandwidth_hz=bandwidth_hz,
            multipath=multipath,
            moving_rays=rays,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ThreeGppChannel:
    """Places, sight, shadowing and echoes drawn once, fading each round."""

    config: ThreeGppConfig
    fading: Fading  # unless it is a delay line
    large_scale: LargeScale
    num_blocks: int
    bandwidth_hz: float
    multipath: Multipath | None  # None: fading of another kind than delay-line
    moving_rays: tuple[MovingRays, ...]  # of each receive antenna; none: rounds fade independently
    has_own_rounds: bool = False

    @property
    def ergodic_k_factor(self) -> FloatArray | None:
        """Each device's K where uploads outlast the fading."""
        delay_line = self.config.delay_line
        is_ergodic = delay_line is not None and delay_line.ergodic
        return self.multipath.k_factor if self.multipath is not None and is_ergodic else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1, places and heights outside the range of the report's models."""
        name = f"TR 38.901 {self.config.scenario}"
        return (
            *place_warnings(self.large_scale),
            *_distance_warnings(name, self.large_scale, self.config.build_scenario()),
            *_height_warnings(name, self.config),
        )

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the large-scale gains times the round's fading, summed over the receive antennas.

        If uploads outlast the fading, the mean of that sum.
        """
        delay_line = self.config.delay_line
        if self.multipath is None or delay_line is None:
            return combined(self.fading, self.large_scale, num_blocks=self.num_blocks, rng=rng)
        num_antennas = self.large_scale.num_receive_antennas
        if delay_line.ergodic:
            return self.large_scale.gain * num_antennas
        fading = np.zeros(())
        for antenna in range(num_antennas):
            if self.moving_rays:
                assert delay_line.round_interval_s is not None  # _draw_echoes
                time_s = round_index * delay_line.round_interval_s
                echo, steady = self.moving_rays[antenna].echoes(time_s)
            else:
                echo, steady = independent_echoes(self.multipath, rng=rng)
            fading = fading + self.multipath.block_gain(
                echo, steady, num_blocks=self.num_blocks, bandwidth_hz=self.bandwidth_hz
            )
        return self.large_scale.gain[:, np.newaxis] * fading


def _draw_echoes(
    config: ThreeGppConfig, large_scale: LargeScale, *, seed: int
) -> tuple[Multipath | None, tuple[MovingRays, ...]]:
    if config.delay_line is None:
        return None, ()
    in_sight, inside = np.asarray(large_scale.is_line_of_sight), large_scale.whereabouts
    rng = fleet_generator(seed, FleetStream.MULTIPATH)
    multipath = draw_multipath(
        config.scenario,
        carrier_frequency_hz=config.carrier_frequency_hz,
        is_line_of_sight=in_sight,
        is_indoor=None if inside is None else inside.is_indoor,
        # The same numbers as the shadowing's: loud devices have short echoes. Its sign counts losses.
        gain_normal=-draw_shadowing_db(
            np.ones(len(in_sight)), rng=fleet_generator(seed, FleetStream.SHADOWING)
        ),
        rng=rng,
    )
    if config.delay_line.round_interval_s is None:
        return multipath, ()
    return multipath, tuple(
        MovingRays.draw(multipath, max_doppler_hz=config.max_doppler_hz, rng=rng)
        for _ in range(large_scale.num_receive_antennas)
    )


def _draw_line_of_sight(
    wish: Literal["random", "always", "never"], probability: FloatArray, *, rng: np.random.Generator
) -> BoolArray:
    if wish == "random":
        return rng.random(len(probability)) < probability
    return np.full(len(probability), wish == "always")


def _distance_warnings(name: str, large_scale: LargeScale, scenario: Scenario) -> list[str]:
    found = []
    num_near = int(np.sum(large_scale.distance_m < MIN_DISTANCE_M))
    if num_near:
        found.append(
            f"{num_near} device(s) stand nearer than {MIN_DISTANCE_M:g} m, where {name} begins; "
            f"they get the path loss at {MIN_DISTANCE_M:g} m. Set placement.min_distance_m."
        )
    max_distance_m = np.where(
        np.asarray(large_scale.is_line_of_sight), scenario.max_distance_m, scenario.max_blocked_distance_m
    )
    is_far = large_scale.distance_m > max_distance_m
    if is_far.any():
        found.append(
            f"{is_far.sum()} device(s) stand farther than {max_distance_m[is_far].min():g} m, where {name} "
            "ends; its formula is extrapolated. Is the cell too large, or are positions in another unit?"
        )
    return found


def _height_warnings(name: str, config: ThreeGppConfig) -> list[str]:
    found = []
    base_m = config.base_station_height_m
    usual_m = {"umi": 10.0, "uma": 25.0}.get(config.scenario)
    if usual_m is not None and base_m is not None and base_m != usual_m:
        found.append(f"{name} is defined for a base station at {usual_m:g} m, got {base_m:g} m.")
    if config.scenario == "rma" and base_m is not None and not 10.0 <= base_m <= 150.0:
        found.append(f"{name} is defined for base stations of 10 to 150 m, got {base_m:g} m.")
    if config.scenario == "rma" and (config.carrier_frequency_hz > 30e9 or config.device_height_m > 10.0):
        found.append(f"{name} is defined up to 30 GHz and for devices up to 10 m high.")
    return found
