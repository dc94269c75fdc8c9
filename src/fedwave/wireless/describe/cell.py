"""A cell in words: the link budget of its best, median and worst device, its fleet; as text and as JSON."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from fedwave.json_values import json_value
from fedwave.units import watt_to_dbm
from fedwave.wireless.cell import Cell
from fedwave.wireless.channels.gains_file import FileChannel
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.describe.link_budget import LinkBudget, LinkBudgetRow, link_budget
from fedwave.wireless.multipath import coherence_time_s

# The paper's CNN on 28 x 28 images: 113,162 float32 parameters. In normalised cells S = 1, as in Table III.
PAPER_CNN_BITS = 113_162 * 32.0


@dataclass(frozen=True)
class TextTable:
    """Rows of text under a title; the first column holds the labels and has no heading."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # label, then a text for each heading


@dataclass(frozen=True, eq=False)
class CellDescription:
    """What ``fedwave cell`` shows of a cell in its first round."""

    name: str
    cell: Cell
    budget: LinkBudget

    @property
    def facts(self) -> str:
        """Devices, blocks, noise and how the channel is drawn, in two lines."""
        cell = self.cell
        if cell.config.normalised:
            blocks = f"{cell.num_blocks} blocks, B = {cell.bandwidth_hz:g}, N0 = {cell.noise_psd_w_per_hz:g}"
        else:
            blocks = f"{cell.num_blocks} {_blocks(cell)}, noise {watt_to_dbm(cell.noise_w):.1f} dBm in each"
        redraw = "drawn once" if cell.config.redraw == "static" else "drawn anew each round"
        facts = f"{cell.num_devices} devices, {blocks}\n{self._channel_fact(redraw)}, seed {cell.seed}"
        if self.num_without_link:
            facts += f"\n{self.num_without_link} of {cell.num_devices} devices have no link at full power"
        if self.coherence_time_s is None:
            return facts
        return f"{facts}\nuploads outlast the fading: coherence time of {si(self.coherence_time_s, 's')}"

    def _channel_fact(self, redraw: str) -> str:
        channel = self.cell.channel
        if not isinstance(channel, FileChannel):
            return f"channel {redraw}"
        rounds = channel.num_rounds
        length = "all rounds alike" if rounds is None else f"{rounds} rounds"
        return f"gains of {channel.path.name}, {length}"

    @property
    def num_without_link(self) -> int:
        """How many devices get no rate on their typical block at full power."""
        return int(np.sum(self.budget.links.rate_bps == 0.0))

    @property
    def coherence_time_s(self) -> float | None:
        """For how long the fading stays alike, where uploads are taken to outlast it; None elsewhere."""
        settings = self.cell.config.channel
        if not isinstance(settings, ThreeGppConfig) or settings.delay_line is None:
            return None
        return coherence_time_s(settings.max_doppler_hz) if settings.delay_line.ergodic else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The cell's warnings, and one if uploads of this size are over before the fading changes."""
        fastest_s = self.budget.rows[0].upload_delay_s
        if self.coherence_time_s is None or fastest_s >= self.coherence_time_s:
            return self.cell.warnings
        short = (
            f"An upload takes {si(fastest_s, 's')}, less than the coherence time of "
            f"{si(self.coherence_time_s, 's')}: it meets one state of the fading. "
            "Set channel.fading.ergodic = false."
        )
        return (*self.cell.warnings, short)

    @property
    def budget_table(self) -> TextTable:
        """The link budget, line by line from the transmitter to the upload's energy."""
        is_normalised = self.cell.config.normalised
        bits = self.budget.model_bits
        size = f"S = {bits:g}" if is_normalised else si(bits, "bit")
        columns = [
            _normalised_lines(row) if is_normalised else self._si_lines(row) for row in self.budget.rows
        ]
        return TextTable(
            title=f"Link budget at full power, upload of {size}",
            headings=tuple(row.who for row in self.budget.rows),
            rows=tuple((label, *(column[label] for column in columns)) for label in columns[0]),
        )

    @property
    def fleet_table(self) -> TextTable:
        """The smallest, median and largest value of each property of the fleet."""
        units = {
            "max_frequency_hz": "Hz",
            "min_frequency_hz": "Hz",
            "static_power_w": "W",
            "joules_per_cycle": "J",
        }
        rows = []
        for name, summary in self.fleet_summary.items():
            is_normalised = self.cell.config.normalised
            if name == "max_power_w" and not is_normalised:
                dbm = (f"{watt_to_dbm(value):.1f} dBm" for value in summary.values())
                rows.append(("max_power_dbm", *dbm))
                continue
            unit = None if is_normalised else units.get(name)
            rows.append((name, *(si(v, unit) if unit else f"{v:.3g}" for v in summary.values())))
        return TextTable(title="Fleet", headings=("smallest", "median", "largest"), rows=tuple(rows))

    @property
    def fleet_summary(self) -> dict[str, dict[str, float]]:
        """The same numbers, by property."""
        fleet = self.cell.fleet
        columns = {field.name: getattr(fleet, field.name) for field in dataclasses.fields(fleet)}
        for name in ("static_power_w", "joules_per_cycle"):  # past the paper: shown where there are any
            if not columns[name].any():
                columns.pop(name)
        return {
            # Not numpy's median: it would load numpy.ma, which takes as long as all of this.
            name: {"smallest": float(v.min()), "median": median(v.tolist()), "largest": float(v.max())}
            for name, v in columns.items()
        }

    @property
    def suggested_weights(self) -> dict[str, float]:
        """Weights to start from with ``contribution_scale = "normalised"``, by default in problem_of_cell."""
        return self.budget.advised_weights(self.cell)

    def as_json(self) -> dict[str, Any]:
        """Return plain data; a number that is not finite (a device that is never heard) becomes None."""
        cell = self.cell
        values = {
            "cell": self.name,
            "num_devices": cell.num_devices,
            "num_blocks": cell.num_blocks,
            "bandwidth_hz": cell.bandwidth_hz,
            "blocks_per_device": cell.config.blocks_per_device,
            "noise_psd_w_per_hz": cell.noise_psd_w_per_hz,
            "normalised": cell.config.normalised,
            "seed": cell.seed,
            "model_bits": self.budget.model_bits,
            "link_budget": [dataclasses.asdict(row) for row in self.budget.rows],
            "fleet": self.fleet_summary,
            "suggested_weights": self.suggested_weights,
            "num_without_link": self.num_without_link,
            "coherence_time_s": self.coherence_time_s,
            "warnings": list(self.warnings),
            "config": cell.config.model_dump(mode="json"),
        }
        plain: dict[str, Any] = json_value(values)
        return plain

    def _si_lines(self, row: LinkBudgetRow) -> dict[str, str]:
        lines = {"device, block": f"{row.device_index}, {row.block_index}"}
        if row.distance_m is not None:
            lines["distance"] = (
                f"{row.distance_m:.0f} m" if row.distance_m >= 10 else f"{row.distance_m:.1f} m"
            )
        if row.whereabouts is not None:
            lines["where"] = row.whereabouts
        if row.is_line_of_sight is not None:
            lines["line of sight"] = "yes" if row.is_line_of_sight else "no"
        lines |= {"  transmit power": f"{row.transmit_power_dbm:.1f} dBm", **self._gain_lines(row)}
        interference = f"{row.interference_dbm:.1f} dBm" if row.interference_w > 0 else "none"
        lines |= {
            "= received power": f"{row.received_power_dbm:.1f} dBm",
            "  thermal noise": f"{row.thermal_noise_dbm:.1f} dBm",
            "+ noise figure": f"{row.noise_figure_db:.1f} dB",
            "  interference": interference,
            "= noise, interference": f"{row.noise_dbm:.1f} dBm",
            "SINR": f"{row.sinr_db:.1f} dB",
        }
        if row.margin_db is not None:
            lines[f"margin over {row.required_sinr_db:.3g} dB"] = f"{row.margin_db:.1f} dB"
        lines["rate"] = si(row.rate_bps, "bit/s")
        lines["upload time"] = si(row.upload_delay_s, "s")
        lines["upload energy"] = si(row.upload_energy_j, "J")
        return lines

    def _gain_lines(self, row: LinkBudgetRow) -> dict[str, str]:
        place = self.cell.large_scale
        if place is None:
            return {"+ channel gain": f"{row.channel_gain_db:.1f} dB"}
        lines = {"- path loss": f"{row.path_loss_db:.1f} dB"}
        if place.shadowing_db.any():
            lines["- shadowing"] = f"{row.shadowing_db:.1f} dB"
        if place.whereabouts is not None:
            lines["- walls, bodywork"] = f"{row.penetration_db:.1f} dB"
        lines["+ antennas"] = f"{row.antenna_gain_db:.1f} dB"
        if place.num_receive_antennas > 1:
            lines[f"+ sum of {place.num_receive_antennas} antennas"] = f"{row.combining_gain_db:.1f} dB"
        if not np.array_equal(self.budget.links.channel_gain, place.gain * place.num_receive_antennas):
            lines["+ fading"] = f"{row.fading_db:.1f} dB"
        return lines


