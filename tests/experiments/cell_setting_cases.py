"""The settings of a radio cell, and what each is to do to the channel, the fleet, the server or the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.experiments import experiment_to_toml
from fedwave.rng import Stream, generator
from fedwave.units import FloatArray
from fedwave.wireless import cell as cell_module
from fedwave.wireless.channels import sionna as sionna_module
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.interference import HexagonalInterference
from fedwave.wireless.path_loss import RuralMacro, Scenario, UrbanMacro, UrbanMicro
from tests.experiments.built import Built
from tests.experiments.cell_tables import SMALL
from tests.experiments.schema_walk import TABLES
from tests.experiments.setting_cases import Look, SettingCase, case

PAPER = {"preset": "paper", "num_blocks": 3, "method": "greedy"}
STREET = {"preset": "umi-3.5ghz", "num_blocks": 3, "method": "greedy"}


def cell_case(
    cell: dict[str, Any], path: str, value: Any, look: Look, expected: Any, **changes: Any
) -> SettingCase:
    """A case over one of the two cells, with changes to it."""
    return case(f"cell.{path}", value, look, expected, cell={**cell, **changes})


def estimation(built: Any) -> Any:
    """Return what the planner knows, and whether the world says what that costs."""
    return type(built.planner.estimation).__name__, built.world.shows_regret


def estimation_option(name: str) -> Look:
    return lambda built: getattr(built.planner.estimation, name)


def planner_case(name: str, value: Any, **changes: Any) -> SettingCase:
    """A setting that the planner is to be told."""
    return cell_case(PAPER, name, value, lambda built: getattr(built.planner, name), value, **changes)


def aims_case(name: str, value: Any) -> SettingCase:
    """A setting that is to be among the planner's aims."""
    return cell_case(PAPER, name, value, lambda built: getattr(built.planner.aims, name), value)


def planner_and_world_case(part: str, name: str, value: Any) -> SettingCase:
    """A setting that planner and world are both to be told, in their terms or their work."""
    return cell_case(PAPER, name, value, lambda built: built.both(part, name), (value, value))


def noise_psd(built: Built) -> tuple[float, float]:
    return built.planner.terms.noise_psd_w_per_hz, built.cell.noise_psd_w_per_hz


def lost(fate: str) -> Look:
    """How many uploads of the first round met this fate."""
    return lambda built: built.record.columns[f"num_{fate}"]


def is_redrawn(built: Built) -> bool:
    first, second = built.cell.draw(0), built.cell.draw(1)
    return not np.array_equal(first.channel_gain, second.channel_gain)


def is_almost_still(built: Built) -> bool:
    """Whether the second round's gains are nearly, but not quite, those of the first."""
    first, second = built.cell.draw(0).channel_gain, built.cell.draw(1).channel_gain
    return is_redrawn(built) and bool(np.allclose(first, second, rtol=1e-3, atol=0.0))


# The channel ------------------------------------------------------------------------------------------------


def large_scale(name: str) -> Look:
    """A column of the devices' places."""
    return lambda built: getattr(built.cell.large_scale, name).tolist()


def num_in(what: str) -> Look:
    """How many devices are in buildings, or in cars."""

    def look(built: Built) -> int:
        place = built.cell.large_scale
        assert place is not None
        return 0 if place.whereabouts is None else int(getattr(place.whereabouts, what).sum())

    return look


def median_penetration_db(built: Built) -> float:
    return float(np.median(built.cell.large_scale.whereabouts.penetration_db))


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


def scenario_case(path: str, value: Any, like: Scenario, **changes: Any) -> SettingCase:
    """A setting of the 3GPP channel, with the same in a scenario that is built by hand."""
    channel = {**TABLES["channel"]["3gpp"], **changes}
    look, expected = large_scale("path_loss_db"), blocked_loss_db(like)
    return cell_case(PAPER, f"channel[3gpp].{path}", value, look, expected, channel=channel)


@contextmanager
def sionna_asked() -> Iterator[dict[str, Any]]:
    """Stand in for Sionna, which need not be installed, and note what it is asked for."""
    asked: dict[str, Any] = {}

    def gains(scenario: str, **told: Any) -> np.ndarray:
        asked.update(told, scenario=scenario)
        return np.full((told["num_rounds"], len(told["position_m"]), told["num_blocks"]), 1e-9)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sionna_module, "sionna_gains", gains)
        yield asked


