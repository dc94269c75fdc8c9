"""Numbers that are possible but look like a slip of units, each with the likely mistake."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from fedwave.wireless.fleet import Fleet


class UnitWarning(UserWarning):
    """A number that is possible but looks like a slip of units."""


@contextmanager
def units_were_said() -> Iterator[None]:
    """Make problems without a word on their units: whoever drew the cell has had it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitWarning)
        yield


THERMAL_NOISE_W_PER_HZ = 4.0e-21  # k T at 290 K, -174 dBm/Hz


def unit_warnings(fleet: Fleet, *, bandwidth_hz: float, noise_psd_w_per_hz: float) -> tuple[str, ...]:
    """Return one line for each number of the cell or its fleet that is probably in another unit."""
    return (
        *_power_warnings(float(fleet.max_power_w.max()), in_dbm="use fleet.max_power_dbm"),
        *_bandwidth_warnings(bandwidth_hz),
        *_noise_warnings(noise_psd_w_per_hz),
        *_hardware_warnings(fleet),
    )


def power_warnings(
    largest_power_w: float, *, bandwidth_hz: float, noise_psd_w_per_hz: float
) -> tuple[str, ...]:
    """Return a line if a transmit power of a problem is probably in another unit.

    Where noise and bandwidth are not those of a radio the problem has no units, as the paper's: then none.
    """
    if _noise_warnings(noise_psd_w_per_hz) or _bandwidth_warnings(bandwidth_hz):
        return ()
    in_dbm = f"give fedwave.units.dbm_to_watt({largest_power_w:g}), or max_power_dbm in a file"
    return tuple(_power_warnings(largest_power_w, in_dbm=in_dbm))


def gain_warnings(largest_gain: float, *, advice: str) -> tuple[str, ...]:
    """Return a line if a gain exceeds 1; ``advice`` says how it may have come about."""
    if largest_gain <= 1.0:
        return ()
    return (
        f"A channel gain reaches {largest_gain:.3g}, above 1 (0 dB): the receiver would amplify. {advice}",
    )


def _power_warnings(power_w: float, *, in_dbm: str) -> list[str]:
    if power_w > 10e3:
        return [f"max_power_w reaches {power_w:g} W, more than a broadcast tower. Is it in mW or uW?"]
    if power_w > 10.0:
        return [
            f"max_power_w reaches {power_w:g} W; a phone sends 0.2 W. If that is {power_w:g} dBm, {in_dbm}."
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
    fastest_hz = float(fleet.max_frequency_hz.max())
    if fastest_hz < 1e6:
        found.append(
            f"max_frequency_hz is at most {fastest_hz:g} Hz; processors run at 1e8 Hz and more. Is it in GHz?"
        )
    if float(fleet.capacitance.max()) > 1e-20:
        found.append(
            f"capacitance reaches {fleet.capacitance.max():g}; published values are 1e-28 to 1e-26 with "
            "frequencies in Hz. Was it meant for frequencies in GHz?"
        )
    return found
