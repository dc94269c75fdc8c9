"""What one number for each seed shows: tests and intervals of a mean, and of a single run beside it.

Every number is of runs on the same partition and first model, so that it is paired. Four questions are asked:

- **Is there an effect?** Student's t-test of the mean against the claim's threshold, two-sided, so that each
  side has 2.5 %. "Within a margin" is two one-sided tests.
- **Is it as large as the paper's?** Student's t-test of the mean against the paper's number, two-sided.
- **Is it too small to matter?** Two one-sided tests (Schuirmann 1987) that the mean lies between minus and
  plus the smallest effect of interest; p is twice the larger of the two, as each side has 2.5 %.
- **Could this have been the paper's run?** The paper shows one run: its number is compared with the
  prediction interval of one more seed, t s sqrt(1 + 1/n), not with the interval of the mean.

Each of the first three is corrected by Holm's method over all parts of the paper's claims. A number that is
the same for all seeds is *exact*: it is compared, not tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedwave.intervals import interval
from fedwave.units import FloatArray

Side = Literal["above", "below", "within"]

LEVEL = 0.05  # chance of any wrong decision among the answers to one question
MAX_SIGN_FLIPS = 20  # seeds up to which all signs are tried
ROUNDING = 1e-12  # of the largest value: a spread below it is none


@dataclass(frozen=True)
class Outcome:
    """What the numbers show, before any correction; NaN or 1 where nothing can be asked."""

    count: int
    mean: float
    half_width: float  # of the 95 % interval of the mean
    prediction: float  # half the width of the 95 % interval of one more seed
    is_for: bool  # whether the mean lies on the claimed side
    is_exact: bool  # whether all seeds have the same number
    p_value: float  # of the threshold
    p_size: float  # of the paper's number as the mean
    p_run: float  # of the paper's number as one run
    p_small: float  # that the effect is smaller than what is of interest
    sign_flip_p: float  # the first question without Student's assumptions, exact


def outcome_of(
    values: Sequence[float],
    side: Side,
    threshold: float,
    *,
    paper: float | None = None,
    interest: float | None = None,
) -> Outcome:
    """Return what one number for each seed shows beside a threshold, the paper's number and an interest."""
    finite = np.array([value for value in values if math.isfinite(value)])
    shown = interval(finite.tolist())
    is_exact = all_equal(finite)
    prediction = shown.half_width * math.sqrt(finite.size + 1.0)
    if side == "within":
        is_for = abs(shown.mean) < threshold
        towards = 1.0 if shown.mean >= 0 else -1.0
        distance = threshold - finite * towards  # to the nearer end; above zero for the claim
    else:
        is_for = shown.mean > threshold if side == "above" else shown.mean < threshold
        distance = finite - threshold if side == "above" else threshold - finite
    p_value = two_sided(distance)
    if side == "within" and is_for:
        p_value = smaller_than(finite, threshold)
    return Outcome(
        count=finite.size,
        mean=shown.mean,
        half_width=0.0 if is_exact else shown.half_width,
        prediction=0.0 if is_exact else prediction,
        is_for=bool(is_for),
        is_exact=is_exact,
        p_value=p_value,
        p_size=1.0 if paper is None else two_sided(finite - paper),
        p_run=1.0 if paper is None else one_more(finite, paper),
        p_small=1.0 if interest is None else smaller_than(finite, interest),
        sign_flip_p=sign_flip(distance),
    )


def all_equal(values: FloatArray) -> bool:
    """Return whether several seeds have the same number: it is compared, not tested."""
    return values.size > 1 and bool(values.std(ddof=1) <= ROUNDING * np.abs(values).max())


def two_sided(distance: FloatArray) -> float:
    """Return the p-value of the mean of ``distance`` being zero; 1 with fewer than two values.

    Of equal values: 0, or 1 where they are zero.
    """
    if distance.size < 2:
        return 1.0
    mean, error = float(distance.mean()), float(distance.std(ddof=1)) / math.sqrt(distance.size)
    if error == 0.0:
        return 0.0 if mean else 1.0
    return 2.0 * _upper_tail(abs(mean) / error, distance.size - 1)


def smaller_than(values: FloatArray, interest: float) -> float:
    """Return the p-value of two one-sided tests that the mean lies within plus and minus ``interest``.

    It is twice the larger of the two, below 5 % exactly where the 95 % interval lies inside.
    """
    if values.size < 2:
        return 1.0
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    nearer = interest - abs(float(values.mean()))
    if error == 0.0:
        return 0.0 if nearer > 0 else 1.0
    return min(1.0, 2.0 * _upper_tail(nearer / error, values.size - 1))


def one_more(values: FloatArray, other: float) -> float:
    """Return the p-value of ``other`` being one more value of the same kind, by the prediction interval."""
    if values.size < 2:
        return 1.0
    spread = float(values.std(ddof=1)) * math.sqrt(1.0 + 1.0 / values.size)
    distance = abs(other - float(values.mean()))
    if spread == 0.0:
        return 0.0 if distance else 1.0
    return 2.0 * _upper_tail(distance / spread, values.size - 1)


def _upper_tail(t: float, num_freedoms: int) -> float:
    from scipy.stats import t as student_t  # takes as long to load as torch

    return float(student_t.sf(t, num_freedoms))


def sign_flip(distance: Sequence[float] | FloatArray) -> float:
    """Return the exact two-sided p-value of the mean being zero if each value's sign were a coin toss."""
    values = np.asarray(distance, dtype=np.float64)
    if not 2 <= values.size <= MAX_SIGN_FLIPS:
        return math.nan
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    rounding = ROUNDING * np.abs(values).sum()
    return float(np.mean(np.abs(sums) >= abs(values.sum()) - rounding))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's step-down method: compare each with the level itself."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, (len(p_values) - rank) * p_values[i])
        corrected[i] = min(1.0, largest)
    return corrected


def most_often(num_trials: int) -> float:
    """Return the share that what was never seen in so many trials has at most, at 95 %: about 3 / n."""
    return 1.0 - LEVEL ** (1.0 / num_trials) if num_trials else 1.0
