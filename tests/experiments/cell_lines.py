"""The settings of a radio cell, and what each is to do to the channel, the fleet, the server or the world."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.experiments import experiment_to_toml
from fedwave.wireless.path_loss import RuralMacro, Scenario, UrbanMacro, UrbanMicro
from tests.experiments.built import Built
from tests.experiments.schema_walk import TABLES
from tests.experiments.setting_lines import Line, See, line

PAPER = {"preset": "paper", "num_blocks": 3, "method": "greedy"}
STREET = {"preset": "umi-3.5ghz", "num_blocks": 3, "method": "greedy"}


def over(cell: dict[str, Any], path: str, value: Any, see: See, expected: Any, **changes: Any) -> Line:
    """A line over one of the two cells, with changes to it."""
    return line(f"cell.{path}", value, see, expected, cell={**cell, **changes})


def of_planner(name: str, value: Any, **changes: Any) -> Line:
    """A setting that the planner is to be told."""
    return over(PAPER, name, value, lambda built: getattr(built.planner, name), value, **changes)


def of_both(name: str, value: Any) -> Line:
    """A setting that planner and world are both to be told."""
    return over(PAPER, name, value, lambda built: built.both(name), (value, value))


def noise_psd(built: Built) -> tuple[float, float]:
    return built.planner.noise_psd_w_per_hz, built.cell.noise_psd_w_per_hz


def lost(fate: str) -> See:
    """How many uploads of the first round met this fate."""
    return lambda built: built.record.columns[f"num_{fate}"]


def is_redrawn(built: Built) -> bool:
    first, second = built.cell.draw(0), built.cell.draw(1)
    return not np.array_equal(first.channel_gain, second.channel_gain)


# The channel ------------------------------------------------------------------------------------------------


def large_scale(name: str) -> See:
    """A column of the devices' places."""
    return lambda built: getattr(built.cell.large_scale, name).tolist()


def distances_m(built: Built) -> tuple[float, float]:
    place = built.cell.large_scale
    assert place is not None
    return float(place.distance_m.min()), float(place.distance_m.max())


def gain_db(built: Built) -> float:
    return float(10 * np.log10(built.gain.flat[0]))


def steady_gains(built: Built) -> bool:
    """Whether fading leaves the gains as the places make them."""
    place = built.cell.large_scale
    assert place is not None
    return bool(np.allclose(built.gain, place.gain[:, None], rtol=1e-3, atol=0.0))


def third_round(built: Built) -> float | str:
    try:
        return float(built.cell.draw(2).channel_gain[0, 0])
    except ProblemError:
        return "refused"


def blocked_loss_db(scenario: Scenario) -> Any:
    """The path loss of eight devices at 100 m without a clear sight, Table 7.4.1-1."""
    return pytest.approx(scenario.path_loss_db(np.full(8, 100.0), np.zeros(8, dtype=bool)).tolist())


def of_scenario(path: str, value: Any, like: Scenario, **changes: Any) -> Line:
    """A setting of the 3GPP channel, with the same in a scenario that is built by hand."""
    channel = {**TABLES["channel"]["3gpp"], **changes}
    see, expected = large_scale("path_loss_db"), blocked_loss_db(like)
    return over(PAPER, f"channel[3gpp].{path}", value, see, expected, channel=channel)


def kind_of(part: str) -> See:
    def see(built: Built) -> str:
        config = built.cell.config
        if part == "channel":
            return type(built.cell.channel).__name__
        if part == "interference":
            return config.interference.kind
        return getattr(config.channel, "placement", config.interference).kind

    return see


def of_places(channel: str) -> list[Line]:
    """Placement and fading, which two kinds of channel have."""
    place, fading = f"channel[{channel}].placement", f"channel[{channel}].fading"
    table = TABLES["channel"][channel]
    sight = {"line_of_sight": "always"} if channel == "3gpp" else {}  # who is not in sight has no steady path
    rician = {**table, **sight, "fading": {"kind": "rician"}}

    def between(low: float, high: float) -> See:
        return lambda built: low <= distances_m(built)[0] < distances_m(built)[1] <= high

    return [
        over(PAPER, f"{place}[disc].kind", "disc", kind_of("placement"), "disc"),
        over(PAPER, f"{place}[file].kind", "file", kind_of("placement"), "file"),
        over(
            STREET,
            f"{place}[uniform-distance].kind",
            "uniform-distance",
            kind_of("placement"),
            "uniform-distance",
        ),
        over(PAPER, f"{place}[disc].radius_m", 21.0, between(20.0, 21.0), True),
        over(PAPER, f"{place}[disc].min_distance_m", 299.0, between(299.0, 300.0), True),
        over(PAPER, f"{place}[uniform-distance].min_distance_m", 50.0, between(50.0, 100.0), True),
        over(PAPER, f"{place}[uniform-distance].max_distance_m", 150.0, between(100.0, 150.0), True),
        over(PAPER, f"{place}[file].path", "more_positions.csv", distances_m, (100.0, 100.0)),
        over(PAPER, f"{fading}.kind", "rayleigh", lambda built: built.gain.shape, (8, 3)),
        over(PAPER, f"{fading}.rician_k_db", 100.0, steady_gains, True, channel=rician),
        over(PAPER, f"{fading}.per_block", False, lambda built: built.gain.shape, (8,), channel=rician),
    ]


