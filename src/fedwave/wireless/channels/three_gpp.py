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
from fedwave.settings import Decibel
from fedwave.units import BoolArray, FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.channels.fading import DelayLineFading, Fading, FadingPart, NoFading
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
    placement: PlacementPart
    fading: FadingPart = NoFading()

    @classmethod
    def options_of(cls, value: str) -> Mapping[str, Any]:
        """Return what a scenario can be told, with the defaults."""
        return _OPTIONS.get(value, {})

    @model_validator(mode="after")
    def _check_heights(self) -> ThreeGppConfig:
        try:
            scenario = self.build_scenario()
            if isinstance(scenario, UrbanMacro):
                highest_m = highest_environment_m(self.device_height_m)
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

    def build_scenario(self) -> Scenario:
        """Return the column of Table 7.4.1-1 with this frequency, these heights and surroundings."""
        given = {name: getattr(self, name) for name in ("base_station_height_m", *_OPTIONS[self.scenario])}
        return SCENARIOS[self.scenario](
            carrier_frequency_hz=self.carrier_frequency_hz,
            device_height_m=self.device_height_m,
            **{name: value for name, value in given.items() if value is not None},
        )

    def build(self, *, num_devices: int, num_blocks: int, bandwidth_hz: float, seed: int) -> ThreeGppChannel:
        """Return the channel with its places, lines of sight and shadowing drawn."""
        position_m = place_devices(self.placement, num_devices, seed=seed)
        distance_m = ground_distance_m(position_m)
        scenario = self.build_scenario()
        if isinstance(scenario, UrbanMacro):  # its h_E differs from device to device
            environment_height_m = draw_environment_height_m(
                distance_m,
                device_height_m=self.device_height_m,
                rng=fleet_generator(seed, FleetStream.ENVIRONMENT_HEIGHT),
            )
            scenario = dataclasses.replace(scenario, environment_height_m=environment_height_m)
        in_sight = _draw_line_of_sight(
            self.line_of_sight,
            scenario.los_probability(distance_m),
            rng=fleet_generator(seed, FleetStream.LINE_OF_SIGHT),
        )
        shadowing_std_db = scenario.shadowing_std_db(distance_m, in_sight) * float(self.shadowing)
        large_scale = LargeScale(
            position_m=position_m,
            distance_m=distance_m,
            is_line_of_sight=in_sight,
            path_loss_db=scenario.path_loss_db(distance_m, in_sight),
            shadowing_db=draw_shadowing_db(
                shadowing_std_db, rng=fleet_generator(seed, FleetStream.SHADOWING)
            ),
            antenna_gain_db=self.antenna_gain_db,
        )
        multipath, rays = _draw_echoes(self, in_sight, seed=seed)
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
    moving_rays: MovingRays | None  # None: rounds fade independently
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
        """Return the large-scale gains times the round's fading; alone, if uploads outlast it."""
        delay_line = self.config.delay_line
        if self.multipath is None or delay_line is None:
            return self.fading.faded(self.large_scale, num_blocks=self.num_blocks, rng=rng)
        if delay_line.ergodic:
            return self.large_scale.gain.copy()
        if self.moving_rays is not None:
            assert delay_line.round_interval_s is not None  # _draw_echoes
            echo, steady = self.moving_rays.echoes(round_index * delay_line.round_interval_s)
        else:
            echo, steady = independent_echoes(self.multipath, rng=rng)
        fading = self.multipath.block_gain(
            echo, steady, num_blocks=self.num_blocks, bandwidth_hz=self.bandwidth_hz
        )
        return self.large_scale.gain[:, np.newaxis] * fading


def _draw_echoes(
    config: ThreeGppConfig, in_sight: BoolArray, *, seed: int
) -> tuple[Multipath | None, MovingRays | None]:
    if config.delay_line is None:
        return None, None
    rng = fleet_generator(seed, FleetStream.MULTIPATH)
    multipath = draw_multipath(
        config.scenario,
        carrier_frequency_hz=config.carrier_frequency_hz,
        is_line_of_sight=in_sight,
        # The same numbers as the shadowing's: loud devices have short echoes. Its sign counts losses.
        gain_normal=-draw_shadowing_db(
            np.ones(len(in_sight)), rng=fleet_generator(seed, FleetStream.SHADOWING)
        ),
        rng=rng,
    )
    if config.delay_line.round_interval_s is None:
        return multipath, None
    return multipath, MovingRays.draw(multipath, max_doppler_hz=config.max_doppler_hz, rng=rng)


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
