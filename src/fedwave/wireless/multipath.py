"""The echoes of TR 38.901, clause 7.5: K-factor and delays of each device, and what they do to its blocks.

Table 7.5-6 and steps 4 to 6 and 11 of the report, Release 19, without angles: a cluster's rays fade as one
complex normal number, and its delay makes neighbouring blocks alike. Needs numpy alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedwave.units import BoolArray, FloatArray, db_to_linear

ComplexArray = NDArray[np.complex128]

RAYS_PER_CLUSTER = 20
# Step 11: the two strongest clusters arrive in three parts, of 10, 6 and 4 rays, 1.28 and 2.56 c_DS later.
PART_SHARE = np.array([10.0, 6.0, 4.0]) / RAYS_PER_CLUSTER
PART_DELAY = np.array([0.0, 1.28, 2.56])
POINTS_PER_BLOCK = 3  # a block's gain is the mean over its band, taken at this many places
_MAX_CLUSTERS = 20


@dataclass(frozen=True, kw_only=True)
class MultipathTable:
    """One column of Table 7.5-6: a scenario in sight or without."""

    lg_delay_spread: float  # mean of lg(DS / 1 s)
    lg_delay_spread_std: float
    num_clusters: int
    delay_scaling: float  # r_tau
    cluster_delay_spread_s: float  # c_DS
    k_mean_db: float = -math.inf  # minus infinity: no steady path
    k_std_db: float = 0.0
    cluster_shadowing_db: float = 3.0  # zeta
    delay_with_gain: float  # correlation of lg DS with shadow fading (the report's sign: more is louder)
    delay_with_k: float = 0.0
    k_with_gain: float = 0.0


def indoor_multipath_table(scenario: str) -> MultipathTable:
    """Return the column O2I of Table 7.5-6; behind a wall no path is steady, even in sight of the house."""
    if scenario == "rma":
        return MultipathTable(
            lg_delay_spread=-7.47, lg_delay_spread_std=0.24,
            num_clusters=10, delay_scaling=1.7, cluster_delay_spread_s=3.91e-9, delay_with_gain=0.0,
        )  # fmt: skip
    return MultipathTable(
        lg_delay_spread=-6.62, lg_delay_spread_std=0.32, num_clusters=12, delay_scaling=2.2,
        cluster_delay_spread_s=11e-9, cluster_shadowing_db=4.0, delay_with_gain=-0.5,
    )  # fmt: skip


def multipath_table(scenario: str, *, carrier_frequency_hz: float, in_sight: bool) -> MultipathTable:
    """Return the column of Table 7.5-6. Below 2 GHz (UMi) and 6 GHz (UMa) it uses those (notes 6 and 7)."""
    frequency_ghz = carrier_frequency_hz / 1e9
    if scenario == "umi":
        lg_f = math.log10(1.0 + max(frequency_ghz, 2.0))
        if in_sight:
            return MultipathTable(
                lg_delay_spread=-0.18 * lg_f - 7.28, lg_delay_spread_std=0.39, k_mean_db=9.0, k_std_db=5.0,
                num_clusters=12, delay_scaling=3.0, cluster_delay_spread_s=5e-9,
                delay_with_gain=-0.4, delay_with_k=-0.7, k_with_gain=0.5,
            )  # fmt: skip
        return MultipathTable(
            lg_delay_spread=-0.22 * lg_f - 6.87, lg_delay_spread_std=0.19 * lg_f + 0.22,
            num_clusters=19, delay_scaling=2.1, cluster_delay_spread_s=11e-9, delay_with_gain=-0.7,
        )  # fmt: skip
    if scenario == "uma":
        lg_f = math.log10(max(frequency_ghz, 6.0))
        parts_s = max(0.25, 6.5622 - 3.4084 * lg_f) * 1e-9
        if in_sight:
            return MultipathTable(
                lg_delay_spread=-0.0794 * lg_f - 7.067, lg_delay_spread_std=0.026 * lg_f + 0.57,
                k_mean_db=9.0, k_std_db=3.5, num_clusters=12, delay_scaling=2.5,
                cluster_delay_spread_s=parts_s, delay_with_gain=-0.4, delay_with_k=-0.4,
            )  # fmt: skip
        return MultipathTable(
            lg_delay_spread=-0.134 * lg_f - 6.47, lg_delay_spread_std=0.39,
            num_clusters=20, delay_scaling=2.3, cluster_delay_spread_s=parts_s, delay_with_gain=-0.4,
        )  # fmt: skip
    if in_sight:  # RMa; its c_DS is not given, 3.91 ns is what step 11 uses then
        return MultipathTable(
            lg_delay_spread=-7.49, lg_delay_spread_std=0.55, k_mean_db=7.0, k_std_db=4.0,
            num_clusters=11, delay_scaling=3.8, cluster_delay_spread_s=3.91e-9, delay_with_gain=-0.5,
        )  # fmt: skip
    return MultipathTable(
        lg_delay_spread=-7.43, lg_delay_spread_std=0.48,
        num_clusters=10, delay_scaling=1.7, cluster_delay_spread_s=3.91e-9, delay_with_gain=-0.5,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Multipath:
    """Each device's echoes. Powers are shares of the whole: a steady path K/(1+K), echoes 1/(1+K)."""

    k_factor: FloatArray  # (n,), linear; 0 without a steady path
    delay_s: FloatArray  # (n, paths), after the steady path, which arrives first
    power: FloatArray  # (n, paths); they sum to 1/(1+K)

    def block_gain(
        self, echo: ComplexArray, steady: ComplexArray, *, num_blocks: int, bandwidth_hz: float
    ) -> FloatArray:
        """Return each block's power over the device's mean, (n, M): the mean of |H(f)|^2 over its band.

        ``echo`` (n, paths) has unit power in the mean, ``steady`` (n,) has modulus 1.
        """
        amplitude = echo * np.sqrt(self.power)
        steady_part = steady * np.sqrt(self.k_factor / (1.0 + self.k_factor))
        frequency_hz = _frequencies_hz(num_blocks, bandwidth_hz)
        gain = np.empty((len(echo), num_blocks))
        for device_index in range(len(echo)):
            turn = np.exp(-2j * np.pi * np.outer(frequency_hz, self.delay_s[device_index]))
            response = turn @ amplitude[device_index] + steady_part[device_index]
            power = response.real**2 + response.imag**2
            gain[device_index] = power.reshape(num_blocks, POINTS_PER_BLOCK).mean(axis=1)
        return gain