def describe_cell(cell: Cell, *, name: str = "cell", model_bits: float | None = None) -> CellDescription:
    """Return the cell's link budget and fleet in its first round.

    ``model_bits`` is the size S of an upload. Default: the paper's CNN in float32; 1 in normalised cells.
    """
    if model_bits is None:
        model_bits = 1.0 if cell.config.normalised else PAPER_CNN_BITS
    return CellDescription(name, cell, link_budget(cell, cell.draw(0), model_bits=model_bits))


def _normalised_lines(row: LinkBudgetRow) -> dict[str, str]:
    return {
        "device, block": f"{row.device_index}, {row.block_index}",
        "transmit power p_max": f"{row.transmit_power_w:.4g}",
        "channel gain h": f"{row.channel_gain:.4g}",
        "noise, interference": f"{row.noise_w:.4g}",
        "SINR": f"{row.sinr_db:.1f} dB",
        "rate": f"{row.rate_bps:.4g}",
        "upload time": f"{row.upload_delay_s:.4g}",
        "upload energy": f"{row.upload_energy_j:.4g}",
    }


def _blocks(cell: Cell) -> str:
    one, k = si(cell.config.bandwidth_hz, "Hz"), cell.config.blocks_per_device
    return f"blocks of {one}" if k == 1 else f"groups of {k} blocks of {one} ({si(cell.bandwidth_hz, 'Hz')})"


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def si(value: float, unit: str) -> str:
    """Return a number with three digits and an SI prefix: 3.62 Mbit."""
    if value == 0 or not math.isfinite(value):
        return "never" if unit == "s" and value else f"{value:g} {unit}"
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= 0.9995 * s), _PREFIXES[-1])
    return f"{value / scale:.3g} {prefix}{unit}"
