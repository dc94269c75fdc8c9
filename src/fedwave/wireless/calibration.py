"""From measured watts to the settings of a radio: least squares for sending, means for other states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedwave.csv_table import CsvTable, read_table
from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import FloatArray, dbm_to_watt
from fedwave.wireless.rate import RadioPower

STATES = ("send", "receive", "wait")
_COLUMNS = ("state", "watts", "dbm")


@dataclass(frozen=True)
class Calibration:
    """What the measurements say of a radio. None: the state was not measured."""

    sending: RadioPower | None
    residual_w: float  # root mean square of what the line of sending leaves
    num_sending: int
    receive_power_w: float | None
    idle_power_w: float | None

    def to_toml(self, *, preset: str | None = None, source: str = "") -> str:
        """Return a cell file that has these watts, on top of a preset if one is named."""
        lines = [f"# Watts as measured{f' in {source}' if source else ''}."]
        if preset is not None:
            lines.append(f'preset = "{preset}"')
        if self.idle_power_w is not None:
            lines.append(f"idle_power_w = {self.idle_power_w!r}  # state wait")
        if self.sending is not None:
            lines += [
                "",
                "[radio]",
                f"# Least squares over {self.num_sending} rows of send, {self.residual_w:.2g} W left over.",
                f"amplifier_efficiency = {self.sending.amplifier_efficiency!r}",
                f"circuit_power_w = {self.sending.circuit_power_w!r}",
            ]
        if self.receive_power_w is not None:
            lines += ["", "[downlink]", f"receive_power_w = {self.receive_power_w!r}  # state receive"]
        return "\n".join(lines) + "\n"


def read_calibration(path: Path) -> Calibration:
    """Return what a CSV of (state, watts, dbm) says; dbm is the transmit power of the rows of state send."""
    table = read_table(
        path, what="table of watts", error=ProblemError, fix="Check the path.", has_comments=True
    )
    for name in table.header:
        if name not in _COLUMNS:
            raise ProblemError(f'{table.name} has an unknown column "{name}". {did_you_mean(name, _COLUMNS)}')
    state = table.column("state")
    for text, line in zip(state, table.lines, strict=True):
        if text not in STATES:
            raise ProblemError(
                f'{table.name} has the state "{text[:40]}" in line {line}. {did_you_mean(text, STATES)}'
            )
    watts = _numbers(table, "watts", range(len(state)))
    sends = [row for row, text in enumerate(state) if text == "send"]
    if not state:
        raise ProblemError(f"{table.name} has a header and no measurements. Give a row for each.")
    dbm = _numbers(table, "dbm", sends) if sends else np.zeros(0)
    sending, residual_w = (None, 0.0) if not sends else fit_sending(dbm_to_watt(dbm), watts[sends])
    return Calibration(
        sending=sending,
        residual_w=residual_w,
        num_sending=len(sends),
        receive_power_w=_mean_of(watts, state, "receive"),
        idle_power_w=_mean_of(watts, state, "wait"),
    )


def fit_sending(transmit_power_w: FloatArray, watts: FloatArray) -> tuple[RadioPower, float]:
    """Return amplifier and circuit whose p / xi + P_circuit fits best, and the root mean square left."""
    if len(np.unique(transmit_power_w)) < 2:
        raise ProblemError(
            "sending was measured at fewer than two transmit powers, so amplifier and circuit cannot be told "
            "apart. Give rows of state send with two values of dbm or more."
        )
    design = np.stack([transmit_power_w, np.ones_like(transmit_power_w)], axis=1)
    slope, circuit_w = np.linalg.lstsq(design, watts, rcond=None)[0]
    if slope < 1.0:
        raise ProblemError(
            f"sending must drain a watt or more for each on the air, got {slope:.3g} W. Are watts given, and "
            "is dbm the power at the antenna?"
        )
    if circuit_w < 0.0:
        raise ProblemError(
            f"sending must drain 0 W or more without power on the air, got {circuit_w:.3g} W by the line "
            "through the rows. Measure low powers, too."
        )
    residual_w = math.sqrt(float(np.mean((design @ np.array([slope, circuit_w]) - watts) ** 2)))
    return RadioPower(amplifier_efficiency=float(1.0 / slope), circuit_power_w=float(circuit_w)), residual_w


def _mean_of(watts: FloatArray, state: list[str], name: str) -> float | None:
    own = [value for value, text in zip(watts.tolist(), state, strict=True) if text == name]
    return math.fsum(own) / len(own) if own else None


def _numbers(table: CsvTable, name: str, rows: range | list[int]) -> FloatArray:
    texts = table.column(name)
    found = []
    for row in rows:
        try:
            value = float(texts[row])
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (name == "watts" and value < 0.0) or abs(value) > 1000.0:
            rule = "watts from 0 to 1000" if name == "watts" else "a transmit power in dBm, e.g. 23"
            raise ProblemError(
                f'{table.name} has {name} = "{texts[row][:40]}" in line {table.lines[row]}. Write {rule}.'
            )
        found.append(value)
    return np.array(found)
