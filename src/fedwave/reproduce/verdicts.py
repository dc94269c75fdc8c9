"""Verdicts on the claims, computed from the tables alone: what each part's tests decide, and a claim's parts.

The tests are in ``inference``. Holm's step-down correction over all parts of the paper's claims, once for
each question, keeps the chance of any wrong answer to that question below 5 %; a sweep of ours is corrected
among its own parts, so that a finer sweep makes no claim of the paper less sure. A part

- *holds* or *does not hold* if its mean is surely on one side of its threshold;
- shows *no effect of interest* if it is surely smaller than the smallest effect that matters, either way;
- is *not of the paper's size* if its side is open, but it is surely smaller than the paper's number;
- is *open* otherwise: the interval of its mean says which effects are excluded.

A claim's verdict is how many of its parts hold, and how many of those that carry its point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedwave.reproduce.cell_claims import CELL_CLAIMS
from fedwave.reproduce.learning_claims import LEARNING_CLAIMS
from fedwave.reproduce.parts import Claim, Part
from fedwave.reproduce.seed_tables import Tables
from fedwave.runs.inference import LEVEL, Outcome, holm, outcome_of

CLAIMS: tuple[Claim, ...] = (*LEARNING_CLAIMS, *CELL_CLAIMS)

HOLDS, FAILS, SMALL, SMALLER, OPEN = (
    "holds",
    "does not hold",
    "no effect of interest",
    "not of the paper's size",
    "open",
)
AGAINST = (FAILS, SMALL, SMALLER)
NOT_RUN, UNTESTABLE = "not run", "not testable as printed"
Standing = Literal["holds", "part", "fails", "open"]


@dataclass(frozen=True)
class Corrected:
    """The p-values of a part after Holm's correction, one for each question; 1 where it is not asked."""

    effect: float
    size: float
    small: float


@dataclass(frozen=True)
class JudgedPart:
    """A part with what was measured and decided."""

    part: Part
    outcome: Outcome
    corrected: Corrected
    decision: str


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its parts and the verdict that follows from them."""

    claim: Claim
    parts: tuple[JudgedPart, ...]

    @property
    def verdict(self) -> str:
        """How many of the parts hold, and of those that carry the claim's point, where not all do."""
        if not self.parts:
            return NOT_RUN
        if self.claim.untestable:
            return UNTESTABLE
        return verdict_of([(one.decision, one.part.is_point) for one in self.parts])

    @property
    def standing(self) -> Standing:
        """How the parts that carry the point stand: all hold, some do, none but some against, or open."""
        if self.claim.untestable:
            return "open"
        decisions = [one.decision for one in self.parts if one.part.is_point]
        if decisions and all(decision == HOLDS for decision in decisions):
            return "holds"
        if any(decision == HOLDS for decision in decisions):
            return "part"
        return "fails" if any(decision in AGAINST for decision in decisions) else "open"

    @property
    def num_seeds(self) -> str:
        """Over how many seeds its parts were measured."""
        counts = sorted({part.outcome.count for part in self.parts})
        return "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "0"


def verdict_of(parts: Sequence[tuple[str, bool]]) -> str:
    """Return the verdict on a claim from its parts' decisions and whether they carry its point."""
    text = f"{sum(decision == HOLDS for decision, _ in parts)} of {len(parts)} hold"
    points = [decision for decision, is_point in parts if is_point]
    if len(points) == len(parts):
        return text
    return f"{text}; of the point {sum(decision == HOLDS for decision in points)} of {len(points)}"


def decide(part: Part, outcome: Outcome, corrected: Corrected) -> str:
    """Return what a part's corrected p-values say."""
    if outcome.count < 2:
        return OPEN
    if outcome.is_exact or corrected.effect < LEVEL:
        return HOLDS if outcome.is_for else FAILS
    if corrected.small < LEVEL:
        return SMALL
    if part.paper is not None and corrected.size < LEVEL and _is_short(part.paper, part.side, outcome.mean):
        return SMALLER
    return OPEN