# Fleet and interference -------------------------------------------------------------------------------------


def of_fleet(name: str, value: float, expected: float | None = None) -> list[Line]:
    """A column of the fleet: the same for all devices, or drawn from a range, here one without width."""
    column = "max_power_w" if name == "max_power_dbm" else name
    see: See = lambda built: getattr(built.cell.fleet, column).tolist()  # noqa: E731
    same = pytest.approx([value if expected is None else expected] * 8)
    below, above = ({name: {"low": value - 1, "high": value}}, {name: {"low": value, "high": value + 1}})
    return [
        over(PAPER, f"fleet.{name}", value, see, same),
        over(PAPER, f"fleet.{name}[range].low", value, see, same, fleet=below),
        over(PAPER, f"fleet.{name}[range].high", value, see, same, fleet=above),
    ]


def interference_w(built: Built) -> list[float]:
    return built.cell.draw(0).interference_w.tolist()


def of_interference(kind: str, name: str, value: Any, expected: list[float], **table: Any) -> Line:
    changes = {"interference": {"kind": kind, **table}} if table else {}
    path = f"interference[{kind}].{name}"
    return over(PAPER, path, value, interference_w, pytest.approx(expected), **changes)


def rise(db: float) -> list[float]:
    """What lifts the noise of the paper's cell, B N0 = 1, by so many dB on three blocks."""
    return [10 ** (db / 10) - 1] * 3


