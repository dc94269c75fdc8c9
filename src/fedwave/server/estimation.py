"""What a planner knows of the gains: an estimate with an error of stated size, backed off if it is wished.

An estimate is the true gain times a random ratio R, whose law the planner knows: h_seen = R h. A planner that
wants to be right about a device with probability 1 - q divides by the (1 - q)-quantile of R: whatever h is,
P(h_seen / R_(1-q) <= h) = P(R <= R_(1-q)) = 1 - q. Needs numpy; a quantile of pilots' errors needs scipy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from fedwave.errors import ConfigError
from fedwave.parts import PartKind
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.terms import ChannelDraw

_MOST_DB = 100.0  # nobody errs by more; beyond it gains may leave the range of floats
_MOST_NMSE = 100.0


class Estimation(Protocol):
    """One way to know the gains of a round."""

    @property
    def is_exact(self) -> bool:
        """Whether the planner sees the true gains: then nothing can be regretted."""
        ...

    def seen(self, channel: ChannelDraw, *, rng: np.random.Generator) -> ChannelDraw:
        """Return the channel as the planner believes it to be."""
        ...


@dataclass(frozen=True)
class ExactGains:
    """The planner knows every gain, as the paper has it."""

    is_exact: ClassVar[bool] = True

    def seen(self, channel: ChannelDraw, *, rng: np.random.Generator) -> ChannelDraw:
        """Return the channel itself."""
        del rng
        return channel


@dataclass(frozen=True, kw_only=True)
class GainError:
    """An error that multiplies gains by a random ratio; subclasses say of what law."""

    is_exact: ClassVar[bool] = False

    num_devices: int  # n of the cell, which whoever makes one fills in
    quantile: float | None = None  # q: plan with a gain that the true one falls below with probability q
    per_block: bool = False  # an error for each device and block; else one for each device

    def __post_init__(self) -> None:
        if self.quantile is not None and not 0.0 < self.quantile < 1.0:
            raise ConfigError(
                f"estimation.quantile must lie between 0 and 1, got {self.quantile:g}. Leave it out to plan "
                "with the estimate itself."
            )

    def seen(self, channel: ChannelDraw, *, rng: np.random.Generator) -> ChannelDraw:
        """Return the channel with gains h R, or h R / R_(1-q) with a quantile q."""
        gain = channel.channel_gain
        if self.per_block and gain.ndim == 1:
            gain = np.repeat(gain[:, np.newaxis], len(channel.interference_w), axis=1)
        errors_per_device = gain.shape[1] if self.per_block else 1
        ratio = self.ratio((self.num_devices, errors_per_device), rng=rng)
        if self.quantile is not None:
            ratio = ratio / self.ratio_quantile(1.0 - self.quantile)[:, np.newaxis]
        return replace(channel, channel_gain=gain * (ratio[:, 0] if gain.ndim == 1 else ratio))

    def ratio(self, shape: tuple[int, int], *, rng: np.random.Generator) -> FloatArray:
        """Return draws of R, a row for each device."""
        raise NotImplementedError

    def ratio_quantile(self, probability: float) -> FloatArray:
        """Return what R stays below with this probability, for each device."""
        raise NotImplementedError

    def _sizes(self, name: str, value: float | Sequence[float], most: float) -> FloatArray:
        """Return the size of the error of each device, given as one number or as a list."""
        sizes = np.asarray(value, dtype=np.float64)
        if sizes.ndim and sizes.shape != (self.num_devices,):
            raise ConfigError(
                f"estimation.{name} must be one number or one for each of the {self.num_devices} devices, "
                f"got {sizes.size}. Give one number for all."
            )
        if not np.all((sizes >= 0.0) & (sizes <= most)):
            raise ConfigError(
                f"estimation.{name} must lie in 0 to {most:g}, got {sizes.min():g} to {sizes.max():g}. Use 0 "
                "for gains that are known."
            )
        return np.broadcast_to(sizes, (self.num_devices,))


@dataclass(frozen=True, kw_only=True)
class LogNormalError(GainError):
    """An error of so many decibels, Gaussian in dB: gains that are old, or inferred from others."""

    error_db: float | Sequence[float] = 3.0  # its standard deviation: one for all, or one a device

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sizes("error_db", self.error_db, _MOST_DB)

    def ratio(self, shape: tuple[int, int], *, rng: np.random.Generator) -> FloatArray:
        """Return 10^(s z / 10) with z standard normal."""
        size_db = self._sizes("error_db", self.error_db, _MOST_DB)
        return db_to_linear(size_db[:, np.newaxis] * rng.standard_normal(shape))

    def ratio_quantile(self, probability: float) -> FloatArray:
        """Return 10^(s z_p / 10)."""
        from scipy.special import ndtri

        return db_to_linear(self._sizes("error_db", self.error_db, _MOST_DB) * float(ndtri(probability)))


@dataclass(frozen=True, kw_only=True)
class ComplexGaussianError(GainError):
    """The error of pilots in noise: it adds to the complex amplitude, so R = |1 + sqrt(nmse) z|^2."""

    nmse: float | Sequence[float] = 0.1  # E|error|^2 / |amplitude|^2: one for all, or one a device

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sizes("nmse", self.nmse, _MOST_NMSE)

    def ratio(self, shape: tuple[int, int], *, rng: np.random.Generator) -> FloatArray:
        """Return |1 + sqrt(nmse) z|^2 with z complex Gaussian of variance 1; the mean is 1 + nmse."""
        size = np.sqrt(0.5 * self._sizes("nmse", self.nmse, _MOST_NMSE))[:, np.newaxis]
        real, imaginary = rng.standard_normal((2, *shape))
        return np.asarray((1.0 + size * real) ** 2 + (size * imaginary) ** 2)

    def ratio_quantile(self, probability: float) -> FloatArray:
        """Return the quantile of R: 2 R / nmse is non-central chi-squared with 2 degrees and 2 / nmse."""
        from scipy.special import chndtrix

        nmse = self._sizes("nmse", self.nmse, _MOST_NMSE)
        result = np.ones(self.num_devices)
        errs = nmse > 0.0
        result[errs] = 0.5 * nmse[errs] * chndtrix(probability, 2.0, 2.0 / nmse[errs])
        return result


ESTIMATIONS: dict[str, Callable[..., Estimation]] = {
    "exact": ExactGains,
    "log-normal": LogNormalError,
    "complex-gaussian": ComplexGaussianError,
}
ESTIMATION = PartKind("estimation", ESTIMATIONS, ("num_devices",))
EXACT = ExactGains()
