"""The paper's partition: a few random classes a device, truncated Gaussian numbers of samples of each."""

from __future__ import annotations

import math

import numpy as np

from fedwave.errors import ConfigError, DataError, require_count
from fedwave.units import FloatArray, IntArray

# Without an explicit limit, counts end this many standard deviations above the mean: 20 for N(5, 5^2). It
# keeps the rare extreme device from emptying a class of a small dataset.
MAX_STDS_ABOVE_MEAN = 3.0

LARGEST_COUNT = 1e15  # a float holds whole numbers up to about here


def few_class_counts(
    supply: IntArray,
    num_devices: int = 100,
    *,
    shots: int,
    min_query: int,
    rng: np.random.Generator,
    classes_per_device: int = 2,
    mean_samples_per_class: float = 5.0,
    std_samples_per_class: float = 5.0,
    max_samples_per_class: int | None = None,
) -> IntArray:
    """Return how many samples of each class each device gets.

    Each device draws ``classes_per_device`` distinct classes uniformly from those in the dataset. For each it
    draws a number of samples from a Gaussian, truncated and rounded to whole numbers between
    ``shots + min_query`` (so every class has its support and query samples) and ``max_samples_per_class``
    (by default the mean plus three standard deviations).
    """
    present = np.flatnonzero(supply)
    require_count("classes_per_device", classes_per_device, at_least=1)
    if classes_per_device > len(present):
        raise DataError(
            f"classes_per_device is {classes_per_device} but the dataset has samples of "
            f"{len(present)} classes. Use fewer classes per device."
        )
    chosen = _draw_classes(present, num_devices, classes_per_device, rng=rng)
    num_samples = truncated_gaussian_counts(
        chosen.shape,
        mean=mean_samples_per_class,
        std=std_samples_per_class,
        at_least=shots + min_query,
        at_most=max_samples_per_class,
        rng=rng,
    )
    counts = np.zeros((num_devices, len(supply)), dtype=np.int64)
    np.put_along_axis(counts, chosen, num_samples, axis=1)
    return counts


def truncated_gaussian_counts(
    shape: tuple[int, ...],
    *,
    mean: float,
    std: float,
    at_least: int,
    at_most: int | None = None,
    rng: np.random.Generator,
) -> IntArray:
    """Return whole numbers k in ``at_least..at_most`` with probability ∝ P(k − ½ < N(mean, std²) ≤ k + ½)."""
    if not (math.isfinite(mean) and math.isfinite(std) and mean > 0 and std >= 0):
        raise ConfigError(
            f"mean_samples_per_class must be > 0 and std_samples_per_class >= 0, got {mean} and {std}. "
            "The paper uses 5 and 5."
        )
    if mean + MAX_STDS_ABOVE_MEAN * std > LARGEST_COUNT:
        raise ConfigError(
            f"mean_samples_per_class and std_samples_per_class are too large, got {mean:g} and {std:g}. "
            "The paper uses 5 and 5."
        )
    if at_most is None:
        at_most = max(at_least, math.ceil(mean + MAX_STDS_ABOVE_MEAN * std))
    require_count("max_samples_per_class", at_most, at_least=at_least)
    if std == 0:
        constant = min(max(round(mean), at_least), at_most)
        return np.full(shape, constant, dtype=np.int64)
    low, high = ((limit - mean) / std for limit in (at_least - 0.5, at_most + 0.5))
    values = mean + std * truncated_normal(rng.uniform(size=shape), low, high)
    counts: IntArray = np.clip(np.rint(values), at_least, at_most).astype(np.int64)
    return counts


def truncated_normal(share: FloatArray, low: float, high: float) -> FloatArray:
    """Return where a standard normal between low and high has the given share of its mass to its left.

    What ``scipy.stats.truncnorm.ppf`` computes, without the half second that scipy.stats takes to load. In
    logarithms, and from the nearer tail, so that limits far out lose nothing.
    """
    from scipy.special import log_ndtr, ndtri_exp

    if low > 0.0:
        return -truncated_normal(1.0 - share, -high, -low)
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    mass = log_high + np.log1p(-np.exp(log_low - log_high))
    return np.asarray(ndtri_exp(np.logaddexp(log_low, np.log(share) + mass)))


def _draw_classes(
    present: IntArray, num_devices: int, classes_per_device: int, *, rng: np.random.Generator
) -> IntArray:
    """Return distinct classes for each device: the positions of its smallest random keys."""
    keys = rng.random((num_devices, len(present)))
    chosen = np.argpartition(keys, classes_per_device - 1, axis=1)[:, :classes_per_device]
    return np.sort(present[chosen], axis=1)
