"""Numbers that are possible but look like a unit slip, and places outside a path-loss model's range."""

from __future__ import annotations

import numpy as np

from fedwave.wireless.config import CellConfig, ThreeGppChannel
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.gains_file import GainsFile
from fedwave.wireless.large_scale import LargeScale, build_scenario
from fedwave.wireless.path_loss import MIN_DISTANCE_M

THERMAL_NOISE_W_PER_HZ = 4.0e-21  # k T at 290 K, -174 dBm/Hz


def unit_warnings(
    config: CellConfig, *, fleet: Fleet, large_scale: LargeScale | None, gains_file: GainsFile | None
) -> tuple[str, ...]:
    """Return one line for each suspicious number; none for normalised cells, which have no units."""
    if config.normalised:
        return ()
    return (
        *_power_warnings(float(fleet.max_power_w.max())),
        *_bandwidth_warnings(config.bandwidth_hz),
        *_noise_warnings(config.effective_noise_psd_w_per_hz),
        *_hardware_warnings(fleet),
        *_gain_warnings(config, large_scale, gains_file),
        *_range_warnings(config, large_scale),
    )


def _power_warnings(power_w: float) -> list[str]:
    if power_w > 10e3:
        return [f"max_power_w reaches {power_w:g} W, more than a broadcast tower. Is it in mW or uW?"]
    if power_w > 10.0:
        return [
            f"max_power_w reaches {power_w:g} W; a phone sends 0.2 W. If that is {power_w:g} dBm, "
            "use fleet.max_power_dbm."
        ]
    return []


def _bandwidth_warnings(bandwidth_hz: float) -> list[str]:
    if bandwidth_hz < 1.0:
        return [f"bandwidth_hz is {bandwidth_hz:g} Hz, below 1 Hz. Is it in MHz? 0.18 MHz is 180e3 Hz."]
    if bandwidth_hz < 1e3:
        return [f"bandwidth_hz is {bandwidth_hz:g} Hz; a block has 180e3 Hz or more. Is it in kHz or MHz?"]
    return []


def _noise_warnings(noise_psd_w_per_hz: float) -> list[str]:
    if noise_psd_w_per_hz < 0.1 * THERMAL_NOISE_W_PER_HZ:
        return [
            f"The noise density is {noise_psd_w_per_hz:.3g} W/Hz, well below thermal noise (4e-21 W/Hz, "
            "-174 dBm/Hz). Is it in kW/Hz, or is noise_psd_dbm_per_hz in dBW/Hz?"
        ]
    if noise_psd_w_per_hz > 1e-12:
        return [
            f"The noise density is {noise_psd_w_per_hz:.3g} W/Hz, over 80 dB above thermal noise. "
            "Is it the power in a whole block? Divide it by bandwidth_hz."
        ]
    return []


def _hardware_warnings(fleet: Fleet) -> list[str]:
    found = []
    slowest_hz = float(fleet.max_frequency_hz.max())
    if slowest_hz < 1e6:
        found.append(
            f"max_frequency_hz is at most {slowest_hz:g} Hz; processors run at 1e8 Hz and more. Is it in GHz?"
        )
    if float(fleet.capacitance.max()) > 1e-20:
        found.append(
            f"capacitance reaches {fleet.capacitance.max():g}; published values are 1e-28 to 1e-26 with "
            "frequencies in Hz. Was it meant for frequencies in GHz?"
        )
    return found


def _gain_warnings(
    config: CellConfig, large_scale: LargeScale | None, gains_file: GainsFile | None
) -> list[str]:
    if gains_file is not None:
        largest, cause = gains_file.max_gain, "Are the values dB (channel.in_db = true) or amplitudes?"
    elif large_scale is not None:
        largest, cause = (
            float(large_scale.gain.max()),
            "Is a device too close, or a loss in dB of the wrong sign?",
        )
    else:
        largest, cause = (
            getattr(config.channel, "high", 0.0),
            "If the cell has no units, set normalised = true.",
        )
    if largest > 1.0:
        return [f"A channel gain reaches {largest:.3g}, above 1 (0 dB): the receiver would amplify. {cause}"]
    return []


def _range_warnings(config: CellConfig, large_scale: LargeScale | None) -> list[str]:
    channel = config.channel
    if not isinstance(channel, ThreeGppChannel) or large_scale is None:
        return []
    assert large_scale.is_line_of_sight is not None  # TR 38.901 knows who is in sight
    found = []
    scenario = build_scenario(channel)
    name = f"TR 38.901 {channel.scenario}"
    num_near = int(np.sum(large_scale.distance_m < MIN_DISTANCE_M))
    if num_near:
        found.append(
            f"{num_near} device(s) stand nearer than {MIN_DISTANCE_M:g} m, where {name} begins; "
            f"they get the path loss at {MIN_DISTANCE_M:g} m. Set placement.min_distance_m."
        )
    max_distance_m = np.where(
        large_scale.is_line_of_sight, scenario.max_distance_m, scenario.max_blocked_distance_m
    )
    is_far = large_scale.distance_m > max_distance_m
    if is_far.any():
        found.append(
            f"{is_far.sum()} device(s) stand farther than {max_distance_m[is_far].min():g} m, where {name} "
            "ends; its formula is extrapolated. Is the cell too large, or are positions in another unit?"
        )
    base_m = channel.base_station_height_m
    usual_m = {"umi": 10.0, "uma": 25.0}.get(channel.scenario)
    if usual_m is not None and base_m is not None and base_m != usual_m:
        found.append(f"{name} is defined for a base station at {usual_m:g} m, got {base_m:g} m.")
    if channel.scenario == "rma" and base_m is not None and not 10.0 <= base_m <= 150.0:
        found.append(f"{name} is defined for base stations of 10 to 150 m, got {base_m:g} m.")
    if channel.scenario != "rma" and channel.device_height_m < 1.5:
        found.append(f"{name} is defined for devices of 1.5 to 22.5 m, got {channel.device_height_m:g} m.")
    if channel.scenario == "rma" and (channel.carrier_frequency_hz > 30e9 or channel.device_height_m > 10.0):
        found.append(f"{name} is defined up to 30 GHz and for devices up to 10 m high.")
    return found
