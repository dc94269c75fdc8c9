"""What a device's place costs: distance, line of sight, path loss and shadowing. Fixed for a whole run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.units import BoolArray, FloatArray, db_to_linear
from fedwave.wireless.config import LogDistanceChannel, ThreeGppChannel
from fedwave.wireless.geometry import ground_distance_m, place
from fedwave.wireless.path_loss import (
    SCENARIOS,
    RuralMacro,
    Scenario,
    UrbanMacro,
    draw_environment_height_m,
    log_distance_path_loss_db,
)
from fedwave.wireless.shadowing import draw_shadowing_db

# Sub-streams of Stream.FLEET, after the fleet's own columns 0-3. Append only.
_POSITION, _LINE_OF_SIGHT, _SHADOWING, _ENVIRONMENT_HEIGHT = 4, 5, 6, 7


@dataclass(frozen=True, eq=False)
class LargeScale:
    """One value per device; the gain is 10^((antennas - path loss - shadowing) / 10)."""

    position_m: FloatArray  # (n, 2)
    distance_m: FloatArray  # (n,), on the ground
    is_line_of_sight: BoolArray | None  # None: the model does not distinguish
    path_loss_db: FloatArray  # median, without shadowing
    shadowing_db: FloatArray  # positive: more loss
    antenna_gain_db: float
    gain: FloatArray  # linear


def draw_large_scale(
    config: ThreeGppChannel | LogDistanceChannel, *, num_devices: int, seed: int
) -> LargeScale:
    """Return the devices' places and what they cost, drawn from the run's seed."""
    position_m = place(
        config.placement, num_devices=num_devices, rng=generator(seed, Stream.FLEET, _POSITION)
    )
    distance_m = ground_distance_m(position_m)
    shadowing_rng = generator(seed, Stream.FLEET, _SHADOWING)
    is_line_of_sight: BoolArray | None
    if isinstance(config, ThreeGppChannel):
        scenario = build_scenario(config)
        if isinstance(scenario, UrbanMacro):
            scenario = dataclasses.replace(
                scenario,
                environment_height_m=draw_environment_height_m(
                    distance_m,
                    device_height_m=config.device_height_m,
                    rng=generator(seed, Stream.FLEET, _ENVIRONMENT_HEIGHT),
                ),
            )
        is_line_of_sight = _draw_line_of_sight(
            config, scenario, distance_m, rng=generator(seed, Stream.FLEET, _LINE_OF_SIGHT)
        )
        path_loss_db = scenario.path_loss_db(distance_m, is_line_of_sight)
        std_db = scenario.shadowing_std_db(distance_m, is_line_of_sight) * float(config.shadowing)
    else:
        is_line_of_sight = None
        _refuse_zero_distance(distance_m)
        path_loss_db = log_distance_path_loss_db(
            distance_m,
            reference_loss_db=config.reference_loss_db,
            reference_distance_m=config.reference_distance_m,
            exponent=config.exponent,
        )
        std_db = np.full(num_devices, config.shadowing_std_db)
    shadowing_db = draw_shadowing_db(std_db, rng=shadowing_rng)
    return LargeScale(
        position_m=position_m,
        distance_m=distance_m,
        is_line_of_sight=is_line_of_sight,
        path_loss_db=path_loss_db,
        shadowing_db=shadowing_db,
        antenna_gain_db=config.antenna_gain_db,
        gain=db_to_linear(config.antenna_gain_db - path_loss_db - shadowing_db),
    )


def build_scenario(config: ThreeGppChannel) -> Scenario:
    """Return the TR 38.901 scenario with the config's frequency, heights and surroundings."""
    scenario_type = SCENARIOS[config.scenario]
    given: dict[str, float] = {"carrier_frequency_hz": config.carrier_frequency_hz}
    given["device_height_m"] = config.device_height_m
    if config.base_station_height_m is not None:
        given["base_station_height_m"] = config.base_station_height_m
    if scenario_type is RuralMacro:
        given["building_height_m"] = config.building_height_m
        given["street_width_m"] = config.street_width_m
    return scenario_type(**given)


def _draw_line_of_sight(
    config: ThreeGppChannel, scenario: Scenario, distance_m: FloatArray, *, rng: np.random.Generator
) -> BoolArray:
    if config.line_of_sight == "random":
        return rng.random(len(distance_m)) < scenario.los_probability(distance_m)
    return np.full(len(distance_m), config.line_of_sight == "always")


def _refuse_zero_distance(distance_m: FloatArray) -> None:
    if not (distance_m > 0).all():
        device_index = int(np.argmin(distance_m))
        raise ProblemError(
            f"Device {device_index} stands at the base station: a log-distance path loss has no value "
            "at 0 m. Move it, or set placement.min_distance_m."
        )
