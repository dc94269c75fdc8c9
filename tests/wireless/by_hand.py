"""Every preset's cell worked out again: the preset's numbers, the tables' formulas, the named random streams.

Shares no code with fedwave: scalars and ``math``, one device at a time. The numbers of the streams are
written down again because published numbers depend on them.
"""

from __future__ import annotations

import math
import tomllib
from importlib import resources
from typing import Any

import numpy as np
from scipy import optimize, special, stats

CHANNEL, FLEET, INTERFERENCE = 1, 6, 9  # streams of a run
# Sub-streams of FLEET, after four columns.
POSITION, SIGHT, SHADOWING, ROOFS, ECHOES, WHEREABOUTS = 4, 5, 6, 7, 9, 12
LIGHT = 3.0e8
COLUMNS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")
PHONE = {  # written down again, as the presets name it
    "max_frequency_hz": {"low": 1.8e9, "high": 2.8e9},
    "capacitance": 1.7e-28,
    "cycles_per_operation": {"low": 0.25, "high": 0.5},
}


def stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def numbers(preset: str) -> dict[str, Any]:
    folder = resources.files("fedwave.wireless.settings.presets")
    text = folder.joinpath(f"{preset}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    if "preset" not in table:
        return table
    below = numbers(table["preset"])
    tables = {key: {**below.get(key, {}), **value} for key, value in table.items() if isinstance(value, dict)}
    return {**below, **table, **tables}


def drawn(value: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(value, dict):
        return value["low"] + (value["high"] - value["low"]) * rng.random(size)
    return np.full(size, float(value))


def fleet(preset: str, num_devices: int, seed: int) -> dict[str, np.ndarray]:
    table = numbers(preset)["fleet"]
    if "cpu" in table:
        assert table["cpu"] == "phone"
        table = {**PHONE, **table}
    columns = {}
    for index, name in enumerate(COLUMNS):
        rng = stream(seed, FLEET, index)
        if name == "max_power_w" and "max_power_dbm" in table:
            columns[name] = 10 ** ((drawn(table["max_power_dbm"], num_devices, rng) - 30) / 10)
        elif name == "cycles_per_sample" and name not in table:
            columns[name] = 28.5e6 * drawn(table["cycles_per_operation"], num_devices, rng)
        else:
            columns[name] = drawn(table[name], num_devices, rng)
    return columns


def noise_w(preset: str) -> float:
    table = numbers(preset)
    density = table.get("noise_psd_w_per_hz") or 10 ** ((table["noise_psd_dbm_per_hz"] - 30) / 10)
    return table["bandwidth_hz"] * density * 10 ** (table.get("noise_figure_db", 0) / 10)


def interference_w(preset: str, round_index: int, seed: int) -> np.ndarray:
    table = numbers(preset)
    how, size = table["interference"], table["num_blocks"]
    rng = stream(seed, INTERFERENCE, round_index)
    if how["kind"] == "drawn":
        return drawn(how["power_w"], size, rng)
    if how["kind"] == "noise-rise" and how.get("averaged"):
        low, high = how["rise_db"]["low"], how["rise_db"]["high"]
        rises_db = low + (high - low) * (np.arange(100_000) + 0.5) / 100_000
        return np.full(size, noise_w(preset) * float(np.mean(10 ** (rises_db / 10) - 1)))
    if how["kind"] == "noise-rise":
        return noise_w(preset) * (10 ** (drawn(how["rise_db"], size, rng) / 10) - 1)
    if how["kind"] == "evenly-spaced":
        return np.array([how["low_w"] + (how["high_w"] - how["low_w"]) * m / (size - 1) for m in range(size)])
    return np.zeros(size)


def distances_m(preset: str, num_devices: int, seed: int) -> np.ndarray:
    place = numbers(preset)["channel"]["placement"]
    share = stream(seed, FLEET, POSITION).random(num_devices)  # the angles come after the distances
    if place["kind"] == "disc":
        inner, outer = place["min_distance_m"] ** 2, place["radius_m"] ** 2
        return np.sqrt(inner + (outer - inner) * share)
    return place["min_distance_m"] + (place["max_distance_m"] - place["min_distance_m"]) * share


def angles_rad(num_devices: int, seed: int) -> np.ndarray:
    return 2 * math.pi * stream(seed, FLEET, POSITION).random(2 * num_devices)[num_devices:]


def whereabouts(preset: str, num_devices: int, seed: int) -> list[tuple[str, float, float, float]]:
    """Return where each device is, how far inside, how high, and what walls or bodywork cost in dB."""
    channel = numbers(preset)["channel"]
    indoor, car = channel.get("indoor_share", 0.0), channel.get("car_share", 0.0)
    rng = stream(seed, FLEET, WHEREABOUTS)
    who, building, first, second = (rng.random(num_devices) for _ in range(4))
    normal = rng.standard_normal(num_devices)
    storeys = rng.integers(4, 9, num_devices)
    up = rng.random(num_devices)
    f = channel.get("carrier_frequency_hz", 0.0) / 1e9
    concrete = 10 ** -((5 + 4 * f) / 10)
    low = 5 - 10 * math.log10(0.3 * 10 ** -((2 + 0.2 * f) / 10) + 0.7 * concrete)
    high = 5 - 10 * math.log10(0.7 * 10 ** -((23 + 0.3 * f) / 10) + 0.3 * concrete)
    found = []
    for i in range(num_devices):
        ground = channel.get("device_height_m", 0.0)
        if who[i] < indoor:
            inside = (10 if channel["scenario"] == "rma" else 25) * min(first[i], second[i])
            height = ground + (3 * int(up[i] * storeys[i]) if channel.get("indoor_floors") else 0)
            is_high = building[i] < channel.get("high_loss_share", 0.0)
            wall = (high + 6.5 * normal[i]) if is_high else (low + 4.4 * normal[i])
            found.append(("in a building", inside, height, wall + 0.5 * inside))
        elif who[i] < indoor + car:
            found.append(("in a car", 0.0, ground, 9 + 5 * normal[i]))
        else:
            found.append(("outdoors", 0.0, ground, 0.0))
    return found


def roofs_m(preset: str, num_devices: int, seed: int) -> list[float]:
    """Return the environment heights h_E: above 1 m only in UMa, for devices above 13 m."""
    if numbers(preset)["channel"]["scenario"] != "uma":
        return [1.0] * num_devices
    heights = [place[2] for place in whereabouts(preset, num_devices, seed)]
    choices = np.array([max(1, math.floor((h - 13.5) / 3) + 1) for h in heights])
    rng = stream(seed, FLEET, ROOFS)
    which = rng.integers(0, choices, num_devices)
    luck = rng.random(num_devices)
    distance = distances_m(preset, num_devices, seed)
    return [
        1.0 if luck[i] < 1 / (1 + lift("uma", distance[i], heights[i])) else 12.0 + 3.0 * which[i]
        for i in range(num_devices)
    ]


def in_sight(preset: str, num_devices: int, seed: int) -> np.ndarray:
    scenario = numbers(preset)["channel"]["scenario"]
    luck = stream(seed, FLEET, SIGHT).random(num_devices)
    places = whereabouts(preset, num_devices, seed)
    return np.array(
        [
            chance < sight_probability(scenario, max(d - inside, 0.0), height)
            for chance, d, (_, inside, height, _) in zip(
                luck, distances_m(preset, num_devices, seed), places, strict=True
            )
        ]
    )


def sight_probability(scenario: str, d: float, height: float = 1.5) -> float:
    """Return the probability of Table 7.4.2-1."""
    if scenario == "rma":
        return 1.0 if d <= 10 else math.exp(-(d - 10) / 1000)
    if d <= 18:
        return 1.0
    flat = 18 / d + math.exp(-d / {"umi": 36, "uma": 63}[scenario]) * (1 - 18 / d)
    return min(1.0, flat * (1 + lift(scenario, d, height)))


def lift(scenario: str, d: float, height: float) -> float:
    """Return C(d, h) of Table 7.4.1-1, note 1."""
    if scenario != "uma" or d <= 18 or height <= 13:
        return 0.0
    return ((height - 13) / 10) ** 1.5 * 1.25 * (d / 100) ** 3 * math.exp(-d / 150)


def path_loss_db(
    channel: dict[str, Any], d: float, los: bool, height: float | None = None, roof: float = 1.0
) -> float:
    """Return the loss of Table 7.4.1-1 at a ground distance, or of the log-distance law."""
    if channel["kind"] == "log-distance":
        return channel["reference_loss_db"] + 10 * channel["exponent"] * math.log10(
            d / channel["reference_distance_m"]
        )
    f, base, device = (
        channel["carrier_frequency_hz"],
        channel["base_station_height_m"],
        channel["device_height_m"] if height is None else height,
    )
    lg_f, d3 = math.log10(f / 1e9), math.sqrt(d * d + (base - device) ** 2)
    if channel["scenario"] == "rma":
        house, street = channel["building_height_m"], channel["street_width_m"]
        bend = 2 * math.pi * base * device * f / LIGHT

        def near(x: float) -> float:
            return (
                20 * math.log10(40 * math.pi * x * f / 1e9 / 3)
                + min(0.03 * house**1.72, 10) * math.log10(x)
                - min(0.044 * house**1.72, 14.77)
                + 0.002 * math.log10(house) * x
            )

        clear = near(d3) if d <= bend else near(bend) + 40 * math.log10(d3 / bend)
        blocked = (
            161.04
            - 7.1 * math.log10(street)
            + 7.5 * math.log10(house)
            - (24.37 - 3.7 * (house / base) ** 2) * math.log10(base)
            + (43.42 - 3.1 * math.log10(base)) * (math.log10(d3) - 3)
            + 20 * lg_f
            - (3.2 * math.log10(11.75 * device) ** 2 - 4.97)
        )
    else:
        bend = 4 * (base - roof) * (device - roof) * f / LIGHT
        start, slope, join, blocked_start, blocked_slope, blocked_f, tall = {
            "umi": (32.4, 21, 9.5, 22.4, 35.3, 21.3, 0.3),
            "uma": (28.0, 22, 9.0, 13.54, 39.08, 20.0, 0.6),
        }[channel["scenario"]]
        clear = start + slope * math.log10(d3) + 20 * lg_f
        if d > bend:
            clear = (
                start + 40 * math.log10(d3) + 20 * lg_f - join * math.log10(bend**2 + (base - device) ** 2)
            )
        blocked = blocked_start + blocked_slope * math.log10(d3) + blocked_f * lg_f - tall * (device - 1.5)
    return clear if los else max(clear, blocked)


def shadowing_std_db(channel: dict[str, Any], d: float, los: bool) -> float:
    if channel["kind"] == "log-distance":
        return float(channel.get("shadowing_std_db", 0))
    if channel["scenario"] == "rma" and los:
        bend = 2 * math.pi * channel["base_station_height_m"] * channel["device_height_m"]
        return 4.0 if d <= bend * channel["carrier_frequency_hz"] / LIGHT else 6.0
    return 4.0 if los else {"umi": 7.82, "uma": 6.0, "rma": 8.0}[channel["scenario"]]


def losses_db(preset: str, num_devices: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each device's path loss and shadowing."""
    channel = numbers(preset)["channel"]
    distance = distances_m(preset, num_devices, seed)
    normal = stream(seed, FLEET, SHADOWING).standard_normal(num_devices)
    if channel["kind"] != "3gpp":
        path = [path_loss_db(channel, d, True) for d in distance]
        return np.array(path), normal * shadowing_std_db(channel, 1.0, True)
    sight, roofs = in_sight(preset, num_devices, seed), roofs_m(preset, num_devices, seed)
    path, spread = [], []
    for i, (where, _, height, _) in enumerate(whereabouts(preset, num_devices, seed)):
        path.append(path_loss_db(channel, distance[i], bool(sight[i]), height, roofs[i]))
        indoor_db = {"umi": 7.0, "uma": 7.0, "rma": 8.0}[channel["scenario"]]
        outdoor_db = shadowing_std_db(channel, distance[i], bool(sight[i]))
        spread.append(indoor_db if where == "in a building" else outdoor_db)
    return np.array(path), normal * np.array(spread)


def gain(preset: str, round_index: int, num_devices: int, seed: int) -> np.ndarray:
    """Return the gains of a round: (n,) or (n, M)."""
    table = numbers(preset)
    channel = table["channel"]
    rng = stream(seed, CHANNEL, round_index)
    if channel["kind"] == "uniform":
        return channel["low"] + (channel["high"] - channel["low"]) * rng.random(num_devices)
    path, shadowing = losses_db(preset, num_devices, seed)
    mean = 10 ** (-(path + shadowing) / 10)
    if channel["kind"] == "3gpp":
        walls = np.array([place[3] for place in whereabouts(preset, num_devices, seed)])
        mean = mean * 10 ** ((channel.get("base_station_antenna_gain_dbi", 0.0) - walls) / 10)
    fading = channel["fading"]
    if fading["kind"] == "none":
        return mean
    if fading["kind"] == "delay-line":
        power = fleet(preset, num_devices, seed)["max_power_w"]
        noise = noise_w(preset) + interference_w(preset, round_index, seed)
        k = k_factors(preset, num_devices, seed)
        if table["rate"].get("per_moment"):
            antennas = channel["num_receive_antennas"]
            return np.array(
                [
                    modem_gain(p, antennas * h, float(noise[0]), float(kk), antennas, table["rate"])
                    for p, h, kk in zip(power, mean, k, strict=True)
                ]
            )
        return np.array(
            [[lasting_gain(p, h, n, kk) for n in noise] for p, h, kk in zip(power, mean, k, strict=True)]
        )
    if fading.get("per_block", True):
        return mean[:, None] * rng.standard_exponential((num_devices, table["num_blocks"]))
    return mean * rng.standard_exponential(num_devices)


def k_factors(preset: str, num_devices: int, seed: int) -> np.ndarray:
    """Return K of Table 7.5-6, correlated with shadowing and delay spread; 0 without a clear sight."""
    mean_db, std_db, delay_gain, delay_k, k_gain = {
        "umi": (9.0, 5.0, -0.4, -0.7, 0.5),
        "uma": (9.0, 3.5, -0.4, -0.4, 0.0),
        "rma": (7.0, 4.0, -0.5, 0.0, 0.0),
    }[numbers(preset)["channel"]["scenario"]]
    loud = -stream(seed, FLEET, SHADOWING).standard_normal(num_devices)
    own = stream(seed, FLEET, ECHOES).standard_normal(2 * num_devices)
    first, second = own[:num_devices], own[num_devices:]
    # K = a * loud + b * first + c * second with the right correlation to (delay_gain * loud + ... * first).
    b = (delay_k - delay_gain * k_gain) / math.sqrt(1 - delay_gain**2)
    c = math.sqrt(1 - k_gain**2 - b**2)
    k_db = mean_db + std_db * (k_gain * loud + b * first + c * second)
    outside = [place[0] != "in a building" for place in whereabouts(preset, num_devices, seed)]
    return np.where(in_sight(preset, num_devices, seed) & outside, 10 ** (k_db / 10), 0.0)


def modem_reached(snr: float, k: float, antennas: int, rate: dict[str, float]) -> float:
    """Return the mean of what a modem makes of each moment, in bit/s/Hz, by scipy's density of fading."""
    scale = 2 * antennas * (1 + k)
    log_g = np.linspace(-18.0 if antennas == 1 and k < 1 else -9.0, 3.5, 8_001)
    share = np.exp(log_g)
    density = stats.ncx2.pdf(scale * share, 2 * antennas, 2 * antennas * k) * share
    moment = np.minimum(rate["efficiency"] * np.log2(1 + snr * share), rate["max_spectral_efficiency"])
    moment[snr * share < 10 ** (rate["min_sinr_db"] / 10)] = 0.0
    return float(np.sum(density * moment) / np.sum(density))


def modem_gain(
    power: float, gain: float, noise: float, k: float, antennas: int, rate: dict[str, float]
) -> float:
    """Return the steady gain whose rate, with 98 % of the cap and 3 dB above the floor, is never too much."""

    def reached(snr_db: float) -> float:
        return modem_reached(10 ** (snr_db / 10), k, antennas, rate)

    def share_db(snr_db: float) -> float:
        return 10 * math.log10(2 ** (reached(snr_db) / rate["efficiency"]) - 1) - snr_db

    full_db = 10 * math.log10(power * gain / noise)
    if reached(full_db) >= 0.98 * rate["max_spectral_efficiency"]:
        full_db = optimize.brentq(
            lambda x: reached(x) - 0.98 * rate["max_spectral_efficiency"], -20, full_db, xtol=1e-4
        )
    floor_db = rate["min_sinr_db"] + 3
    least = rate["efficiency"] * math.log2(1 + 10 ** (floor_db / 10))
    floor_share_db = floor_db - optimize.brentq(lambda x: reached(x) - least, -20, 20, xtol=1e-4)
    return gain * 10 ** (min(share_db(full_db), floor_share_db) / 10)


def lasting_gain(power: float, gain: float, noise: float, k: float) -> float:
    """Return the steady gain with the rate that Rician fading around ``gain`` has on average."""
    snr = power * gain / noise
    root = np.linspace(0.0, math.sqrt(1.0 if k > 60 else 40.0) * (1.0 if k <= 60 else 2.5), 20_001)[1:]
    share = root**2  # the fading; its density at g = root^2, times dg = 2 root droot
    exponent = -((np.sqrt((1 + k) * share) - math.sqrt(k)) ** 2)
    density = (1 + k) * np.exp(exponent) * special.ive(0, 2 * np.sqrt(k * (1 + k) * share)) * 2 * root
    weight = density * (root[1] - root[0])
    mean_log = float(np.sum(weight * np.log1p(snr * share)) / np.sum(weight))
    return math.expm1(mean_log) / snr * gain