CELL_LINES = [
    over(
        PAPER,
        "description",
        "mine",
        lambda built: 'description = "mine"' in experiment_to_toml(built.experiment),
        True,
    ),
    over(STREET, "normalised", True, lambda built: built.planner.model_bits, 1.0),
    over(
        PAPER,
        "num_blocks",
        4,
        lambda built: (
            built.planner.num_blocks,
            built.record.columns["num_selected"],
            len(interference_w(built)),
        ),
        (4, 4, 4),
    ),
    over(
        PAPER,
        "bandwidth_hz",
        2.0,
        lambda built: (built.planner.bandwidth_hz, built.cell.bandwidth_hz),
        (2.0, 2.0),
    ),
    over(PAPER, "noise_psd_w_per_hz", 2.0, noise_psd, (2.0, 2.0)),
    over(PAPER, "noise_psd_dbm_per_hz", 33.0, noise_psd, pytest.approx((10**0.3, 10**0.3))),
    over(PAPER, "noise_figure_db", 7.0, noise_psd, pytest.approx((10**0.7, 10**0.7))),
    over(PAPER, "redraw", "each-round", is_redrawn, True),
    over(PAPER, "preset", "chen2020", lambda built: built.cell.bandwidth_hz, 1e6),
    of_planner("method", "random"),
    of_planner("method_options", {"max_iterations": 1}, method="ives"),
    of_planner("energy_weight", 0.3),
    of_planner("delay_weight", 0.4),
    of_planner("max_delay_s", 50.0),
    of_planner("max_energy_j", 60.0),
    over(PAPER, "contribution_scale", "normalised", lambda built: built.planner.scale.kind, "normalised"),
    over(
        PAPER,
        "contribution_constant",
        2.5,
        lambda built: built.planner.scale(np.array([1.0, -1.0])).tolist(),
        [3.5, 1.5],
        contribution_scale="constant",
    ),
    over(
        PAPER,
        "bits_per_parameter",
        16,
        lambda built: (built.sim.federation.bits_per_parameter, built.both("model_bits")),
        (16, (0.5, 0.5)),
    ),
    of_both("model_bits", 7.0),
    of_both("report_bits", 8.0),
    over(PAPER, "idle_power_w", 0.5, lambda built: built.world.idle_power_w, 0.5),
    # Channels
    over(STREET, "channel[uniform].kind", "uniform", kind_of("channel"), "UniformChannel"),
    over(PAPER, "channel[3gpp].kind", "3gpp", kind_of("channel"), "ThreeGppChannel"),
    over(PAPER, "channel[log-distance].kind", "log-distance", kind_of("channel"), "LogDistanceChannel"),
    over(PAPER, "channel[file].kind", "file", kind_of("channel"), "FileChannel"),
    over(PAPER, "channel[uniform].low", 0.9, lambda built: built.gain.tolist(), [0.9] * 8),
    over(PAPER, "channel[uniform].high", 0.1, lambda built: built.gain.tolist(), [0.1] * 8),
    of_scenario("scenario", "uma", UrbanMacro(carrier_frequency_hz=3.5e9)),
    of_scenario("carrier_frequency_hz", 28e9, UrbanMicro(carrier_frequency_hz=28e9)),
    of_scenario(
        "base_station_height_m", 30.0, UrbanMicro(carrier_frequency_hz=3.5e9, base_station_height_m=30.0)
    ),
    of_scenario("device_height_m", 9.0, UrbanMicro(carrier_frequency_hz=3.5e9, device_height_m=9.0)),
    of_scenario(
        "building_height_m",
        30.0,
        RuralMacro(carrier_frequency_hz=3.5e9, building_height_m=30.0),
        scenario="rma",
    ),
    of_scenario(
        "street_width_m", 40.0, RuralMacro(carrier_frequency_hz=3.5e9, street_width_m=40.0), scenario="rma"
    ),
    over(PAPER, "channel[3gpp].line_of_sight", "always", large_scale("is_line_of_sight"), [True] * 8),
    over(PAPER, "channel[3gpp].shadowing", True, lambda built: len(set(built.gain)), 8),
    over(
        PAPER,
        "channel[3gpp].antenna_gain_db",
        13.0,
        lambda built: gain_db(built) + large_scale("path_loss_db")(built)[0],
        pytest.approx(13.0),
    ),
    # At 100 m: -40 dB, minus 10 * 3 * log10(100)
    over(PAPER, "channel[log-distance].reference_loss_db", 50.0, gain_db, pytest.approx(-50.0 - 60.0)),
    over(PAPER, "channel[log-distance].reference_distance_m", 10.0, gain_db, pytest.approx(-40.0 - 30.0)),
    over(PAPER, "channel[log-distance].exponent", 2.0, gain_db, pytest.approx(-40.0 - 40.0)),
    over(PAPER, "channel[log-distance].antenna_gain_db", 13.0, gain_db, pytest.approx(-100.0 + 13.0)),
    over(PAPER, "channel[log-distance].shadowing_std_db", 6.0, lambda built: len(set(built.gain)), 8),
    *of_places("3gpp"),
    *of_places("log-distance"),
    over(PAPER, "channel[file].path", "more_gains.npy", lambda built: float(built.gain[0, 0]), 0.5),
    over(
        PAPER,
        "channel[file].in_db",
        True,
        lambda built: float(built.gain[0, 0]),
        pytest.approx(0.01),
        channel={"kind": "file", "path": "gains_db.npy"},
    ),
    line(
        "cell.channel[file].beyond_last_round",
        "cycle",
        third_round,
        0.1,
        num_rounds=2,
        cell={**PAPER, "channel": {"kind": "file", "path": "two_rounds.npy"}},
    ),
    # Fleet
    *of_fleet("max_power_w", 3.0),
    *of_fleet("max_power_dbm", 27.0, 10**-0.3),
    *of_fleet("max_frequency_hz", 3.0),
    *of_fleet("capacitance", 3.0),
    *of_fleet("cycles_per_sample", 3.0),
    over(PAPER, "fleet.path", "fleet.csv", lambda built: built.cell.fleet.max_power_w.tolist(), [0.125] * 8),
    # Interference
    over(PAPER, "interference[none].kind", "none", interference_w, [0.0] * 3),
    *(
        over(STREET, f"interference[{kind}].kind", kind, kind_of("interference"), kind)
        for kind in ("drawn", "evenly-spaced", "listed")
    ),
    over(PAPER, "interference[noise-rise].kind", "noise-rise", kind_of("interference"), "noise-rise"),
    of_interference("drawn", "power_w", 0.25, [0.25] * 3),
    of_interference("drawn", "power_w[range].low", 0.5, [0.5] * 3, power_w={"low": 0.1, "high": 0.5}),
    of_interference("drawn", "power_w[range].high", 0.5, [0.5] * 3, power_w={"low": 0.5, "high": 0.9}),
    of_interference("evenly-spaced", "low_w", 0.2, [0.2, 0.25, 0.3]),
    of_interference("evenly-spaced", "high_w", 0.5, [0.1, 0.3, 0.5]),
    of_interference("noise-rise", "rise_db", 5.0, rise(5.0)),
    of_interference("noise-rise", "rise_db[range].low", 5.0, rise(5.0), rise_db={"low": 1.0, "high": 5.0}),
    of_interference("noise-rise", "rise_db[range].high", 5.0, rise(5.0), rise_db={"low": 5.0, "high": 9.0}),
    of_interference("listed", "power_w", [0.4, 0.5, 0.6], [0.4, 0.5, 0.6]),
    # Losses: three devices upload, and all are lost
    over(PAPER, "losses.outage_snr_db", 100.0, lost("outage"), 3),
    over(PAPER, "losses.packet_error_waterfall", 1e9, lost("packet_error"), 3),
    over(PAPER, "losses.dropout_probability", 1.0, lost("dropped_out"), 3),
    over(
        PAPER,
        "losses.deadline_s",
        1e-6,
        lambda built: (lost("late")(built), built.planner.deadline_s),
        (3, 1e-6),
    ),
]
