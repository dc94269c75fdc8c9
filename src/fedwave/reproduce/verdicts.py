"""Verdicts on the claims, computed from the tables alone: tests of means over seeds, and what they decide.

**The test.** A claim's part is a number for each seed, made of runs on the same partition and the same
first model (paired), and a side: above a threshold, below it, or within plus or minus a margin. Student's
t-test of the mean is one-sided for the claim and one-sided against it; the part's p-value is twice the
smaller of the two. For "within", the test for the claim is two one-sided tests against both ends of the
margin, and that against it is one-sided beyond the nearer end.

**Many parts.** Holm's step-down correction over all parts of all claims keeps the chance of any wrong
decision below 5 %.

**Seeds that would decide.** The smallest number of seeds at which, with the mean and spread seen so far, the
test decides in four of five cases at the level of Bonferroni's correction over all parts (never laxer than
Holm's).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student_t

from fedwave.intervals import interval
from fedwave.reproduce.claims import CLAIMS, Claim, Part, Side
from fedwave.reproduce.seed_tables import Tables

Decision = Literal["holds", "does not hold", "undecided"]

LEVEL = 0.05  # chance of any wrong decision among all parts
POWER = 0.8
MAX_SEEDS = 10_000  # more are not worth naming
MAX_SIGN_FLIPS = 20  # seeds up to which all signs are tried


@dataclass(frozen=True)
class Outcome:
    """What a part's numbers show, before the correction for many parts."""

    count: int
    mean: float
    half_width: float  # of the 95 % interval; NaN with fewer than two seeds
    p_value: float  # 1 where nothing can be tested
    is_for: bool  # whether the mean lies on the claimed side
    sign_flip_p: float  # the same question without Student's assumptions; exact, NaN where it cannot be asked


def outcome_of(values: Sequence[float], side: Side, threshold: float) -> Outcome:
    """Return what one number for each seed shows about its mean and the threshold."""
    finite = np.array([value for value in values if math.isfinite(value)])
    shown = interval(finite.tolist())
    if side == "within":
        is_for = abs(shown.mean) < threshold
        # What must be above zero for the claim: the distance to the nearer end.
        distance = threshold - finite * (1.0 if shown.mean >= 0 else -1.0)
    else:
        is_for = shown.mean > threshold if side == "above" else shown.mean < threshold
        distance = finite - threshold if side == "above" else threshold - finite
    p_value = _two_sided(distance)
    if side == "within" and is_for:
        # Two one-sided tests: the farther end must be excluded too, and is so whenever the nearer one is.
        far = threshold + finite * (1.0 if shown.mean >= 0 else -1.0)
        p_value = max(p_value, _two_sided(far))
    return Outcome(finite.size, shown.mean, shown.half_width, p_value, bool(is_for), sign_flip(distance))


def _two_sided(distance: np.ndarray) -> float:
    """Return the p-value of the mean of ``distance`` being zero; 1 with fewer than two values.

    A number that is the same for all seeds leaves nothing to chance: 0. At the threshold itself, it is not
    beyond it.
    """
    if distance.size < 2:
        return 1.0
    mean, error = float(distance.mean()), float(distance.std(ddof=1)) / math.sqrt(distance.size)
    if error == 0.0:
        return 0.0
    return float(2.0 * student_t.sf(abs(mean) / error, distance.size - 1))


def sign_flip(distance: Sequence[float] | np.ndarray) -> float:
    """Return the exact two-sided p-value of the mean being zero if each value's sign were a coin toss."""
    values = np.asarray(distance, dtype=np.float64)
    if not 2 <= values.size <= MAX_SIGN_FLIPS:
        return math.nan
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    rounding = 1e-12 * np.abs(values).sum()
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


def decide(outcome: Outcome, corrected_p: float) -> Decision:
    """Return what a part's corrected p-value says."""
    if outcome.count < 2 or corrected_p >= LEVEL:
        return "undecided"
    return "holds" if outcome.is_for else "does not hold"


