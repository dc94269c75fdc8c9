"""Verdicts on the claims, computed from the tables alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedwave.reproduce.claims import CLAIMS, Claim, Part
from fedwave.reproduce.seed_tables import Tables
from fedwave.reproduce.statistics import Outcome, decide, holm, outcome_of, seeds_needed


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