def draw_multipath(
    scenario: str,
    *,
    carrier_frequency_hz: float,
    is_line_of_sight: BoolArray,
    is_indoor: BoolArray | None = None,
    gain_normal: FloatArray,
    rng: np.random.Generator,
) -> Multipath:
    """Return the echoes of all devices; ``gain_normal`` is shadowing over its deviation, positive: louder."""
    num_devices = len(is_line_of_sight)
    own = rng.standard_normal((2, num_devices))
    uniform = 1.0 - rng.random((num_devices, _MAX_CLUSTERS))  # in (0, 1]
    cluster_normal = rng.standard_normal((num_devices, _MAX_CLUSTERS))
    k_factor = np.zeros(num_devices)
    delay_s, power = np.zeros((2, num_devices, _MAX_CLUSTERS + 4))
    outdoors = np.ones(num_devices, dtype=np.bool_) if is_indoor is None else ~is_indoor
    clear, blocked = (
        multipath_table(scenario, carrier_frequency_hz=carrier_frequency_hz, in_sight=in_sight)
        for in_sight in (True, False)
    )
    for table, is_member in (
        (clear, outdoors & is_line_of_sight),
        (blocked, outdoors & ~is_line_of_sight),
        (indoor_multipath_table(scenario), ~outdoors),
    ):
        members = np.flatnonzero(is_member)
        if len(members) == 0:
            continue
        spread_s, k_db = _spread_and_k(table, gain_normal[members], own[:, members])
        k_factor[members] = db_to_linear(k_db) if table is clear else 0.0
        delay_s[members], power[members] = _clusters(
            table, spread_s, k_db if table is clear else None, uniform[members], cluster_normal[members]
        )
    return Multipath(k_factor=k_factor, delay_s=delay_s, power=power / (1.0 + k_factor)[:, np.newaxis])


def independent_echoes(
    multipath: Multipath, *, rng: np.random.Generator
) -> tuple[ComplexArray, ComplexArray]:
    """Return fresh echoes (n, paths), complex normal of unit power, and steady paths (n,)."""
    parts = rng.standard_normal((2, *multipath.power.shape)) * math.sqrt(0.5)
    return parts[0] + 1j * parts[1], np.ones(len(multipath.power), dtype=np.complex128)


