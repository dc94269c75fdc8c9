"""What a modem with a cap and a floor makes of fading, on average, behind one or several receive antennas.

The rate of one moment is R(x g) = min(efficiency log2(1 + x g), cap), and nothing below the floor; x is the
mean SNR after combining, g the fading over its mean. Needs numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedwave.units import FloatArray, db_to_linear, linear_to_db
from fedwave.wireless.rate import RateModel

# A fading modem is above its floor and at its cap in all moments only at infinite SNR. So a plan's cap is
# this share of the modem's and its floor lies this far above; else strong devices were promised too little.
CAP_SHARE = 0.98
FLOOR_LIFT = db_to_linear(3.0)
ROUNDING = db_to_linear(-0.02)  # more than the tables' error
_SNR_DB = np.arange(-40.0, 80.25, 0.5)
_STEADY_DB = np.arange(0.0, 25.5)  # 1 + K; steadier channels count as this one, so less is promised
_NUM_POINTS = 256


def combined_fading(k_factor: float, num_antennas: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights for the mean over g = (g_1 + ... + g_N) / N, Rician branches of mean 1.

    2 N (1 + K) g is noncentral chi-square with 2 N degrees of freedom and noncentrality 2 N K (maximum-ratio
    combining); its density is summed over ln g by the trapezoid rule.
    """
    n, steady = num_antennas, num_antennas * k_factor
    spread = np.sqrt((1.0 + 2.0 * k_factor) / n) / (1.0 + k_factor)
    log_low = np.log(1.0 - 9.0 * spread) if spread < 0.1 else -16.0 / n - 2.5
    log_g = np.linspace(log_low, np.log(1.0 + 10.0 * spread + 6.0 * spread**2), _NUM_POINTS)
    power = (n + steady) * np.exp(log_g)
    # A mixture of Gamma(n + j), j Poisson; the terms that count lie around sqrt(steady power).
    low, high = (np.sqrt(steady * end) for end in (power[0], power[-1]))
    j = np.arange(max(0.0, low - 10.0 * np.sqrt(low) - 30.0) // 1, high + 10.0 * np.sqrt(high) + 30.0)
    j = j[:1] if k_factor == 0.0 else j
    log_factorial = np.cumsum(np.log(np.maximum(np.arange(j[-1] + n + 1), 1.0)))
    index = j.astype(np.int64)
    log_share = -log_factorial[index] - log_factorial[index + n - 1]
    log_share += 0.0 if k_factor == 0.0 else j * np.log(steady)
    log_terms = log_share + np.multiply.outer(np.log(power), j + n - 1.0)
    peak = log_terms.max(axis=1)
    log_density = peak + np.log(np.exp(log_terms - peak[:, np.newaxis]).sum(axis=1)) - power
    log_density -= log_density.max()
    weight = np.exp(log_density + log_g)
    return np.exp(log_g), weight / weight.sum()


def modem_mean(mean_snr: FloatArray, k_factor: float, rate: RateModel, num_antennas: int = 1) -> FloatArray:
    """Return E R(x g) in bit/s/Hz for each mean SNR, (x,)."""
    point, weight = combined_fading(k_factor, num_antennas)
    snr = np.multiply.outer(mean_snr, point)
    moment = rate.efficiency * np.log1p(snr) / np.log(2.0)
    if rate.max_spectral_efficiency is not None:
        moment = np.minimum(moment, rate.max_spectral_efficiency)
    if rate.min_snr > 0.0:  # the point nearest to the floor counts by how much of its interval lies above
        step = np.log(point[1] / point[0])
        moment *= np.clip(np.log(snr / rate.min_snr) / step + 0.5, 0.0, 1.0)
    mean: FloatArray = moment @ weight
    return mean


@dataclass(frozen=True, eq=False)
class ModemShares:
    """Shares s of the mean gain with which a plan without fading promises what the modem reaches."""

    rate: RateModel
    share_db: FloatArray  # (K, SNR): efficiency log2(1 + s x) = E R(x g)
    full_snr_db: FloatArray  # (K,): where E R reaches CAP_SHARE of the cap; infinite without a cap
    floor_share_db: FloatArray  # (K,): floor / x0, with E R(x0 g) the rate at the plan's floor; 0 without one

    def at_power(self, snr: FloatArray, k_factor: FloatArray) -> FloatArray:
        """Return s with efficiency log2(1 + s x) = E R(x g), at this power alone."""
        return self._share(linear_to_db(np.maximum(snr, 1e-300)), _steady_db(k_factor))

    def up_to_power(self, snr: FloatArray, k_factor: FloatArray) -> FloatArray:
        """Return s that promises no more than E R at any power up to this one, with ``planned_rate``.

        The share of full power does that, since it falls with the SNR; but past the cap it would fall for
        ever, so there it stays that of ``full_snr_db``. At the plan's floor E R must reach its rate, too.
        Proof: docs/cell.md, "Fading".
        """
        steady_db = _steady_db(k_factor)
        snr_db = np.minimum(
            linear_to_db(np.maximum(snr, 1e-300)), np.interp(steady_db, _STEADY_DB, self.full_snr_db)
        )
        floor = db_to_linear(np.interp(steady_db, _STEADY_DB, self.floor_share_db))
        return np.minimum(self._share(snr_db, steady_db), floor) * ROUNDING

    def _share(self, snr_db: FloatArray, steady_db: FloatArray) -> FloatArray:
        """Return the table's share, linear in dB between its rows and columns."""
        snr_db, steady_db = np.broadcast_arrays(snr_db, steady_db)
        column = np.clip((snr_db - _SNR_DB[0]) / 0.5, 0.0, len(_SNR_DB) - 1.000001)
        row = np.clip(steady_db, 0.0, len(_STEADY_DB) - 1.000001)
        i, j = row.astype(np.int64), column.astype(np.int64)
        down, right = row - i, column - j
        table = self.share_db
        upper = table[i, j] * (1.0 - right) + table[i, j + 1] * right
        lower = table[i + 1, j] * (1.0 - right) + table[i + 1, j + 1] * right
        share: FloatArray = db_to_linear(upper * (1.0 - down) + lower * down)
        return share


def planned_rate(rate: RateModel) -> RateModel:
    """Return the rate model of a plan through fading: ``CAP_SHARE`` of the cap, the floor lifted."""
    cap = rate.max_spectral_efficiency
    return RateModel(
        efficiency=rate.efficiency,
        max_spectral_efficiency=None if cap is None else CAP_SHARE * cap,
        min_snr=FLOOR_LIFT * rate.min_snr,
    )


@lru_cache(maxsize=16)
def modem_shares(rate: RateModel, num_antennas: int) -> ModemShares:
    """Return the tables of a modem behind so many receive antennas; made once, in some 40 ms."""
    snr = db_to_linear(_SNR_DB)
    shape = len(_STEADY_DB)
    share_db = np.empty((shape, len(_SNR_DB)))
    full_snr_db, floor_share_db = np.full(shape, np.inf), np.zeros(shape)
    plan = planned_rate(rate)
    for row, steady in enumerate(db_to_linear(_STEADY_DB)):
        mean = modem_mean(snr, steady - 1.0, rate, num_antennas)
        equivalent = np.expm1(mean * np.log(2.0) / rate.efficiency)
        share_db[row] = linear_to_db(np.maximum(equivalent / snr, 1e-30))
        if plan.max_spectral_efficiency is not None:
            full_snr_db[row] = np.interp(plan.max_spectral_efficiency, mean, _SNR_DB)
        if plan.min_snr > 0.0:
            least = rate.efficiency * np.log1p(plan.min_snr) / np.log(2.0)
            floor_share_db[row] = linear_to_db(plan.min_snr) - np.interp(least, mean, _SNR_DB)
    np.minimum(floor_share_db, 0.0, out=floor_share_db)
    return ModemShares(rate, np.minimum(share_db, 0.0), full_snr_db, floor_share_db)


def _steady_db(k_factor: FloatArray) -> FloatArray:
    steady_db: FloatArray = np.minimum(linear_to_db(1.0 + k_factor), _STEADY_DB[-1])
    return steady_db
