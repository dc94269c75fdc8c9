"""Every setting of an experiment, found in the schema, and settings in which a single one is changed."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from fedwave.settings import Part
from fedwave.settings.layers import as_table
from fedwave.settings.section import sections_in
from fedwave.wireless.settings.distribution import Uniform


@dataclass(frozen=True)
class Setting:
    """A leaf of the schema. ``cell.channel[3gpp].shadowing`` belongs to a channel of the kind 3gpp."""

    path: str
    annotation: Any


def every_setting(schema: type[BaseModel], prefix: str = "") -> list[Setting]:
    """Return the leaves of a schema; a number that may also be a range is a leaf, and so are its ends."""
    found: list[Setting] = []
    for name, field in schema.model_fields.items():
        path = prefix + name
        for section in sections_in(field.annotation):
            if issubclass(section, Part):
                found += settings_of_part(section, path)
            elif section is Uniform:
                found += [Setting(path, field.annotation), *every_setting(section, f"{path}[range].")]
            else:
                found += every_setting(section, f"{path}.")
        if not sections_in(field.annotation):
            found.append(Setting(path, field.annotation))
    return found


def settings_of_part(part: type[Part], path: str) -> list[Setting]:
    """Return a part itself, the keys that it has with every kind, and the options of each kind."""
    is_table = set(part.model_fields) != {"kind"}
    found = every_setting(part, f"{path}.") if is_table else []
    kinds = part.kinds()
    for kind, entry in kinds.registry.items():
        if isinstance(entry, type) and issubclass(entry, BaseModel):
            found += every_setting(entry, f"{path}[{kind}].")
        else:
            options = kinds.parameters(entry).values()
            found += [Setting(f"{path}[{kind}].{one.name}", one.annotation) for one in options]
    is_section = any(
        isinstance(entry, type) and issubclass(entry, BaseModel) for entry in kinds.registry.values()
    )
    return found if is_table or is_section else [Setting(path, str | dict), *found]


# Tables that are whole, one for each kind: a single setting can then be changed.
PLACEMENTS: dict[str, dict[str, Any]] = {
    "disc": {"kind": "disc", "radius_m": 300.0, "min_distance_m": 20.0},
    "uniform-distance": {"kind": "uniform-distance", "min_distance_m": 100.0, "max_distance_m": 100.0},
    "file": {"kind": "file", "path": "positions.csv"},
}
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "channel": {
        "uniform": {"kind": "uniform", "low": 0.1, "high": 0.9},
        "3gpp": {
            "kind": "3gpp",
            "scenario": "umi",
            "carrier_frequency_hz": 3.5e9,
            "line_of_sight": "never",
            "shadowing": False,
            "placement": PLACEMENTS["uniform-distance"],
        },
        "log-distance": {
            "kind": "log-distance",
            "reference_loss_db": 40.0,
            "exponent": 3.0,
            "placement": PLACEMENTS["uniform-distance"],
        },
        "file": {"kind": "file", "path": "gains.npy"},
        "sionna": {
            "kind": "sionna",
            "scenario": "umi",
            "carrier_frequency_hz": 3.5e9,
            "num_rounds": 3,
            "placement": PLACEMENTS["uniform-distance"],
        },
    },
    "placement": PLACEMENTS,
    "harvest": {
        "none": {"kind": "none"},
        "constant": {"kind": "constant", "power_w": 0.5},
        "day": {"kind": "day", "peak_w": 0.5},
        "trace": {"kind": "trace", "path": "harvest.csv"},
    },
    "partition": {
        "paper": {"kind": "paper", "num_devices": 16},
        "dirichlet": {"kind": "dirichlet", "num_devices": 16},
        "iid": {"kind": "iid", "num_devices": 16},
        "given": {"kind": "given"},
    },
    "interference": {
        "none": {"kind": "none"},
        "drawn": {"kind": "drawn", "power_w": 0.5},
        "evenly-spaced": {"kind": "evenly-spaced", "low_w": 0.1, "high_w": 0.3},
        "hexagonal": {
            "kind": "hexagonal",
            "site_distance_m": 500.0,
            "p0_dbm": -90.0,
            "reference_loss_db": 34.0,
            "exponent": 3.53,
        },
        "noise-rise": {"kind": "noise-rise", "rise_db": 3.0},
        "listed": {"kind": "listed", "power_w": [0.1, 0.2, 0.3]},
    },
}
RANGE = {"low": 1.0, "high": 2.0}
DEFAULT_KINDS = {"partition": "paper", "method": "optimal"}


def with_tables(settings: dict[str, Any], path: str) -> dict[str, Any]:
    """Return settings in which the tables around the setting at ``path`` are there and of its kinds."""
    changed = copy.deepcopy(settings)
    table = changed
    for name, kind in _tables_of(path):
        if kind == "range" and not isinstance(table.get(name), dict):
            table[name] = dict(RANGE)
        elif kind not in (None, "range"):
            table[name] = as_table(table.get(name, {}))
            if table[name].setdefault("kind", DEFAULT_KINDS.get(name)) != kind:
                table[name] = copy.deepcopy(TABLES.get(name, {}).get(kind, {"kind": kind}))
        table = table.setdefault(name, {})
    return changed


def with_setting(settings: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return settings in which the one at ``path`` has this value, and the tables around it its kinds."""
    changed = with_tables(settings, path)
    table = changed
    for name, _ in _tables_of(path):
        table = table[name]
    table[path.rpartition(".")[2]] = value
    return changed


def only_setting(path: str, value: Any) -> dict[str, Any]:
    """Return settings that say nothing but this one value."""
    nested: dict[str, Any] = {path.rpartition(".")[2]: value}
    for name, _ in reversed(_tables_of(path)):
        nested = {name: nested}
    return nested


def _tables_of(path: str) -> list[tuple[str, str | None]]:
    """Return the name and, where there are several, the kind of each table on the way."""
    found = [re.fullmatch(r"(\w+)(?:\[(.+)\])?", part) for part in path.split(".")[:-1]]
    return [(match[1], match[2]) for match in found if match]
