"""The ``[fleet]`` settings, and how a fleet is drawn from them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import fields
from typing import ClassVar, Literal

import numpy as np
from pydantic import model_validator

from fedwave.csv_table import read_columns
from fedwave.errors import ProblemError
from fedwave.rng import FleetStream, fleet_generator
from fedwave.settings import FileName, Section
from fedwave.units import FloatArray, dbm_to_watt
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.settings.cpu_sets import CPU_SETS
from fedwave.wireless.settings.distribution import Distribution, bounds, draw

# The paper's CNN on a 28 x 28 image with the exact meta-gradient, counted: see fedwave.learning.operations.
PAPER_CNN_OPERATIONS = 28.5e6
_NAMES = tuple(field.name for field in fields(Fleet))
_CPU_KEYS = (
    "max_frequency_hz",
    "min_frequency_hz",
    "capacitance",
    "static_power_w",
    "cycles_per_sample",
    "cycles_per_operation",
    "joules_per_cycle",
    "joules_per_operation",
)


class FleetConfig(Section):
    """What each device's radio and processor can do: a constant, a uniform draw, or a CSV row per device."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("max_power_w", "max_power_dbm"),
        ("cycles_per_sample", "cycles_per_operation"),
        ("joules_per_cycle", "joules_per_operation"),
    )
    replaces: ClassVar[dict[str, tuple[str, ...]]] = {"cpu": _CPU_KEYS}

    cpu: Literal["fedl", "phone", "single-board", "microcontroller"] | None = None  # for what is not given
    max_power_w: Distribution | None = None
    max_power_dbm: Distribution | None = None
    max_frequency_hz: Distribution | None = None
    min_frequency_hz: Distribution | None = None  # None: no lower limit
    capacitance: Distribution | None = None
    static_power_w: Distribution | None = None  # while computing, whatever the frequency; None: 0
    cycles_per_sample: Distribution | None = None  # as given, or from the next
    cycles_per_operation: Distribution | None = (
        None  # clock cycles of a multiply-add; the model says how many
    )
    joules_per_cycle: Distribution | None = None  # at any frequency, as given, or from the next; None: 0
    joules_per_operation: Distribution | None = (
        None  # joules of a multiply-add; capacitance is then 0 by default
    )
    path: FileName | None = None

    @model_validator(mode="after")
    def _one_power(self) -> FleetConfig:
        if self.max_power_w is not None and self.max_power_dbm is not None:
            raise ValueError("max_power_w and max_power_dbm are both given. Keep one of them")
        if self.max_power_dbm is not None and max(map(abs, bounds(self.max_power_dbm))) > 1000.0:
            raise ValueError(
                f"max_power_dbm must lie within 1000 dBm, got {self.max_power_dbm}. Phones send 23"
            )
        for spellings in self.alternatives[1:]:
            if all(getattr(self, name) is not None for name in spellings):
                raise ValueError(f"{' and '.join(spellings)} are both given. Keep one of them")
        return self

    def read_file(self, num_devices: int | None = None) -> dict[str, FloatArray]:
        """Return the columns of the fleet CSV, powers in watts; none where there is no file."""
        if self.path is None:
            return {}
        return read_columns(self.path, known=_NAMES, num_devices=num_devices, what="fleet")

    def num_devices_of_file(self) -> int | None:
        """Return the number of devices in the fleet CSV; None where there is none."""
        return next((len(column) for column in self.read_file().values()), None)

    @property
    def resolved(self) -> FleetConfig:
        """The same settings with those of the named processor written out; what is given stays."""
        if self.cpu is None:
            return self
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        for spellings in self.alternatives:
            if given & set(spellings):
                given |= set(spellings)
        of_the_set = {name: value for name, value in CPU_SETS[self.cpu].items() if name not in given}
        return self.model_copy(update=of_the_set | {"cpu": None})

    @property
    def counts_operations(self) -> bool:
        """Whether the model's operations say what a sample takes, in cycles or joules."""
        settings = self.resolved
        return settings.cycles_per_operation is not None or settings.joules_per_operation is not None


def draw_fleet(
    config: FleetConfig,
    *,
    num_devices: int,
    seed: int,
    operations_per_sample: float = PAPER_CNN_OPERATIONS,
) -> Fleet:
    """Return the fleet: columns of the CSV where it has them, draws for the rest.

    ``operations_per_sample`` is what one sample costs the model in multiply-adds; it counts only where
    ``cycles_per_operation`` is given in place of ``cycles_per_sample``, or ``joules_per_operation``. Energy
    per operation becomes energy per cycle, so that the work of a round, in cycles, carries both.
    """
    config = config.resolved
    from_file = config.read_file(num_devices)
    columns: dict[str, FloatArray] = {}
    missing = []
    for name in _NAMES:
        if name in from_file:
            columns[name] = from_file[name]
            continue
        rng = fleet_generator(seed, FleetStream[name.upper()])
        distribution: Distribution | None = getattr(config, name)
        if name == "max_power_w" and config.max_power_dbm is not None:
            columns[name] = dbm_to_watt(draw(config.max_power_dbm, num_devices, rng=rng))
        elif name == "cycles_per_sample" and distribution is None and config.cycles_per_operation is not None:
            columns[name] = operations_per_sample * draw(config.cycles_per_operation, num_devices, rng=rng)
        elif name == "joules_per_cycle" and config.joules_per_operation is not None:
            joules = operations_per_sample * draw(config.joules_per_operation, num_devices, rng=rng)
            cycles = columns.get("cycles_per_sample", np.zeros(num_devices))
            columns[name] = np.divide(joules, cycles, out=np.zeros(num_devices), where=cycles > 0)
        elif distribution is None and _may_be_left_out(name, config, from_file):
            columns[name] = np.zeros(num_devices)
        elif distribution is not None:
            columns[name] = draw(distribution, num_devices, rng=rng)
        else:
            missing.append(name)
    if missing:
        raise ProblemError(_not_given(missing, config))
    return Fleet(**columns)


def _not_given(missing: list[str], config: FleetConfig) -> str:
    """Return the line that names all that neither settings nor file say, and how to say it."""
    are, columns = ("is", "a column") if len(missing) == 1 else ("are", "columns")
    where = f"nor {columns} in {config.path.name}" if config.path else "nor is there a fleet CSV"
    keys = [f"fleet.{name}" for name in missing]
    names = " and ".join(filter(None, (", ".join(keys[:-1]), keys[-1])))
    processor = [name for name in missing if name != "max_power_w"]
    fix = f"Set {'it' if len(missing) == 1 else 'each'} to a number or to {{low, high}}"
    advice = '; fleet.cpu = "phone" sets those of a processor' if processor else ""
    return f"{names} {are} not given, {where}. {fix}{advice}."


def _may_be_left_out(name: str, config: FleetConfig, from_file: Container[str]) -> bool:
    """Return whether a property that is not given is 0: a capacitance only where joules are given."""
    if name == "capacitance":
        has_joules = config.joules_per_operation is not None or config.joules_per_cycle is not None
        return has_joules or "joules_per_cycle" in from_file
    return name in ("min_frequency_hz", "static_power_w", "joules_per_cycle")
