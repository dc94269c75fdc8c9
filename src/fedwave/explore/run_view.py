"""What the run tab is told of a run folder, also while it runs: curves, selections, energies, rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.experiments.schema import Experiment
from fedwave.explore.answer import first_block, places_of
from fedwave.explore.live_table import LiveTable
from fedwave.json_values import json_value
from fedwave.runs.compare import FinishedRun
from fedwave.runs.folder import SUMMARY, RunFolder
from fedwave.runs.tables import DEVICES, ROUNDS
from fedwave.units import FloatArray, IntArray, linear_to_db
from fedwave.wireless.cell import Cell

PHASES = ("compute", "upload", "downlink", "report", "idle")
QUANTILES = (0.1, 0.5, 0.9)  # of the devices
OWN = "planner_"  # begins the columns that a planner gives
_UPLOADS = ("transmit_power_w", "upload_time_s", "upload_energy_j", "is_received")
_CURVES = ("train_loss", "heldout_loss", "cumulative_delay_s", "cumulative_energy_j", "num_selected")


@dataclass(eq=False)
class RunView:
    """One run folder; every answer reads what was written since the last."""

    path: Path
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def open(cls, path: Path) -> RunView:
        """Return the view of an existing run folder."""
        return cls(RunFolder.open(path).path)

    @cached_property
    def experiment(self) -> Experiment:
        """The run's settings."""
        return RunFolder(self.path).experiment(checks_parts=False)

    @cached_property
    def _rounds(self) -> LiveTable:
        return LiveTable(self.path / ROUNDS)

    @cached_property
    def _devices(self) -> LiveTable:
        return LiveTable(self.path / DEVICES)

    def snapshot(self) -> FinishedRun:
        """Return the run as far as it has come."""
        with self._lock:
            self._rounds.refresh()
            columns = self._rounds.columns
        return FinishedRun(self.path, self.experiment, columns or {"round": np.zeros(0, dtype=np.int64)})

    def curves(self, run: FinishedRun | None = None) -> dict[str, Any]:
        """Return the run's name and its curves by rounds; of a snapshot, or as far as it has come."""
        run = self.snapshot() if run is None else run
        experiment, metric = run.experiment, run.metric
        return {
            "name": experiment.name,
            "path": str(self.path),
            "seed": experiment.seed,
            "num_rounds": run.num_rounds,
            "planned_rounds": experiment.num_rounds,
            "is_finished": (self.path / SUMMARY).is_file(),
            "method": None if experiment.cell is None else experiment.cell.method.kind,
            "is_normalised": experiment.cell is not None and experiment.cell.normalised,
            "has_cell": run.has_cell,
            "metric": {"name": metric.name.replace("_", " "), "is_share": metric.is_share},
            "curves": {name: json_value(run.curve(name)) for name in _CURVES}
            | {"metric": json_value(run.heldout_metric)},
            "notes": list(run.columns.get("note", [])),
        }

    def devices(self) -> dict[str, Any]:
        """Return who was selected when, and what each device spent in each phase."""
        columns, ids, shape = self._device_columns()
        energies = {
            phase: json_value(_grid(columns[f"{phase}_energy_j"], shape).sum(axis=0))
            for phase in PHASES
            if f"{phase}_energy_j" in columns
        }
        selected = (_grid(columns["is_selected"], shape) if "is_selected" in columns else np.zeros(shape)) > 0
        received = _grid(columns["is_received"], shape) > 0 if "is_received" in columns else selected
        return {
            "device": ids.tolist(),
            "num_rounds": shape[0],
            # 0: not selected, 1: selected but lost, 2: received; a string of digits for each round
            "fate": ["".join(map(str, row)) for row in (selected + received.astype(int)).tolist()],
            "energy_j": energies,
            "battery": self._battery(columns, shape),
            "planner": {
                name.removeprefix(OWN): _spread(values, shape)
                for name, values in columns.items()
                if name.startswith(OWN)
            },
        }

    def _battery(self, columns: dict[str, Any], shape: tuple[int, int]) -> dict[str, Any] | None:
        """Return the charge of the batteries over rounds and how many have none, where a run has them."""
        if "battery_j" not in columns:
            return None
        with self._lock:
            self._rounds.refresh()
            awake = self._rounds.columns.get("num_awake", np.zeros(0))
        return {
            "charge_j": _spread(columns["battery_j"], shape),
            "num_dead": (shape[1] - np.asarray(awake)[: shape[0]]).tolist(),
        }

    def round(self, round_index: int) -> dict[str, Any]:
        """Return the allocation of a round: a row for each upload, and each device's contribution."""
        columns, ids, shape = self._device_columns()
        if not 0 <= round_index < shape[0]:
            raise RunError(
                f"round must lie in 0 to {shape[0] - 1}, got {round_index}. Wait for it, or choose another."
            )
        part = slice(round_index * shape[1], (round_index + 1) * shape[1])
        row = {name: values[part] for name, values in columns.items()}
        if "block" not in row:
            raise RunError(f"{self.path} has no radio cell, so no map. Give a run over a cell.")
        missing = [name for name in _UPLOADS if name not in row]
        if missing:
            raise self._not_as_written(f'it has no column "{missing[0]}"')
        device = np.flatnonzero(row["block"] >= 0)
        nothing = np.full(shape[1], np.nan)
        with np.errstate(invalid="ignore"):
            sinr_db = linear_to_db(row.get("sinr", nothing)[device])
        section = self.experiment.cell
        access = "one-block" if section is None else section.access
        held = np.ones(device.size)
        if section is not None and "bandwidth_hz" in row:
            held = row["bandwidth_hz"][device] / section.bandwidth_hz
        return {
            "round": round_index,
            "access": access,
            "ids": ids.tolist(),
            "contribution": json_value(row.get("scaled_contribution", nothing)),
            "noise_w": self._noise_w(round_index, shape[1]),
            "uploads": {
                "device": device.tolist(),
                "block": first_block(access, row["block"][device], held),
                "width": json_value(held),
                "start_s": json_value(row.get("upload_start_s", np.zeros(shape[1]))[device]),
                "power_w": json_value(row["transmit_power_w"][device]),
                "sinr_db": json_value(sinr_db),
                "delay_s": json_value(row["upload_time_s"][device]),
                "energy_j": json_value(row["upload_energy_j"][device]),
                "success": row["is_received"][device].tolist(),
            },
        }

    def places(self) -> dict[str, Any]:
        """Return the map of the run's cell; positions are None where its channel has no geometry."""
        _, _, shape = self._device_columns()
        cell = self._cell(shape[1])
        return {} if cell is None else places_of(cell, cell.draw(0).channel_gain)

    def _noise_w(self, round_index: int, num_devices: int) -> list[float | None]:
        cell = self._cell(num_devices)
        return [] if cell is None else json_value(cell.draw(round_index).interference_w + cell.noise_w)

    def _cell(self, num_devices: int) -> Cell | None:
        """Return the run's cell, as training built it; cycles of the processors do not matter here."""
        section = self.experiment.cell
        if section is None:
            return None
        known: dict[int, Cell] = self.__dict__.setdefault("_cells", {})
        if num_devices not in known:
            known[num_devices] = Cell.build(section, num_devices=num_devices, seed=self.experiment.seed)
        return known[num_devices]

    def _device_columns(self) -> tuple[dict[str, Any], IntArray, tuple[int, int]]:
        """Return the columns of devices.csv, whole rounds only, device numbers, and (rounds, devices)."""
        with self._lock:
            self._devices.refresh()
            columns = dict(self._devices.columns)
        if not columns:
            raise RunError(f"{self.path} has no rounds yet. Let the run finish a round first.")
        num_devices = int(np.count_nonzero(columns["round"] == columns["round"][0]))
        num_rounds = len(columns["round"]) // num_devices
        whole = {name: values[: num_rounds * num_devices] for name, values in columns.items()}
        shape = (num_rounds, num_devices)
        rounds, ids = whole["round"].reshape(shape), whole["device"].reshape(shape)
        if (rounds != rounds[:, :1]).any() or (ids != ids[0]).any():
            raise self._not_as_written(f"its rounds do not have the same {num_devices} devices")
        return whole, ids[0], shape

    def _not_as_written(self, why: str) -> RunError:
        return RunError(f"{self.path / DEVICES} is not as the run wrote it ({why}). Restore it.")


def _grid(values: FloatArray, shape: tuple[int, int]) -> FloatArray:
    return np.nan_to_num(np.asarray(values, dtype=np.float64)).reshape(shape)


def _spread(values: FloatArray, shape: tuple[int, int]) -> dict[str, Any]:
    """Return what a tenth, half and nine tenths of the devices have at most, round by round; None: nobody."""
    grid = np.asarray(values, dtype=np.float64).reshape(shape)
    found = np.full((len(QUANTILES), shape[0]), np.nan)
    known = np.isfinite(grid).any(axis=1)
    if known.any():
        found[:, known] = np.nanquantile(grid[known], QUANTILES, axis=1)
    return {name: json_value(row) for name, row in zip(("low", "median", "high"), found, strict=True)}