@dataclass(frozen=True, eq=False, kw_only=True)
class MovingRays:
    """Rays of fixed angles, seen by devices that move: Clarke's model, so that echoes correlate as J0."""

    phase_rad: FloatArray  # (n, paths + 1, rays); the last path is the steady one
    doppler_hz: FloatArray  # the same shape

    @classmethod
    def draw(cls, multipath: Multipath, *, max_doppler_hz: float, rng: np.random.Generator) -> MovingRays:
        """Return rays from all sides with random phases."""
        num_devices, num_paths = multipath.power.shape
        shape = (num_devices, num_paths + 1, RAYS_PER_CLUSTER)
        phase_rad, angle_rad = 2.0 * np.pi * rng.random((2, *shape))
        return cls(phase_rad=phase_rad, doppler_hz=max_doppler_hz * np.cos(angle_rad))

    def echoes(self, time_s: float) -> tuple[ComplexArray, ComplexArray]:
        """Return the echoes (n, paths) and steady paths (n,) at a time."""
        rays = np.exp(1j * (self.phase_rad + 2.0 * np.pi * self.doppler_hz * time_s))
        return rays[:, :-1].sum(axis=-1) / math.sqrt(RAYS_PER_CLUSTER), rays[:, -1, 0]


def max_doppler_hz(*, speed_m_per_s: float, carrier_frequency_hz: float) -> float:
    """Return v f / c."""
    return speed_m_per_s * carrier_frequency_hz / 3.0e8


def coherence_time_s(doppler_hz: float) -> float:
    """Return 0.423 / f_D (Rappaport): for how long the fading stays about the same; infinite at rest."""
    return 0.423 / doppler_hz if doppler_hz > 0.0 else math.inf


def _spread_and_k(
    table: MultipathTable, gain_normal: FloatArray, own: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return delay spreads and K in dB, correlated with shadowing and each other (step 4)."""
    correlation = np.array(
        [
            [1.0, table.delay_with_gain, table.k_with_gain],
            [table.delay_with_gain, 1.0, table.delay_with_k],
            [table.k_with_gain, table.delay_with_k, 1.0],
        ]
    )
    _, spread, k = np.linalg.cholesky(correlation) @ np.stack([gain_normal, *own])
    spread_s = 10.0 ** (table.lg_delay_spread + table.lg_delay_spread_std * spread)
    return spread_s, table.k_mean_db + table.k_std_db * k


def _clusters(
    table: MultipathTable,
    spread_s: FloatArray,
    k_db: FloatArray | None,
    uniform: FloatArray,
    normal: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return delays and powers of all paths, (n, 24): clusters of steps 5 and 6, the strongest in parts."""
    num_devices, scaling = len(spread_s), table.delay_scaling
    delay_s = np.sort(-scaling * spread_s[:, np.newaxis] * np.log(uniform[:, : table.num_clusters]), axis=1)
    delay_s -= delay_s[:, :1]
    power = np.exp(-delay_s * ((scaling - 1.0) / (scaling * spread_s))[:, np.newaxis])
    power *= db_to_linear(-table.cluster_shadowing_db * normal[:, : table.num_clusters])
    power[power < power.max(axis=1, keepdims=True) * db_to_linear(-25.0)] = 0.0  # step 6
    power /= power.sum(axis=1, keepdims=True)
    if k_db is not None:  # the steady path shortens the spread: Eq. (7.5-3), (7.5-4)
        delay_s /= (0.7705 - 0.0433 * k_db + 0.0002 * k_db**2 + 0.000017 * k_db**3)[:, np.newaxis]
    all_delay_s, all_power = np.zeros((2, num_devices, _MAX_CLUSTERS + 4))
    all_delay_s[:, : table.num_clusters] = delay_s
    all_power[:, : table.num_clusters] = power
    device = np.arange(num_devices)
    for rank, column in enumerate(np.argsort(-power, axis=1, kind="stable")[:, :2].T):
        whole, start_s = power[device, column], delay_s[device, column]
        all_power[device, column] = whole * PART_SHARE[0]
        for part in (1, 2):
            place = _MAX_CLUSTERS + 2 * rank + part - 1
            all_power[:, place] = whole * PART_SHARE[part]
            all_delay_s[:, place] = start_s + PART_DELAY[part] * table.cluster_delay_spread_s
    return all_delay_s, all_power


def _frequencies_hz(num_blocks: int, bandwidth_hz: float) -> FloatArray:
    num_points = num_blocks * POINTS_PER_BLOCK
    return (np.arange(num_points, dtype=np.float64) + 0.5) * (bandwidth_hz / POINTS_PER_BLOCK)
