"""Problem files: an allocation problem in TOML, its devices in the file or in a CSV beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.csv_table import read_columns
from fedwave.errors import FedwaveError, ProblemError, did_you_mean, shown
from fedwave.files import read_text
from fedwave.ram import require_memory
from fedwave.toml_text import toml_from_text
from fedwave.units import FloatArray, other_units
from fedwave.wireless.rate import RadioPower, RateModel

_TABLES: dict[str, tuple[str, ...]] = {
    "radio": (
        "model_bits",
        "bandwidth_hz",
        "noise_psd_w_per_hz",
        "rate_efficiency",
        "max_spectral_efficiency",
        "rate_min_snr",
        "amplifier_efficiency",
        "circuit_power_w",
        "packet_error_waterfall",
    ),
    "blocks": ("interference_w", "num_blocks", "access"),
    "weights": ("energy_weight", "delay_weight"),
    "limits": (
        "max_delay_s",
        "max_energy_j",
        "max_total_energy_j",
        "max_compute_delay_s",
        "max_round_delay_s",
        "fixed_delay_s",
        "min_snr",
        "max_uploads",
    ),
    "devices": (
        "contribution",
        "channel_gain",
        "max_power_w",
        "workload_cycles",
        "max_frequency_hz",
        "min_frequency_hz",
        "capacitance",
        "static_power_w",
        "joules_per_cycle",
        "max_energy_j",
        "max_total_energy_j",
        "max_delay_s",
        "circuit_power_w",
        "device_bits",
        "offer_contribution",
        "offer_bits",
        "csv",
    ),
}
_OTHER_UNITS: dict[str, tuple[str, Callable[[FloatArray], FloatArray]]] = {
    other: (key, to_si)
    for keys in _TABLES.values()
    for key in keys
    for other, to_si in other_units(key).items()
}
_PARTS: dict[str, tuple[str, str]] = {  # values that AllocationProblem has in its rate and radio
    "rate_efficiency": ("rate", "efficiency"),
    "max_spectral_efficiency": ("rate", "max_spectral_efficiency"),
    "rate_min_snr": ("rate", "min_snr"),
    "amplifier_efficiency": ("radio", "amplifier_efficiency"),
    "circuit_power_w": ("radio", "circuit_power_w"),
}
_OWN_OR_SHARED = set(_TABLES["devices"]) & {*_TABLES["limits"], *_TABLES["radio"]}  # one for all, or a list
_NEEDED = {field.name for field in fields(AllocationProblem) if field.default is MISSING}
_MAX_OFFERS = 32  # in a CSV, besides the first
_OF_THE_FILE = ("num_blocks", "csv")  # keys that name no value of a problem
_CELL_KEYS = ("channel", "fleet", "preset")  # only a radio cell has these


def example_problem() -> str:
    """Return the text of a commented example of a problem file."""
    return (resources.files("fedwave.allocation") / "example_problem.toml").read_text(encoding="utf-8")


def load_problem(path: str | Path, *, devices_csv: str | Path | None = None) -> AllocationProblem:
    """Return the problem in a TOML file; ``devices_csv`` replaces or completes its [devices] table."""
    path = Path(path)
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a zero byte in the name
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ProblemError(
            f"Cannot read the problem file {path}: {reason}. `fedwave allocate --example` prints one."
        ) from error
    return parse_problem(text, name=str(path), folder=path.parent, devices_csv=devices_csv)


def parse_problem(
    text: str, *, name: str = "", folder: Path | None = None, devices_csv: str | Path | None = None
) -> AllocationProblem:
    """Return the problem in a TOML text; a relative ``csv`` in it starts from ``folder``."""
    file = f"The problem file {name}".rstrip()
    document = toml_from_text(text, name=file, error=ProblemError)
    if any(key in document for key in _CELL_KEYS):
        told = name or "FILE.toml"
        raise ProblemError(
            f"{told} is a radio cell, not a problem file. Show it with: fedwave cell {told}; solve a round "
            f"of it with: fedwave allocate {told}; in Python: problem_of_cell."
        )
    values = _flatten(document, file)
    csv = values.pop("csv", None)
    if devices_csv is None and csv is not None:
        devices_csv = (folder or Path()) / csv
    num_blocks = _num_blocks(values, file)
    if devices_csv is not None:
        values |= _read_devices(Path(devices_csv), num_blocks)
    for table, keys in _TABLES.items():
        for key in keys:
            if key in _NEEDED and key not in values:
                raise ProblemError(
                    f"{file} has no {key}. Add it to [{table}], as in `fedwave allocate --example`."
                )
    parts: dict[str, dict[str, Any]] = {"rate": {}, "radio": {}}
    for key, (part, field) in _PARTS.items():
        if key in values:
            value = values.pop(key)
            if key == "circuit_power_w" and np.ndim(value) == 1:  # of each device
                parts[part][field] = value
                continue
            if np.ndim(value) != 0:
                raise ProblemError(f"{file} must have one number in {key}, got {value.tolist()}.")
            parts[part][field] = float(value)
    return AllocationProblem(**values, rate=RateModel(**parts["rate"]), radio=RadioPower(**parts["radio"]))


def problem_tables(problem: AllocationProblem) -> dict[str, dict[str, Any]]:
    """Return the tables of a problem file that holds every number of the problem; None is left out."""
    tables: dict[str, dict[str, Any]] = {}
    for table, keys in _TABLES.items():
        tables[table] = {}
        for key in keys:
            if key in _OF_THE_FILE:
                continue
            part, name = _PARTS.get(key, ("", key))
            value = getattr(getattr(problem, part) if part else problem, name)
            if key in _OWN_OR_SHARED and (np.ndim(value) == 1) != (table == "devices"):
                continue
            if value is not None and not (key == "access" and value == "one-block"):
                tables[table][key] = value if isinstance(value, str) else np.asarray(value).tolist()
    return tables


def problem_to_toml(problem: AllocationProblem) -> str:
    """Return the text of a problem file with every number of the problem in it."""
    import tomli_w  # more than numpy

    return "# fedwave allocate this.toml --compare\n\n" + tomli_w.dumps(problem_tables(problem))


def is_radio_cell(path: Path) -> bool:
    """Return whether a file is that of a radio cell: it has a channel, a fleet or a preset."""
    try:
        return any(key in toml_from_text(read_text(path), name=str(path)) for key in _CELL_KEYS)
    except (OSError, ValueError, FedwaveError):  # whoever reads it as a problem says what is wrong
        return False


def _flatten(document: dict[str, Any], file: str) -> dict[str, Any]:
    """Return all values by their name in AllocationProblem, decibels converted; unknown keys are refused."""
    values: dict[str, Any] = {}
    for table, content in document.items():
        if table not in _TABLES:
            raise ProblemError(f'{file} has an unknown table "{table}". {did_you_mean(table, _TABLES)}')
        if not isinstance(content, dict):
            raise ProblemError(f"{file} must have {table} as a table, got {shown(content)}. Write [{table}].")
        for key, value in content.items():
            plain, _ = _OTHER_UNITS.get(key, (key, None))
            if plain not in _TABLES[table]:
                known = [*_TABLES[table], *(k for k, (p, _) in _OTHER_UNITS.items() if p in _TABLES[table])]
                raise ProblemError(
                    f'{file} has an unknown key "{key}" in [{table}]. {did_you_mean(key, known)}'
                )
            if plain in values:
                raise ProblemError(f"{file} gives {plain} twice (as {key}, too). Keep one.")
            values[plain] = _checked(key, value, file)
    return values


def _checked(key: str, value: Any, file: str) -> Any:
    """Return the value, decibels converted, or raise if it is not of the type that the key needs."""
    if key in ("csv", "access"):
        if not isinstance(value, str):
            what = "a file" if key == "csv" else "one of one-block, shared-band, blocks, tdma"
            raise ProblemError(f"{file} must name {what} in {key}, got {shown(value)}.")
        return value
    if key in ("num_blocks", "max_uploads"):
        if not _are_numbers(value) or not isinstance(value, int) or value < 0:
            raise ProblemError(f"{file} must have a whole number >= 0 in {key}, got {shown(value)}.")
        return value
    try:
        if not _are_numbers(value):
            raise TypeError
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"{file} must hold numbers in {key}, got {shown(value)}.") from None
    return _in_linear_units(key, numbers)


def _are_numbers(value: Any) -> bool:
    """Return whether a value, or all in a list, are numbers; true and false are none, though of type int."""
    if isinstance(value, list):
        return all(map(_are_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_linear_units(key: str, value: FloatArray) -> FloatArray:
    if key not in _OTHER_UNITS:
        return value
    with np.errstate(over="ignore"):  # what becomes infinite is refused with the problem
        return np.asarray(_OTHER_UNITS[key][1](value))


def _num_blocks(values: dict[str, Any], file: str) -> int:
    """Return M, and spread one interference value over ``num_blocks`` blocks."""
    count: int | None = values.pop("num_blocks", None)
    interference = values.get("interference_w")
    if interference is None:
        raise ProblemError(f"{file} has no interference_w. Add it to [blocks]: one value per block.")
    if np.ndim(interference) == 0:
        if count is None:
            raise ProblemError(
                f"{file} gives one interference for all blocks but no num_blocks. "
                "Set num_blocks in [blocks], or list the interference of each block."
            )
        # 80 bytes: the interference, and the name of a column of gains for each block
        require_memory(80 * count, what=f"{count:,} blocks", fix="Use fewer num_blocks.")
        values["interference_w"] = np.full(count, float(interference))
        return count
    if count is not None and count != len(interference):
        raise ProblemError(
            f"{file} has num_blocks = {count} but {len(interference)} interferences. Keep one."
        )
    return len(interference)


def _read_devices(path: Path, num_blocks: int) -> dict[str, FloatArray]:
    """Return the CSV's columns; channel_gain_0, channel_gain_1, ... are the gains on each block."""
    per_block = [f"channel_gain_{block}" for block in range(num_blocks)]
    plain = [key for key in _TABLES["devices"] if key != "csv"]
    plain = [key for key in plain if key not in ("offer_contribution", "offer_bits")]
    offers = [f"offer_{what}_{k}" for k in range(1, _MAX_OFFERS + 1) for what in ("contribution", "bits")]
    columns = read_columns(path, known=(*plain, "energy_weight", *offers, *per_block), what="device")
    found = {key: column for key, column in columns.items() if key not in per_block and key not in offers}
    given = [key for key in per_block if key in columns]
    if given:
        if len(given) < num_blocks or "channel_gain" in found:
            raise ProblemError(
                f"The device file {path} has {len(given)} of {num_blocks} columns channel_gain_0, "
                "channel_gain_1, ... Give one for each block and no channel_gain, or channel_gain alone."
            )
        found["channel_gain"] = np.stack([columns[key] for key in per_block], axis=1)
    return found | _offers(path, {key: columns[key] for key in offers if key in columns})


def _offers(path: Path, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the offers of a CSV: offer_contribution_1 and offer_bits_1 are the first, and so on."""
    count = len(columns) // 2
    names = {what: [f"offer_{what}_{k}" for k in range(1, count + 1)] for what in ("contribution", "bits")}
    if sorted(columns) != sorted([*names["contribution"], *names["bits"]]):
        raise ProblemError(
            f"The device file {path} must have offer_contribution_k and offer_bits_k for k = 1, 2, ..., got "
            f"{', '.join(columns)}. Give both of each offer."
        )
    if not columns:
        return {}
    return {f"offer_{what}": np.stack([columns[key] for key in keys], axis=1) for what, keys in names.items()}
