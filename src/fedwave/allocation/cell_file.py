"""Reads an allocation problem from a TOML file, with the devices in the file or in a CSV beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import FloatArray, db_to_linear, dbm_to_watt
from fedwave.wireless.csv_columns import read_columns

_TABLES: dict[str, tuple[str, ...]] = {
    "radio": ("model_bits", "bandwidth_hz", "noise_psd_w_per_hz"),
    "blocks": ("interference_w", "num_blocks"),
    "weights": ("energy_weight", "delay_weight"),
    "limits": ("max_delay_s", "max_energy_j", "max_compute_delay_s"),
    "devices": (
        "contribution",
        "channel_gain",
        "max_power_w",
        "workload_cycles",
        "max_frequency_hz",
        "capacitance",
        "max_energy_j",
        "csv",
    ),
}
_IN_DECIBELS: dict[str, tuple[str, Callable[[FloatArray], FloatArray]]] = {
    "noise_psd_dbm_per_hz": ("noise_psd_w_per_hz", dbm_to_watt),
    "interference_dbm": ("interference_w", dbm_to_watt),
    "channel_gain_db": ("channel_gain", db_to_linear),
    "max_power_dbm": ("max_power_w", dbm_to_watt),
}
_OPTIONAL = ("max_delay_s", "max_energy_j", "max_compute_delay_s")


def example_cell() -> str:
    """Return the text of a commented example cell."""
    return (resources.files("fedwave.allocation") / "example_cell.toml").read_text(encoding="utf-8")


def load_cell(path: Path, *, devices_csv: Path | None = None) -> AllocationProblem:
    """Return the problem in a TOML file; ``devices_csv`` replaces or completes its [devices] table."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ProblemError(
            f"Cannot read the cell file {path}: {reason}. `fedwave allocate --example` prints one."
        ) from error
    return parse_cell(text, name=str(path), folder=path.parent, devices_csv=devices_csv)


def parse_cell(
    text: str, *, name: str = "cell", folder: Path | None = None, devices_csv: Path | None = None
) -> AllocationProblem:
    """Return the problem in a TOML text; a relative ``csv`` in it starts from ``folder``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(f"{name} is not valid TOML: {error}.") from error
    values = _flatten(document, name)
    csv = values.pop("csv", None)
    if devices_csv is None and csv is not None:
        devices_csv = (folder or Path()) / str(csv)
    num_blocks = _num_blocks(values, name)
    if devices_csv is not None:
        values |= _read_devices(devices_csv, num_blocks)
    required = [key for table in _TABLES.values() for key in table]
    for key in required:
        if key not in values and key not in (*_OPTIONAL, "csv", "num_blocks"):
            table = next(table for table, keys in _TABLES.items() if key in keys)
            raise ProblemError(
                f"{name} has no {key}. Add it to [{table}], as in `fedwave allocate --example`."
            )
    return AllocationProblem(**values)


def _flatten(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return all values by their name in AllocationProblem, decibels converted; unknown keys are refused."""
    values: dict[str, Any] = {}
    for table, content in document.items():
        if table not in _TABLES or not isinstance(content, dict):
            raise ProblemError(f'{name} has an unknown table "{table}". {did_you_mean(table, _TABLES)}')
        for key, value in content.items():
            plain, converted = _convert(key, value, name)
            if plain not in _TABLES[table]:
                known = [*_TABLES[table], *(k for k, (p, _) in _IN_DECIBELS.items() if p in _TABLES[table])]
                raise ProblemError(
                    f'{name} has an unknown key "{key}" in [{table}]. {did_you_mean(key, known)}'
                )
            if plain in values:
                raise ProblemError(f"{name} gives {plain} twice (as {key}, too). Keep one.")
            values[plain] = converted
    return values


def _convert(key: str, value: Any, name: str) -> tuple[str, Any]:
    if key not in _IN_DECIBELS:
        return key, value
    plain, convert = _IN_DECIBELS[key]
    try:
        converted = convert(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ProblemError(f"{name} must hold numbers in {key}, got {value!r}.") from None
    return plain, float(converted) if np.ndim(value) == 0 else converted


def _num_blocks(values: dict[str, Any], name: str) -> int:
    """Return M, and spread one interference value over ``num_blocks`` blocks."""
    count = values.pop("num_blocks", None)
    interference = values.get("interference_w")
    if interference is None:
        raise ProblemError(f"{name} has no interference_w. Add it to [blocks]: one value per block.")
    if np.ndim(interference) == 0:
        if not isinstance(count, int) or count < 0:
            raise ProblemError(
                f"{name} gives one interference for all blocks but num_blocks = {count!r}. "
                "Set num_blocks in [blocks], or list the interference of each block."
            )
        values["interference_w"] = np.full(count, float(interference))
        return count
    if count is not None and count != len(interference):
        raise ProblemError(
            f"{name} has num_blocks = {count} but {len(interference)} interferences. Keep one."
        )
    return len(interference)


def _read_devices(path: Path, num_blocks: int) -> dict[str, FloatArray]:
    """Return the CSV's columns; channel_gain_0, channel_gain_1, ... are the gains on each block."""
    per_block = [f"channel_gain_{block}" for block in range(num_blocks)]
    plain = [key for key in _TABLES["devices"] if key != "csv"]
    decibels = [key for key, (target, _) in _IN_DECIBELS.items() if target in plain]
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ProblemError(f"Cannot read the device file {path}: {reason}. Check the path.") from error
    num_rows = sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))
    columns = read_columns(
        path, known=(*plain, *decibels, *per_block), num_devices=max(num_rows - 1, 0), what="device"
    )
    found = {}
    for key, column in columns.items():
        if key in per_block:
            continue
        target, value = _convert(key, column, str(path))
        found[target] = np.asarray(value)
    given = [key for key in per_block if key in columns]
    if given:
        if len(given) < num_blocks or "channel_gain" in found:
            raise ProblemError(
                f"The device file {path} has {len(given)} of {num_blocks} columns channel_gain_0, "
                "channel_gain_1, ... Give one for each block and no channel_gain, or channel_gain alone."
            )
        found["channel_gain"] = np.stack([columns[key] for key in per_block], axis=1)
    return found