def seeds_needed(values: Sequence[float], side: Side, threshold: float, num_parts: int) -> int | None:
    """Return how many seeds would decide the part; None if more than ``MAX_SEEDS``, or nothing is known."""
    finite = np.array([value for value in values if math.isfinite(value)])
    if finite.size < 2:
        return None
    spread = float(finite.std(ddof=1))
    mean = float(finite.mean())
    distance = abs(threshold - abs(mean)) if side == "within" else abs(mean - threshold)
    if distance == 0.0:
        return None
    level = LEVEL / num_parts

    def decides(count: int) -> bool:
        reach = student_t.ppf(1.0 - level / 2.0, count - 1) + student_t.ppf(POWER, count - 1)
        return bool(distance * math.sqrt(count) >= reach * spread)

    low, high = finite.size, MAX_SEEDS
    if not decides(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle + 1, high)
    return max(high, 2)


@dataclass(frozen=True)
class JudgedPart:
    """A part with what was measured and decided."""

    part: Part
    outcome: Outcome
    corrected_p: float
    decision: str
    seeds_needed: int | None  # only where undecided


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its parts and the verdict that follows from them."""

    claim: Claim
    parts: tuple[JudgedPart, ...]

    @property
    def verdict(self) -> str:
        """What the parts say together: a claim is all of its parts."""
        return verdict_of([part.decision for part in self.parts])

    @property
    def num_seeds(self) -> str:
        """Over how many seeds its parts were measured."""
        counts = sorted({part.outcome.count for part in self.parts})
        return "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "0"


def verdict_of(decisions: Sequence[str]) -> str:
    """Return the verdict on a claim from the decisions on its parts."""
    if not decisions:
        return "not run"
    if all(decision == "holds" for decision in decisions):
        return "holds"
    if any(decision == "holds" for decision in decisions):
        return "holds in part"
    if any(decision == "does not hold" for decision in decisions):
        return "does not hold"
    return "undecided"


def judge(tables: Tables) -> list[JudgedClaim]:
    """Return all claims with their verdicts; the correction is over every part that was measured."""
    measured = [(claim, [part for part in claim.parts(tables) if part.values]) for claim in CLAIMS]
    parts = [part for _, own in measured for part in own]
    outcomes = [outcome_of(list(part.values.values()), part.side, part.threshold) for part in parts]
    corrected = holm([outcome.p_value for outcome in outcomes])
    judged = iter(
        [
            _judged(part, outcome, p, len(parts))
            for part, outcome, p in zip(parts, outcomes, corrected, strict=True)
        ]
    )
    return [JudgedClaim(claim, tuple(next(judged) for _ in own)) for claim, own in measured]


def claim_rows(judged: Sequence[JudgedClaim]) -> list[dict[str, Any]]:
    """Return claims.csv: a row for each part, with the verdict on its claim."""
    return [
        {
            "claim": one.claim.name,
            "verdict": one.verdict,
            "part": part.part.name,
            "decision": part.decision,
            "side": part.part.side,
            "threshold": part.part.threshold,
            "unit": part.part.unit,
            "paper": part.part.paper,
            "mean": part.outcome.mean,
            "half_width": part.outcome.half_width,
            "seeds": part.outcome.count,
            "p": part.outcome.p_value,
            "p_holm": part.corrected_p,
            "p_sign_flip": part.outcome.sign_flip_p,
            "seeds_needed": part.seeds_needed,
        }
        for one in judged
        for part in one.parts
    ]


def _judged(part: Part, outcome: Outcome, corrected_p: float, num_parts: int) -> JudgedPart:
    decision = decide(outcome, corrected_p)
    needed = (
        seeds_needed(list(part.values.values()), part.side, part.threshold, num_parts)
        if decision == "undecided"
        else None
    )
    return JudgedPart(part, outcome, corrected_p, decision, needed)