def kind_of(part: str) -> Look:
    def look(built: Built) -> str:
        with sionna_asked():
            config = built.cell.config
        if part == "channel":
            return type(built.cell.channel).__name__
        if part == "interference":
            return config.interference.kind
        return getattr(config.channel, part, config.interference).kind

    return look


def placement_cases(
    channel: str, distances: Callable[[Built], tuple[float, float]] = distances_m
) -> list[SettingCase]:
    """Where devices stand, which three kinds of channel are told."""
    place = f"channel[{channel}].placement"

    def between(low: float, high: float) -> Look:
        def look(built: Built) -> bool:
            nearest_m, farthest_m = distances(built)
            return low <= nearest_m < farthest_m <= high

        return look

    return [
        cell_case(PAPER, f"{place}[disc].kind", "disc", kind_of("placement"), "disc"),
        cell_case(PAPER, f"{place}[file].kind", "file", kind_of("placement"), "file"),
        cell_case(
            STREET,
            f"{place}[uniform-distance].kind",
            "uniform-distance",
            kind_of("placement"),
            "uniform-distance",
        ),
        cell_case(PAPER, f"{place}[disc].radius_m", 21.0, between(20.0, 21.0), True),
        cell_case(PAPER, f"{place}[disc].min_distance_m", 299.0, between(299.0, 300.0), True),
        cell_case(PAPER, f"{place}[uniform-distance].min_distance_m", 50.0, between(50.0, 100.0), True),
        cell_case(PAPER, f"{place}[uniform-distance].max_distance_m", 150.0, between(100.0, 150.0), True),
        cell_case(PAPER, f"{place}[file].path", "more_positions.csv", distances, (100.0, 100.0)),
    ]


def fading_cases(channel: str) -> list[SettingCase]:
    """Fading, which two kinds of channel have."""
    fading = f"channel[{channel}].fading"
    table = TABLES["channel"][channel]
    sight = {"line_of_sight": "always"} if channel == "3gpp" else {}  # who is not in sight has no steady path
    faded = {kind: {**table, **sight, "fading": {"kind": kind}} for kind in ("rayleigh", "rician")}
    shape: Look = lambda built: built.gain.shape  # noqa: E731
    return [
        cell_case(PAPER, f"{fading}[none].kind", "none", shape, (8,), channel=faded["rician"]),
        cell_case(PAPER, f"{fading}[rayleigh].kind", "rayleigh", shape, (8, 3), channel=table),
        cell_case(PAPER, f"{fading}[rician].kind", "rician", shape, (8, 3), channel=table),
        cell_case(PAPER, f"{fading}[rician].rician_k_db", 100.0, steady_gains, True, channel=faded["rician"]),
        *(
            cell_case(PAPER, f"{fading}[{kind}].per_block", False, shape, (8,), channel=faded[kind])
            for kind in ("rayleigh", "rician")
        ),
    ]


def delay_line_case(name: str, value: Any, look: Look, expected: Any, **fading: Any) -> SettingCase:
    """What the echoes of TR 38.901 are told, over a cell that is drawn anew each round."""
    channel = {**TABLES["channel"]["3gpp"], "fading": {"kind": "delay-line", **fading}}
    path = f"channel[3gpp].fading[delay-line].{name}"
    return cell_case(PAPER, path, value, look, expected, channel=channel, redraw="each-round")


def flat_delay_line_case(name: str, value: Any) -> SettingCase:
    """What a log-distance channel is not to be told: it has no echoes."""
    why = (
        'refused: cell.channel: fading.kind "delay-line" needs the tables of channel kind "3gpp". '
        'Use "rayleigh" or "rician".'
    )
    path = f"channel[log-distance].fading[delay-line].{name}"
    channel = {**TABLES["channel"]["log-distance"], "fading": "none"}
    return cell_case(PAPER, path, value, kind_of("channel"), why, channel=channel)


