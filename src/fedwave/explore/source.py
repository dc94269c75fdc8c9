"""A cell by its name, a preset or a file that was named when starting, and what the page shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fedwave.server.draws import NORMALISED_MEAN, ContributionKind
from fedwave.settings import NonNegativeInt, PositiveInt, Section, anchor_paths, merge, read_toml, validate
from fedwave.toml_text import Settings
from fedwave.units import dbm_to_watt, watt_to_dbm
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.cell import describe_cell
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.distribution import Uniform, bounds
from fedwave.wireless.settings.load import with_preset
from fedwave.wireless.settings.num_devices import num_devices_of
from fedwave.wireless.terms import ChannelDraw

MOST_DEVICES = 100_000  # what a page can show and a slider can wait for
MOST_BLOCKS = 1_000

# No cell needs more; products of what is larger would not fit a double.
Quantity = Annotated[float, Field(ge=1e-30, le=1e30)]
Weight = Annotated[float, Field(ge=0.0, le=1e30)]
Access = Literal["one-block", "blocks", "shared-band", "tdma"]


class CellView(Section):
    """Everything that decides the numbers of the cell tab; equal views give equal numbers."""

    num_devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)]
    seed: NonNegativeInt
    round_index: NonNegativeInt = 0
    num_blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS)]
    bandwidth_hz: Quantity
    max_power_w: Quantity | None  # the largest of the fleet; None: it comes from a file
    deadline_s: Quantity | None = None  # of the whole round
    access: Access = "one-block"
    max_uploads: PositiveInt | None = None  # None: no limit
    work_conserving: bool = False  # blocks that fall free go on to others
    model_bits: Quantity
    energy_weight: Weight
    delay_weight: Weight
    contribution: ContributionKind = "uniform"
    mean_contribution: Quantity
    num_samples: PositiveInt = 10


ROUND_KEYS = (  # of the [explore] table; all other keys of a view are settings of the cell
    "num_devices",
    "seed",
    "round_index",
    "model_bits",
    "energy_weight",
    "delay_weight",
    "contribution",
    "mean_contribution",
    "num_samples",
)


class ExploreTable(Section):
    """The ``[explore]`` table of a cell file: what a cell does not say. What is left out has a default."""

    num_devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)] | None = None
    seed: NonNegativeInt | None = None
    round_index: NonNegativeInt | None = None
    model_bits: Quantity | None = None
    energy_weight: Weight | None = None
    delay_weight: Weight | None = None
    contribution: ContributionKind | None = None
    mean_contribution: Quantity | None = None
    num_samples: PositiveInt | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The entries that the file has."""
        return self.model_dump(exclude_none=True)


class KeptCell(Cell):
    """A cell that keeps the last channel it drew: a slider that moves a weight does not draw anew."""

    def draw(self, round_index: int) -> ChannelDraw:
        """Return the channel of one round."""
        kept: dict[int, ChannelDraw] = self.__dict__.setdefault("_kept", {})
        if round_index not in kept:
            drawn = super().draw(round_index)
            kept.clear()
            kept[round_index] = drawn
            return drawn
        return kept[round_index]


