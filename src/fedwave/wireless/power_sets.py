"""What a radio draws in each of its states, in the power units of 3GPP TR 38.840 and in watts. Numpy alone.

The report (Study on UE power saving in NR, V16.0.0, clause 8.1) gives ratios and no watts: sending, receiving
and sleeping in units of the power of deep sleep. A set adds what a unit is worth, assumed or measured, and
where the scale begins. docs/energy.md has a line with its source for every number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from fedwave.units import dbm_to_watt
from fedwave.wireless.rate import RadioPower
from fedwave.wireless.sleep import NEVER_ASLEEP, SleepState, Waiting

# TR 38.840, clause 8.1, below 6 GHz: 100 MHz, 30 kHz, TDD, four receive antennas, one transmit antenna.
SEND_UNITS_AT_0_DBM = 250.0
SEND_UNITS_AT_23_DBM = 700.0
RECEIVE_UNITS = 300.0  # control and data
MONITOR_UNITS = 100.0  # control channel alone: a device that has to be reachable at any moment
MICRO_SLEEP_UNITS = 45.0
LIGHT_SLEEP_UNITS = 20.0
DEEP_SLEEP_UNITS = 1.0
LIGHT_RAMP_UNIT_S = 0.1  # 100 unit milliseconds to enter and leave it, beside its power
DEEP_RAMP_UNIT_S = 0.45
LIGHT_MIN_TIME_S = 6e-3  # it takes as long to enter and leave it
DEEP_MIN_TIME_S = 20e-3
_NARROWEST_HZ, _WIDEST_HZ = 10e6, 100e6  # for which the report's scaling of reception is said

WaitingKind = Literal["idle", "sleep", "micro-sleep", "monitor"]
WAITING_KINDS: tuple[str, ...] = get_args(WaitingKind)


def reception_scale(bandwidth_hz: float) -> float:
    """Return the share of the power of receiving 100 MHz: 0.4 + 0.6 (X - 20) / 80 for X MHz, TR 38.840.

    The report says it for 10 to 100 MHz; outside, the nearest of the two counts.
    """
    megahertz = min(max(bandwidth_hz, _NARROWEST_HZ), _WIDEST_HZ) / 1e6
    return 0.4 + 0.6 * (megahertz - 20.0) / 80.0


@dataclass(frozen=True, kw_only=True)
class PowerSet:
    """The watts of a radio: those of deep sleep, and of every unit of TR 38.840 above."""

    unit_w: float
    deep_sleep_w: float
    source: str

    def watts(self, units: float) -> float:
        """Return the power of a state: P(u) = P(deep sleep) + (u - 1) times a unit's watts."""
        return self.deep_sleep_w + (units - DEEP_SLEEP_UNITS) * self.unit_w

    @property
    def sending(self) -> RadioPower:
        """Amplifier and circuit: a straight line in transmitted watts through the report's 0 and 23 dBm."""
        low_w, high_w = dbm_to_watt(0.0), dbm_to_watt(23.0)
        efficiency = (high_w - low_w) / (self.watts(SEND_UNITS_AT_23_DBM) - self.watts(SEND_UNITS_AT_0_DBM))
        return RadioPower(
            amplifier_efficiency=efficiency,
            circuit_power_w=self.watts(SEND_UNITS_AT_0_DBM) - low_w / efficiency,
        )

    def receive_power_w(self, bandwidth_hz: float) -> float:
        """Return what receiving data drains with a bandwidth part so wide."""
        return self.watts(RECEIVE_UNITS * reception_scale(bandwidth_hz))

    def waiting(self, kind: WaitingKind, bandwidth_hz: float) -> Waiting:
        """Return what a radio draws between its phases; ``idle`` is none of a set's states."""
        micro = SleepState(power_w=self.watts(MICRO_SLEEP_UNITS))
        if kind == "idle":
            return NEVER_ASLEEP
        if kind == "micro-sleep":
            return Waiting((micro,))
        if kind == "monitor":
            return Waiting((SleepState(power_w=self.watts(MONITOR_UNITS * reception_scale(bandwidth_hz))),))
        light = SleepState(
            power_w=self.watts(LIGHT_SLEEP_UNITS),
            ramp_energy_j=LIGHT_RAMP_UNIT_S * self.unit_w,
            min_time_s=LIGHT_MIN_TIME_S,
        )
        deep = SleepState(
            power_w=self.deep_sleep_w,
            ramp_energy_j=DEEP_RAMP_UNIT_S * self.unit_w,
            min_time_s=DEEP_MIN_TIME_S,
        )
        return Waiting((micro, light, deep))


def _with_amplifier(efficiency: float, source: str) -> PowerSet:
    """Return the set whose amplifier is so good: the units between 0 and 23 dBm are what it takes."""
    amplifier_w = (dbm_to_watt(23.0) - dbm_to_watt(0.0)) / efficiency
    unit_w = amplifier_w / (SEND_UNITS_AT_23_DBM - SEND_UNITS_AT_0_DBM)
    return PowerSet(unit_w=unit_w, deep_sleep_w=DEEP_SLEEP_UNITS * unit_w, source=source)


def _from_currents(
    volt: float, deep_sleep_a: float, monitor_a: float, bandwidth_hz: float, source: str
) -> PowerSet:
    """Return the set of a modem whose currents were measured in deep sleep and while it monitors."""
    units = MONITOR_UNITS * reception_scale(bandwidth_hz) - DEEP_SLEEP_UNITS
    return PowerSet(
        unit_w=volt * (monitor_a - deep_sleep_a) / units, deep_sleep_w=volt * deep_sleep_a, source=source
    )


POWER_SETS: dict[str, PowerSet] = {
    "tr38840": _with_amplifier(
        0.3, "TR 38.840's ratios; its unit assumed so that the amplifier reaches 30 %: 1.47 mW"
    ),
    "measured-x55": _from_currents(
        4.2,  # V, the module's supply
        0.040,  # A in deep sleep
        0.182,  # A over slots with control alone
        90e6,  # Hz, the carrier of that cell
        "Snapdragon X55 in a 5G cell at 3.63 GHz, measured by the thesis in bjoluc/5g-handover-optimization; "
        "other states by TR 38.840's ratios: 6.5 mW a unit",
    ),
}