def to_sionna(name: str) -> Look:
    """What Sionna is asked for."""

    def look(built: Built) -> Any:
        with sionna_asked() as asked:
            assert built.sim is not None  # is built here, once
        return np.asarray(asked[name]).tolist()

    return look


def sionna_distances_m(built: Built) -> tuple[float, float]:
    distance_m = np.hypot(*np.transpose(to_sionna("position_m")(built)))
    return float(distance_m.min()), float(distance_m.max())


def sionna_case(name: str, value: Any, *, told: str = "", expected: Any = None) -> SettingCase:
    """A setting that Sionna is to be told, where it is not the same under a name or in a unit of its own."""
    expected = value if expected is None else expected
    return cell_case(PAPER, f"channel[sionna].{name}", value, to_sionna(told or name), expected)


# Fleet and interference -------------------------------------------------------------------------------------


def fleet_cases(name: str, value: float, expected: float | None = None, **fleet: Any) -> list[SettingCase]:
    """A column of the fleet: the same for all devices, or drawn from a range, here one without width.

    ``fleet`` is what the other columns are to be.
    """
    column = "max_power_w" if name == "max_power_dbm" else name
    look: Look = lambda built: getattr(built.cell.fleet, column).tolist()  # noqa: E731
    if name == "cycles_per_operation":
        look = cycles_per_operation
    if name == "joules_per_operation":
        look = joules_per_operation
    same = pytest.approx([value if expected is None else expected] * 8)
    below, above = {"low": value - 1, "high": value}, {"low": value, "high": value + 1}
    return [
        cell_case(PAPER, f"fleet.{name}", value, look, same, fleet=fleet),
        cell_case(PAPER, f"fleet.{name}[range].low", value, look, same, fleet={**fleet, name: below}),
        cell_case(PAPER, f"fleet.{name}[range].high", value, look, same, fleet={**fleet, name: above}),
    ]


def cycles_per_operation(built: Built) -> list[float]:
    return per_operation(built, lambda fleet: fleet.cycles_per_sample)


def joules_per_operation(built: Built) -> list[float]:
    return per_operation(built, lambda fleet: fleet.joules_per_cycle * fleet.cycles_per_sample)


def per_operation(built: Built, of_a_sample: Callable[[Fleet], FloatArray]) -> list[float]:
    """What a sample takes over its multiply-adds, as the fleet's draw was told them."""
    draw_fleet, told = cell_module.draw_fleet, []

    def draw(config: Any, *, operations_per_sample: float, **options: Any) -> Any:
        told.append(operations_per_sample)
        return draw_fleet(config, operations_per_sample=operations_per_sample, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_module, "draw_fleet", draw)
        taken = of_a_sample(built.cell.fleet)
    return list(taken / told[-1])


def interference_w(built: Built) -> list[float]:
    return built.cell.draw(0).interference_w.tolist()


def interference_case(kind: str, name: str, value: Any, expected: list[float], **table: Any) -> SettingCase:
    changes = {"interference": {"kind": kind, **table}} if table else {}
    path = f"interference[{kind}].{name}"
    return cell_case(PAPER, path, value, interference_w, pytest.approx(expected), **changes)


def rise(db: float) -> list[float]:
    """What lifts the noise of the paper's cell, B N0 = 1, by so many dB on three blocks."""
    return [10 ** (db / 10) - 1] * 3


def neighbour_case(name: str, value: Any) -> SettingCase:
    """A setting of the ring of neighbours, with the same in a ring that is built by hand."""
    ring = HexagonalInterference.model_validate({**TABLES["interference"]["hexagonal"], name: value})
    first_round = generator(SMALL["seed"], Stream.INTERFERENCE, 0)
    heard_w = ring.draw_w(num_blocks=3, noise_w=1.0, rng=first_round).tolist()
    expected = pytest.approx(heard_w, rel=1e-9, abs=0.0)  # picowatts
    return cell_case(PAPER, f"interference[hexagonal].{name}", value, interference_w, expected)


# Modem, amplifier, broadcast --------------------------------------------------------------------------------


def downlink_case(name: str, value: Any, look: str, expected: Any) -> SettingCase:
    """A setting of the broadcast, over one of 2 W."""
    told: Look = lambda built: getattr(built.cell.downlink, look)  # noqa: E731
    return cell_case(
        PAPER, f"downlink.{name}", value, told, expected, downlink={"broadcast": True, "power_w": 2.0}
    )