@dataclass(frozen=True, eq=False)
class Source:
    """A cell's settings as they were given, and how the page starts with them."""

    name: str
    table: Settings
    start: dict[str, Any] = field(default_factory=dict)  # of the [explore] table

    @classmethod
    def preset(cls, name: str) -> Source:
        """Return a preset as a source."""
        return cls(name, {"preset": name})

    @classmethod
    def file(cls, path: Path) -> Source:
        """Return a cell file, with or without an ``[explore]`` table, as a source."""
        table = read_toml(path, what="cell file", advice="Check the path; `fedwave cell` lists the presets.")
        start = validate(ExploreTable, table.pop("explore", {}), root="explore").given
        return cls(str(path), anchor_paths(table, path.absolute().parent), start)

    @cached_property
    def config(self) -> CellConfig:
        """The checked settings of the cell as given."""
        return self.configured({})

    def configured(self, overrides: Settings) -> CellConfig:
        """Return the settings with some of them changed."""
        return validate(CellConfig, with_preset(self.changed(overrides)), root="cell")

    def changed(self, overrides: Settings) -> Settings:
        """Return the table with some settings changed, a preset's name still in it."""
        return merge(self.table, overrides, CellConfig)

    @property
    def largest_power_w(self) -> float | None:
        """The largest power that the fleet's settings allow; None where a file has the powers."""
        fleet = self.config.fleet
        if fleet.path is not None:
            return None
        if fleet.max_power_dbm is not None:
            return dbm_to_watt(bounds(fleet.max_power_dbm)[1])
        return None if fleet.max_power_w is None else bounds(fleet.max_power_w)[1]

    def first_view(self, *, num_devices: int | None = None, seed: int | None = None) -> CellView:
        """Return what the page shows first: the cell as given, and weights under which uploads go on.

        Number of devices and seed are those given here, else the file's, else as many devices as its fleet
        and gains have, or 100, and seed 0.
        """
        given = {"num_devices": num_devices, "seed": seed}
        start = {"seed": 0, **self.start}
        start |= {name: value for name, value in given.items() if value is not None}
        start["num_devices"] = num_devices_of(self.config, asked=start.get("num_devices"))
        cell = self.build({}, num_devices=start["num_devices"], seed=start["seed"])
        described = describe_cell(cell, model_bits=start.get("model_bits"))
        weights = {"energy_weight": 1.0, "delay_weight": 1.0}
        if not self.config.normalised:
            weights |= {name: float(f"{value:.2g}") for name, value in described.suggested_weights.items()}
        return validate(
            CellView,
            {
                "num_blocks": self.config.num_blocks,
                "bandwidth_hz": self.config.bandwidth_hz,
                "max_power_w": self.largest_power_w,
                "deadline_s": self.config.losses.deadline_s,
                "access": self.config.access,
                "max_uploads": self.config.max_uploads,
                "work_conserving": self.config.work_conserving,
                "model_bits": described.budget.model_bits,
                "mean_contribution": NORMALISED_MEAN if self.config.normalised else 1.0,
                **weights,
                **start,
            },
        )

    def overrides(self, view: CellView) -> Settings:
        """Return the cell's settings that the view changes; nothing for what is as given."""
        changes: Settings = {}
        if view.num_blocks != self.config.num_blocks:
            changes["num_blocks"] = view.num_blocks
        if view.bandwidth_hz != self.config.bandwidth_hz:
            changes["bandwidth_hz"] = view.bandwidth_hz
        if view.max_power_w is not None and view.max_power_w != self.largest_power_w:
            changes["fleet"] = self._power(view.max_power_w)
        if view.deadline_s != self.config.losses.deadline_s and view.deadline_s is not None:
            changes["losses"] = {"deadline_s": view.deadline_s}
        for name in ("access", "max_uploads", "work_conserving"):
            if getattr(view, name) not in (None, getattr(self.config, name)):
                changes[name] = getattr(view, name)
        return changes

    def _power(self, largest_w: float) -> Settings:
        """Return the fleet's power with another upper end; a range keeps its lower one."""
        fleet = self.config.fleet
        if isinstance(fleet.max_power_dbm, Uniform):
            high = watt_to_dbm(largest_w)
            return {"max_power_dbm": {"low": min(fleet.max_power_dbm.low, high), "high": high}}
        if isinstance(fleet.max_power_w, Uniform):
            return {"max_power_w": {"low": min(fleet.max_power_w.low, largest_w), "high": largest_w}}
        return {"max_power_w": largest_w}

    def build(self, overrides: Settings, *, num_devices: int, seed: int) -> Cell:
        """Return the cell, drawn."""
        return KeptCell.build(self.configured(overrides), num_devices=num_devices, seed=seed)
