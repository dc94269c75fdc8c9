"""Penalties of Eq. (21) that change from round to round: estimated, smoothed, and kept in the state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.devices.work import LocalWork
from fedwave.learning import Parameters
from fedwave.rng import Stream, generator
from fedwave.selection import EstimatedPenalties, Penalties, contribution
from fedwave.server import Reports
from fedwave.theory import similarity_penalty, variance_penalty
from fedwave.theory.estimates import Effort, estimate_constants
from fedwave.theory.learner import Learner
from fedwave.units import FloatArray


@dataclass(frozen=True)
class PenaltyState:
    """The penalties that a round was scored with, and the theory's own; None before the first estimate."""

    used: Penalties
    theory: Penalties | None = None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return both as arrays by name."""
        theory = self.theory or Penalties(math.nan, math.nan)
        return {
            "used": np.array([self.used.similarity, self.used.variance]),
            "theory": np.array([theory.similarity, theory.variance]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PenaltyState:
        """Return what ``to_arrays`` gave away."""
        used, theory = (Penalties(*arrays[name].tolist()) for name in ("used", "theory"))
        return cls(used, None if math.isnan(theory.similarity) else theory)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangingPenalties:
    """Estimates the theory's penalties as a run goes on, and scores its reports with them."""

    rule: EstimatedPenalties
    local: LocalWork
    learner: Learner  # what the theory must know of how devices learn

    def initial(self) -> PenaltyState:
        """Return the penalties before the first estimate, which no round is scored with but an empty one."""
        return PenaltyState(Penalties(self.local.similarity_penalty, self.local.variance_penalty))

    def after_reports(
        self, round_index: int, parameters: Parameters, reports: Reports, state: PenaltyState
    ) -> tuple[PenaltyState, Reports]:
        """Return the penalties of a round, estimated anew where it is due, and its reports scored with them.

        Nothing can be estimated on fewer than two devices; then the penalties stay.
        """
        theory, rule = state.theory, self.rule
        is_due = theory is None or round_index % rule.every == 0
        if is_due and len(reports) >= 2:
            theory = rule.smoothed(theory, self.estimate(round_index, parameters, reports))
        if theory is None:
            return state, reports
        used = rule.used(theory, reports.gradient_norms[:, 0], reports.num_samples)
        return PenaltyState(used, theory), replace(reports, contribution=self._scores(reports, used))

    def estimate(self, round_index: int, parameters: Parameters, reports: Reports) -> Penalties:
        """Return the least penalties of Corollary 1 by constants that are measured at this model."""
        rule, local, learner = self.rule, self.local, self.learner
        constants = estimate_constants(
            local.model,
            local.task,
            local.pool,
            parameters,
            step_length=learner.meta_lr,
            effort=Effort(
                num_devices=rule.num_devices,
                num_iterations=rule.num_iterations,
                num_probes=rule.num_probes,
            ),
            rng=generator(local.seed, Stream.THEORY, round_index),
            among=reports.device_index,
            chunk_samples=local.chunk_samples,
        ).constants()
        return Penalties(
            similarity_penalty(
                constants,
                learner.meta_noise(constants),
                inner_lr=learner.inner_lr,
                meta_lr=learner.meta_lr,
                num_local_steps=reports.gradient_norms.shape[1],  # a run may choose tau round by round
                as_printed=rule.as_printed,
            ),
            variance_penalty(constants, inner_lr=learner.inner_lr),
        )

    @staticmethod
    def _scores(reports: Reports, used: Penalties) -> FloatArray:
        return contribution(
            reports.gradient_norms,
            reports.num_samples,
            similarity_penalty=used.similarity,
            variance_penalty=used.variance,
        )