def _is_short(paper: float, side: str, mean: float) -> bool:
    return mean < paper if side == "above" else mean > paper


def judge(tables: Tables) -> list[JudgedClaim]:
    """Return all claims with their verdicts; the corrections are over every part that was measured."""
    parts = {claim.name: [part for part in claim.parts(tables) if part.values] for claim in CLAIMS}
    judged = {
        is_sweep: iter(
            _judge_together(
                [part for claim in CLAIMS if claim.is_sweep == is_sweep for part in parts[claim.name]]
            )
        )
        for is_sweep in (False, True)
    }
    return [
        JudgedClaim(claim, tuple(next(judged[claim.is_sweep]) for _ in parts[claim.name])) for claim in CLAIMS
    ]


def _judge_together(parts: Sequence[Part]) -> list[JudgedPart]:
    """Return the parts with their decisions, corrected for their number."""
    outcomes = [
        outcome_of(
            list(part.values.values()), part.side, part.threshold, paper=part.paper, interest=part.interest
        )
        for part in parts
    ]
    return [
        JudgedPart(part, outcome, corrected, decide(part, outcome, corrected))
        for part, outcome, corrected in zip(parts, outcomes, corrected_for(parts, outcomes), strict=True)
    ]


def corrected_for(parts: Sequence[Part], outcomes: Sequence[Outcome]) -> list[Corrected]:
    """Return the p-values corrected over all parts that are asked the question; what is exact is not."""

    def over(asked: Sequence[bool], p_values: Sequence[float]) -> list[float]:
        found = iter(holm([p for p, is_asked in zip(p_values, asked, strict=True) if is_asked]))
        return [next(found) if is_asked else 1.0 for is_asked in asked]

    tested = [outcome.count > 1 and not outcome.is_exact for outcome in outcomes]
    has_paper = [own and part.paper is not None for own, part in zip(tested, parts, strict=True)]
    has_interest = [own and part.interest is not None for own, part in zip(tested, parts, strict=True)]
    return [
        Corrected(*three)
        for three in zip(
            over(tested, [one.p_value for one in outcomes]),
            over(has_paper, [one.p_size for one in outcomes]),
            over(has_interest, [one.p_small for one in outcomes]),
            strict=True,
        )
    ]


def claim_rows(judged: Sequence[JudgedClaim]) -> list[dict[str, Any]]:
    """Return claims.csv: a row for each part, with the verdict on its claim."""
    return [
        {"claim": one.claim.name, "verdict": one.verdict, **part_row(part)}
        for one in judged
        for part in one.parts
    ]


def part_row(judged: JudgedPart) -> dict[str, Any]:
    """Return what was measured and decided about a part as a row."""
    part, seen, corrected = judged.part, judged.outcome, judged.corrected
    return {
        "part": part.name,
        "is_point": int(part.is_point),
        "decision": judged.decision,
        "side": part.side,
        "threshold": part.threshold,
        "unit": "log of times" if part.is_ratio else part.unit,
        "paper": math.nan if part.paper is None else part.paper,
        "interest": math.nan if part.interest is None else part.interest,
        "seeds": seen.count,
        "mean": seen.mean,
        "half_width": seen.half_width,
        "prediction_half_width": seen.prediction,
        "is_exact": int(seen.is_exact),
        "p": math.nan if seen.is_exact else seen.p_value,
        "p_holm": math.nan if seen.is_exact else corrected.effect,
        "p_size": seen.p_size if part.paper is not None else math.nan,
        "p_size_holm": corrected.size if part.paper is not None else math.nan,
        "p_run": seen.p_run if part.paper is not None else math.nan,
        "p_small": seen.p_small if part.interest is not None else math.nan,
        "p_small_holm": corrected.small if part.interest is not None else math.nan,
        "p_sign_flip": seen.sign_flip_p,
    }