def downlink_rate_case(name: str, value: Any, expected: Any, *, told: str = "") -> SettingCase:
    """A setting of the way down's own link curve."""
    look: Look = lambda built: getattr(built.cell.downlink.rate, told or name)  # noqa: E731
    downlink = {"broadcast": True, "power_w": 2.0, "rate": {"efficiency": 0.9}}
    return cell_case(PAPER, f"downlink.rate.{name}", value, look, expected, downlink=downlink)


METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "optimal": {"relative_gap": 0.1, "max_matchings": 9},
    "threshold": {"num_thresholds": 3},
    "ives": {"start": 0.5, "max_iterations": 1, "keep_negative": True},
    "ives-multistart": {"num_starts": 3, "max_iterations": 2},
    "chen2020": {"max_delay_s": 3.0, "max_energy_j": 4.0, "waterfall_threshold": 0.1},
}

CELL_CASES = [
    cell_case(
        PAPER,
        "description",
        "mine",
        lambda built: 'description = "mine"' in experiment_to_toml(built.experiment),
        True,
    ),
    cell_case(STREET, "normalised", True, lambda built: built.planner.work.model_bits, 1.0),
    cell_case(
        PAPER,
        "num_blocks",
        4,
        lambda built: (
            built.planner.terms.num_blocks,
            built.record.columns["num_selected"],
            len(interference_w(built)),
        ),
        (4, 4, 4),
    ),
    cell_case(
        PAPER,
        "bandwidth_hz",
        2.0,
        lambda built: (built.planner.terms.bandwidth_hz, built.cell.bandwidth_hz),
        (2.0, 2.0),
    ),
    cell_case(
        PAPER,
        "blocks_per_device",
        2,
        lambda built: (
            built.planner.terms.bandwidth_hz,
            built.cell.bandwidth_hz,
            built.planner.terms.num_blocks,
        ),
        (2.0, 2.0, 3),
    ),
    cell_case(
        STREET,
        "access",
        "tdma",
        lambda built: (built.both("terms", "access"), "upload_start_s" in built.record.device_columns),
        (("tdma", "tdma"), True),
        method="optimal",
    ),
    cell_case(
        STREET,
        "max_uploads",
        1,
        lambda built: (built.planner.terms.max_uploads, built.record.columns["num_selected"] <= 1),
        (1, True),
        method="optimal",
    ),
    cell_case(
        STREET,
        "work_conserving",
        True,
        lambda built: built.both("terms", "work_conserving"),
        (True, True),
        method="optimal",
        access="blocks",
    ),
    cell_case(PAPER, "noise_psd_w_per_hz", 2.0, noise_psd, (2.0, 2.0)),
    cell_case(PAPER, "noise_psd_dbm_per_hz", 33.0, noise_psd, pytest.approx((10**0.3, 10**0.3))),
    cell_case(PAPER, "noise_figure_db", 7.0, noise_psd, pytest.approx((10**0.7, 10**0.7))),
    cell_case(PAPER, "redraw", "each-round", is_redrawn, True),
    cell_case(PAPER, "preset", "chen2020", lambda built: built.cell.bandwidth_hz, 1e6),
    planner_case("method", "random"),
    cell_case(PAPER, "estimation", "log-normal", estimation, ("LogNormalError", True)),
    *(
        cell_case(PAPER, f"estimation[{kind}].{name}", value, estimation_option(name), value)
        for kind, name, value in (
            ("log-normal", "error_db", 2.0),
            ("log-normal", "quantile", 0.25),
            ("log-normal", "per_block", True),
            ("complex-gaussian", "nmse", 0.5),
            ("complex-gaussian", "quantile", 0.25),
            ("complex-gaussian", "per_block", True),
        )
    ),
    *(
        cell_case(
            PAPER, f"method[{kind}].{name}", value, lambda built: built.planner.method_options, {name: value}
        )
        for kind, options in METHOD_OPTIONS.items()
        for name, value in options.items()
    ),
    aims_case("energy_weight", 0.3),
    aims_case("delay_weight", 0.4),
    aims_case("max_delay_s", 50.0),
    aims_case("max_energy_j", 60.0),
    cell_case(
        PAPER, "contribution_scale", "normalised", lambda built: built.planner.aims.scale.kind, "normalised"
    ),
    cell_case(
        PAPER,
        "contribution_constant",
        2.5,
        lambda built: built.planner.aims.scale(np.array([1.0, -1.0])).tolist(),
        [3.5, 1.5],
        contribution_scale="constant",
    ),
    cell_case(
        PAPER,
        "contribution_size",
        6.0,
        lambda built: built.planner.aims.scale(np.array([1.0, -2.0])).tolist(),
        [4.0, -8.0],
        contribution_scale="normalised",
    ),
    cell_case(
        PAPER,
        "samples_counted",
        2,
        lambda built: (
            (built.planner.fleet.cycles_per_sample * built.planner.work.num_samples / 2).round(12).tolist()
            == built.cell_as_drawn.fleet.cycles_per_sample.round(12).tolist()
        ),
        True,
    ),
    cell_case(
        PAPER,
        "bits_per_parameter",
        16,
        lambda built: (built.sim.federation.bits_per_parameter, built.both("work", "model_bits")),
        (16, (0.5, 0.5)),
    ),
    planner_and_world_case("work", "model_bits", 7.0),
    planner_and_world_case("terms", "report_bits", 8.0),
    cell_case(PAPER, "idle_power_w", 0.5, lambda built: built.world.idle_power_w, 0.5),
    cell_case(
        PAPER,
        "carbon_intensity_g_per_kwh",
        380.0,
        lambda built: built.cell.config.carbon_intensity_g_per_kwh,
        380.0,
    ),
    # Channels
    cell_case(STREET, "channel[uniform].kind", "uniform", kind_of("channel"), "UniformChannel"),
    cell_case(PAPER, "channel[3gpp].kind", "3gpp", kind_of("channel"), "ThreeGppChannel"),
    cell_case(PAPER, "channel[log-distance].kind", "log-distance", kind_of("channel"), "LogDistanceChannel"),
    cell_case(PAPER, "channel[file].kind", "file", kind_of("channel"), "FileChannel"),
    cell_case(PAPER, "channel[uniform].low", 0.9, lambda built: built.gain.tolist(), [0.9] * 8),
    cell_case(PAPER, "channel[uniform].high", 0.1, lambda built: built.gain.tolist(), [0.1] * 8),
    scenario_case("scenario", "uma", UrbanMacro(carrier_frequency_hz=3.5e9)),
    scenario_case("carrier_frequency_hz", 28e9, UrbanMicro(carrier_frequency_hz=28e9)),
    scenario_case(
        "base_station_height_m", 30.0, UrbanMicro(carrier_frequency_hz=3.5e9, base_station_height_m=30.0)
    ),
    scenario_case("device_height_m", 9.0, UrbanMicro(carrier_frequency_hz=3.5e9, device_height_m=9.0)),
    scenario_case(
        "building_height_m",
        30.0,
        RuralMacro(carrier_frequency_hz=3.5e9, building_height_m=30.0),
        scenario="rma",
    ),
    scenario_case(
        "street_width_m", 40.0, RuralMacro(carrier_frequency_hz=3.5e9, street_width_m=40.0), scenario="rma"
    ),
    cell_case(PAPER, "channel[3gpp].line_of_sight", "always", large_scale("is_line_of_sight"), [True] * 8),
    cell_case(PAPER, "channel[3gpp].shadowing", True, lambda built: len(set(built.gain)), 8),
    cell_case(
        PAPER,
        "channel[3gpp].antenna_gain_db",
        13.0,
        lambda built: gain_db(built) + large_scale("path_loss_db")(built)[0],
        pytest.approx(13.0),
    ),
    cell_case(
        PAPER,
        "channel[3gpp].base_station_antenna_gain_dbi",
        8.0,
        lambda built: gain_db(built) + large_scale("path_loss_db")(built)[0],
        pytest.approx(8.0),
    ),
    cell_case(
        PAPER,
        "channel[3gpp].num_receive_antennas",
        4,
        lambda built: gain_db(built) + large_scale("path_loss_db")(built)[0],
        pytest.approx(10 * np.log10(4)),
    ),
    cell_case(PAPER, "channel[3gpp].indoor_share", 1.0, num_in("is_indoor"), 8),
    cell_case(PAPER, "channel[3gpp].car_share", 1.0, num_in("is_in_car"), 8),
    # Coated windows cost 26.8 dB and more, of standard glass 12.7 dB; sigma_P is 4.4 or 6.5 dB.
    cell_case(
        PAPER,
        "channel[3gpp].high_loss_share",
        1.0,
        lambda built: median_penetration_db(built) > 24.0,
        True,
        channel={**TABLES["channel"]["3gpp"], "indoor_share": 1.0, "high_loss_share": 0.0},
    ),
    cell_case(
        PAPER,
        "channel[3gpp].indoor_floors",
        True,
        lambda built: bool(built.cell.large_scale.whereabouts.floor.any()),
        True,
        channel={**TABLES["channel"]["3gpp"], "indoor_share": 1.0},
    ),
    # At 100 m: -40 dB, minus 10 * 3 * log10(100)
    cell_case(PAPER, "channel[log-distance].reference_loss_db", 50.0, gain_db, pytest.approx(-50.0 - 60.0)),
    cell_case(
        PAPER, "channel[log-distance].reference_distance_m", 10.0, gain_db, pytest.approx(-40.0 - 30.0)
    ),
    cell_case(PAPER, "channel[log-distance].exponent", 2.0, gain_db, pytest.approx(-40.0 - 40.0)),
    cell_case(PAPER, "channel[log-distance].antenna_gain_db", 13.0, gain_db, pytest.approx(-100.0 + 13.0)),
    cell_case(
        PAPER,
        "channel[log-distance].base_station_antenna_gain_dbi",
        8.0,
        gain_db,
        pytest.approx(-100.0 + 8.0),
    ),
    cell_case(
        PAPER,
        "channel[log-distance].num_receive_antennas",
        4,
        gain_db,
        pytest.approx(-100.0 + 10 * np.log10(4)),
    ),
    cell_case(PAPER, "channel[log-distance].shadowing_std_db", 6.0, lambda built: len(set(built.gain)), 8),
    *placement_cases("3gpp"),
    *placement_cases("log-distance"),
    *placement_cases("sionna", sionna_distances_m),
    *fading_cases("3gpp"),
    *fading_cases("log-distance"),
    delay_line_case("ergodic", False, lambda built: built.cell.channel.ergodic_k_factor is None, True),
    delay_line_case("round_interval_s", 1e-6, is_almost_still, True, ergodic=False),
    # Who stands still meets the same echoes in every round.
    delay_line_case("speed_km_per_h", 0.0, is_redrawn, False, ergodic=False, round_interval_s=10.0),
    cell_case(
        PAPER,
        "channel[3gpp].fading[delay-line].kind",
        "delay-line",
        kind_of("fading"),
        "delay-line",
        channel=TABLES["channel"]["3gpp"],
    ),
    flat_delay_line_case("kind", "delay-line"),
    flat_delay_line_case("ergodic", False),
    flat_delay_line_case("round_interval_s", 1e-6),
    flat_delay_line_case("speed_km_per_h", 0.0),
    cell_case(PAPER, "channel[sionna].kind", "sionna", kind_of("channel"), "SionnaChannel"),
    sionna_case("scenario", "uma"),
    sionna_case("carrier_frequency_hz", 28e9),
    sionna_case("base_station_height_m", 30.0),
    sionna_case("device_height_m", 9.0),
    sionna_case("num_rounds", 5),
    sionna_case("round_interval_s", 2.0),
    sionna_case("speed_km_per_h", 36.0, told="speed_m_per_s", expected=pytest.approx(10.0)),
    cell_case(PAPER, "channel[file].path", "more_gains.npy", lambda built: float(built.gain[0, 0]), 0.5),
    cell_case(
        PAPER,
        "channel[file].in_db",
        True,
        lambda built: float(built.gain[0, 0]),
        pytest.approx(0.01),
        channel={"kind": "file", "path": "gains_db.npy"},
    ),
    case(
        "cell.channel[file].beyond_last_round",
        "cycle",
        third_round,
        0.1,
        num_rounds=2,
        cell={**PAPER, "channel": {"kind": "file", "path": "two_rounds.npy"}},
    ),
    # Fleet
    *fleet_cases("max_power_w", 3.0),
    *fleet_cases("max_power_dbm", 27.0, 10**-0.3),
    *fleet_cases("max_frequency_hz", 3.0),
    *fleet_cases("min_frequency_hz", 3.0, max_frequency_hz=5.0),
    *fleet_cases("capacitance", 3.0),
    *fleet_cases("cycles_per_sample", 3.0),
    *fleet_cases("cycles_per_operation", 3.0),
    *fleet_cases("static_power_w", 3.0),
    *fleet_cases("joules_per_cycle", 3.0),
    *fleet_cases("joules_per_operation", 3.0),
    cell_case(
        PAPER, "fleet.cpu", "single-board", lambda built: built.cell.fleet.static_power_w.tolist(), [2.45] * 8
    ),
    cell_case(
        PAPER, "fleet.path", "fleet.csv", lambda built: built.cell.fleet.max_power_w.tolist(), [0.125] * 8
    ),
    # Interference
    cell_case(PAPER, "interference[none].kind", "none", interference_w, [0.0] * 3),
    *(
        cell_case(STREET, f"interference[{kind}].kind", kind, kind_of("interference"), kind)
        for kind in ("drawn", "evenly-spaced", "hexagonal", "listed")
    ),
    cell_case(PAPER, "interference[noise-rise].kind", "noise-rise", kind_of("interference"), "noise-rise"),
    interference_case("drawn", "power_w", 0.25, [0.25] * 3),
    interference_case("drawn", "power_w[range].low", 0.5, [0.5] * 3, power_w={"low": 0.1, "high": 0.5}),
    interference_case("drawn", "power_w[range].high", 0.5, [0.5] * 3, power_w={"low": 0.5, "high": 0.9}),
    interference_case("evenly-spaced", "low_w", 0.2, [0.2, 0.25, 0.3]),
    interference_case("evenly-spaced", "high_w", 0.5, [0.1, 0.3, 0.5]),
    interference_case("noise-rise", "rise_db", 5.0, rise(5.0)),
    interference_case("noise-rise", "rise_db[range].low", 5.0, rise(5.0), rise_db={"low": 1.0, "high": 5.0}),
    interference_case("noise-rise", "rise_db[range].high", 5.0, rise(5.0), rise_db={"low": 5.0, "high": 9.0}),
    interference_case(  # E 10^(r/10) of r ~ U(0, 6) is (10^0.6 - 1) / (0.6 ln 10)
        "noise-rise", "averaged", True, [2.981071706 / 1.381551056 - 1] * 3, rise_db={"low": 0.0, "high": 6.0}
    ),
    interference_case("listed", "power_w", [0.4, 0.5, 0.6], [0.4, 0.5, 0.6]),
    neighbour_case("site_distance_m", 300.0),
    neighbour_case("p0_dbm", -80.0),
    neighbour_case("alpha", 0.5),
    neighbour_case("max_power_dbm", 0.0),
    neighbour_case("load", 0.0),
    neighbour_case("reference_loss_db", 50.0),
    neighbour_case("reference_distance_m", 10.0),
    neighbour_case("exponent", 2.0),
    neighbour_case("shadowing_std_db", 6.0),
    neighbour_case("min_distance_m", 250.0),
    # Losses: three devices upload, and all are lost
    cell_case(PAPER, "losses.outage_snr_db", 100.0, lost("outage"), 3),
    cell_case(PAPER, "losses.packet_error_waterfall", 1e9, lost("packet_error"), 3),
    cell_case(PAPER, "losses.dropout_probability", 1.0, lost("dropped_out"), 3),
    cell_case(
        PAPER,
        "losses.deadline_s",
        1e-6,
        lambda built: (lost("late")(built), built.planner.terms.risks.deadline_s),
        (3, 1e-6),
    ),
    cell_case(
        PAPER,
        "losses.outage_margin_db",
        3.0,
        lambda built: built.cell.upload_risks.outage_margin,
        pytest.approx(10**0.3),
    ),
    # Modem, amplifier, broadcast
    cell_case(PAPER, "rate.efficiency", 0.5, lambda built: built.cell.rate_model.efficiency, 0.5),
    cell_case(
        PAPER,
        "rate.max_spectral_efficiency",
        4.0,
        lambda built: built.cell.rate_model.max_spectral_efficiency,
        4.0,
    ),
    cell_case(
        PAPER,
        "rate.min_sinr_db",
        3.0,
        lambda built: (built.cell.rate_model.min_snr, built.cell.upload_risks.outage_snr),
        pytest.approx((10**0.3, 10**0.3)),
    ),
    cell_case(
        PAPER,
        "rate.per_moment",
        True,
        lambda built: built.cell.rate_model.max_spectral_efficiency,
        pytest.approx(0.98 * 4.0),
        rate={"max_spectral_efficiency": 4.0},
        channel={**TABLES["channel"]["3gpp"], "fading": "delay-line"},
    ),
    cell_case(
        PAPER,
        "radio.amplifier_efficiency",
        0.25,
        lambda built: built.cell.radio_power.drain_w(np.ones(1)).tolist(),
        [4.0],
    ),
    cell_case(
        PAPER,
        "radio.circuit_power_w",
        0.5,
        lambda built: built.cell.radio_power.drain_w(np.ones(1)).tolist(),
        [1.5],
    ),
    cell_case(
        PAPER,
        "radio.power_set",
        "measured-x55",
        lambda built: built.cell.radio_power.circuit_power_w,
        pytest.approx(1.7762, rel=1e-4),
    ),
    cell_case(
        PAPER,
        "radio.waiting",
        "micro-sleep",
        lambda built: [state.power_w for state in built.cell.waiting.states],
        pytest.approx([0.45479], rel=1e-4),
        radio={"power_set": "measured-x55"},
    ),
    cell_case(
        PAPER,
        "radio.receive_bandwidth_hz",
        20e6,
        lambda built: built.cell.downlink.receive_power_w,
        pytest.approx(0.94365, rel=1e-4),
        radio={"power_set": "measured-x55"},
        downlink={"broadcast": True, "power_w": 2.0},
    ),
    cell_case(
        PAPER,
        "downlink.broadcast",
        True,
        lambda built: built.record.columns["downlink_energy_j"] > 0.0,
        True,
        downlink={"power_w": 2.0, "receive_power_w": 0.5},
    ),
    downlink_case("power_w", 3.0, "power_w", 3.0),
    downlink_case("power_dbm", 33.0, "power_w", pytest.approx(10**0.3)),
    # Three blocks of B N0 = 1
    downlink_case("noise_figure_db", 7.0, "noise_w", pytest.approx(3 * 10**0.7)),
    downlink_case("noise_rise_db", 5.0, "noise_w", pytest.approx(3 * 10**0.5)),
    downlink_case("receive_power_w", 0.5, "receive_power_w", 0.5),
    cell_case(
        PAPER,
        "downlink.num_receive_antennas",
        4,
        lambda built: float((built.cell.draw(0).downlink_gain / built.gain).mean()),
        4.0,
        downlink={"broadcast": True, "power_w": 2.0, "rate": {"efficiency": 0.6}},
    ),
    downlink_rate_case("efficiency", 0.5, 0.5),
    downlink_rate_case("max_spectral_efficiency", 4.0, 4.0),
    downlink_rate_case("min_sinr_db", 3.0, pytest.approx(10**0.3), told="min_snr"),
    cell_case(
        PAPER,
        "downlink.rate.per_moment",
        True,
        # In each moment: less than the cap, though the mean of Shannon's rate is above it.
        lambda built: bool(
            (built.cell.downlink.rate_bps(built.cell.draw(0).downlink_gain) < 0.5 * 3.0).all()
        ),
        True,
        downlink={"broadcast": True, "power_dbm": 60.0 + 93.0, "rate": {"max_spectral_efficiency": 0.5}},
        channel={**TABLES["channel"]["3gpp"], "fading": "delay-line"},
    ),
]
