"""The link budget: what the best, the median and the worst device get at full power in one round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray, linear_to_db, watt_to_dbm
from fedwave.wireless.cell import Cell
from fedwave.wireless.link import upload_delay_s, upload_energy_j
from fedwave.wireless.phases import upload_phase
from fedwave.wireless.terms import ChannelDraw


@dataclass(frozen=True, eq=False)
class DeviceLinks:
    """Each device at full power on its typical block: the one of middle SINR. All arrays have shape (n,)."""

    block_index: IntArray
    channel_gain: FloatArray
    interference_w: FloatArray
    noise_and_interference_w: FloatArray
    sinr: FloatArray  # linear
    rate_bps: FloatArray
    upload_delay_s: FloatArray
    upload_energy_j: FloatArray


@dataclass(frozen=True)
class LinkBudgetRow:
    """One device's link.

    In dB, transmit power + channel gain = received power and received power - noise = SINR. The gain is
    antennas + combining - path loss - shadowing - penetration + fading, the noise thermal noise times noise
    figure plus interference.
    """

    who: str  # best, median, worst
    device_index: int
    block_index: int
    bandwidth_hz: float
    distance_m: float | None
    is_line_of_sight: bool | None
    transmit_power_w: float
    transmit_power_dbm: float
    path_loss_db: float | None
    shadowing_db: float | None
    whereabouts: str | None  # outdoors, in a building, in a car; None: the model does not distinguish
    penetration_db: float | None
    antenna_gain_db: float | None
    combining_gain_db: float | None  # of several receive antennas in the mean, 10 lg N
    fading_db: float | None
    channel_gain: float
    channel_gain_db: float
    received_power_w: float
    received_power_dbm: float
    thermal_noise_w: float
    thermal_noise_dbm: float
    noise_figure_db: float
    interference_w: float
    interference_dbm: float
    noise_w: float  # all three together
    noise_dbm: float
    sinr_db: float
    required_sinr_db: float | None  # below it nothing arrives; None: no threshold
    margin_db: float | None  # how far above that the device is at full power
    rate_bps: float
    upload_delay_s: float
    upload_energy_j: float


@dataclass(frozen=True, eq=False)
class LinkBudget:
    """Best, median and worst device by SINR, and the figures of all devices."""

    model_bits: float
    rows: tuple[LinkBudgetRow, ...]
    links: DeviceLinks

    def advised_weights(self, cell: Cell) -> dict[str, float]:
        """Return weights to start from where an upload is worth about 1, by name; none if nothing is heard.

        At full power the median device's energy then costs a quarter of that, and its delay, which all
        uploads of the round share, a quarter of theirs: half is left, so uploads go on and costs decide.
        """
        median = self.rows[1]
        if not median.upload_delay_s < math.inf:
            return {}
        num_uploads = min(cell.num_blocks, cell.num_devices)
        return {
            "energy_weight": 0.25 / median.upload_energy_j,
            "delay_weight": 0.25 * num_uploads / median.upload_delay_s,
        }


def device_links(cell: Cell, draw: ChannelDraw, *, model_bits: float) -> DeviceLinks:
    """Return what each device gets on its typical block at full power, Eq. (25), (28), (29)."""
    noise_w = draw.interference_w + cell.noise_w  # (M,)
    gain = draw.channel_gain
    middle = cell.num_blocks // 2
    if gain.ndim == 1:  # the device does not matter for the order of blocks
        typical = int(np.argpartition(-noise_w, middle)[middle])
        block_index = np.full(len(gain), typical, dtype=np.int64)
    else:
        block_index = np.argpartition(gain / noise_w, middle, axis=1)[:, middle]
    power_w = cell.fleet.max_power_w
    uploads = upload_phase(
        cell.terms,
        draw,
        device_index=np.arange(cell.num_devices),
        block=block_index,
        power_w=power_w,
        model_bits=model_bits,
    )
    delay_s = upload_delay_s(uploads.rate_bps, model_bits=model_bits)  # without a link for ever, not 0
    return DeviceLinks(
        block_index=block_index,
        channel_gain=uploads.channel_gain,
        interference_w=uploads.interference_w,
        noise_and_interference_w=noise_w[block_index],
        sinr=uploads.sinr,
        rate_bps=uploads.rate_bps,
        upload_delay_s=delay_s,
        upload_energy_j=upload_energy_j(power_w, delay_s, radio=cell.radio_power),
    )


def link_budget(cell: Cell, draw: ChannelDraw, *, model_bits: float) -> LinkBudget:
    """Return the budget of the best, median and worst device by SINR at full power."""
    if not (model_bits > 0 and np.isfinite(model_bits)):
        raise ProblemError(
            f"model_bits must be a finite number > 0, got {model_bits:g}. "
            "It is parameters times bits per parameter."
        )
    links = device_links(cell, draw, model_bits=model_bits)
    order = np.argsort(-links.sinr, kind="stable")
    # With an even number of devices the median is the better of the two in the middle.
    chosen = {"best": order[0], "median": order[(cell.num_devices - 1) // 2], "worst": order[-1]}
    rows = tuple(_row(who, int(device_index), cell, links) for who, device_index in chosen.items())
    return LinkBudget(model_bits=model_bits, rows=rows, links=links)


def _row(who: str, device_index: int, cell: Cell, links: DeviceLinks) -> LinkBudgetRow:
    place = cell.large_scale
    gain = float(links.channel_gain[device_index])
    gain_db = linear_to_db(gain)
    sight = None if place is None else place.is_line_of_sight
    inside = None if place is None else place.whereabouts
    combining_db = None if place is None else linear_to_db(float(place.num_receive_antennas))
    power_w = float(cell.fleet.max_power_w[device_index])
    noise_w = float(links.noise_and_interference_w[device_index])
    thermal_w = cell.bandwidth_hz * cell.config.thermal_noise_psd_w_per_hz
    interference_w = float(links.interference_w[device_index])
    sinr_db = linear_to_db(float(links.sinr[device_index]))
    required = cell.upload_risks.outage_snr
    required_db = None if required is None else linear_to_db(required)
    return LinkBudgetRow(
        who=who,
        device_index=device_index,
        block_index=int(links.block_index[device_index]),
        bandwidth_hz=cell.bandwidth_hz,
        distance_m=None if place is None else float(place.distance_m[device_index]),
        is_line_of_sight=None if sight is None else bool(sight[device_index]),
        transmit_power_w=power_w,
        transmit_power_dbm=watt_to_dbm(power_w),
        path_loss_db=None if place is None else float(place.path_loss_db[device_index]),
        shadowing_db=None if place is None else float(place.shadowing_db[device_index]),
        whereabouts=None if inside is None else inside.where(device_index),
        penetration_db=None if inside is None else float(inside.penetration_db[device_index]),
        antenna_gain_db=None if place is None else place.antenna_gain_db,
        combining_gain_db=combining_db,
        fading_db=None
        if place is None or combining_db is None
        else gain_db - combining_db - linear_to_db(float(place.gain[device_index])),
        channel_gain=gain,
        channel_gain_db=gain_db,
        received_power_w=power_w * gain,
        received_power_dbm=watt_to_dbm(power_w * gain),
        thermal_noise_w=thermal_w,
        thermal_noise_dbm=watt_to_dbm(thermal_w),
        noise_figure_db=cell.config.noise_figure_db,
        interference_w=interference_w,
        interference_dbm=watt_to_dbm(interference_w),
        noise_w=noise_w,
        noise_dbm=watt_to_dbm(noise_w),
        sinr_db=sinr_db,
        required_sinr_db=required_db,
        margin_db=None if required_db is None else sinr_db - required_db,
        rate_bps=float(links.rate_bps[device_index]),
        upload_delay_s=float(links.upload_delay_s[device_index]),
        upload_energy_j=float(links.upload_energy_j[device_index]),
    )
