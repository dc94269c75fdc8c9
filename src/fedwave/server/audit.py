"""Whether an upload fits its report. A device that claims a huge contribution would be selected always.

The upload gives it away: with one local step theta - theta_i = beta g, so the server can tell the norm of the
gradient and with it u of Eq. (21). With several steps it knows the norm of their sum alone, and checks what
the triangle inequality allows. All that holds for plain gradient steps alone: with momentum, Adam or a
proximal solver on the devices, honest uploads look like lies.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError, shown
from fedwave.selection import contribution
from fedwave.units import FloatArray

FLOAT32_ROUNDING = 2.0**-23  # of a model's value, with each local step; twice what rounding to nearest can do


@dataclass(frozen=True, kw_only=True)
class ContributionAudit:
    """How closely reports and uploads must agree. Each check returns what does not fit, or None."""

    meta_lr: float  # beta
    similarity_penalty: float  # lambda_1
    variance_penalty: float  # lambda_2
    tolerance: float = 1e-3  # relative; devices sum up their norms in single precision
    max_cancellation: float | None = None  # with several steps: how much longer than their sum they may be
    trainable: Collection[str] | None = None  # the arrays that gradients move, not buffers; None: all

    def __post_init__(self) -> None:
        if not (self.meta_lr > 0 and 0 <= self.tolerance < 1):
            raise ConfigError(
                f"an audit needs meta_lr > 0 and a tolerance in [0, 1), got {self.meta_lr:g} and "
                f"{self.tolerance:g}. Give the devices' own meta_lr."
            )
        if isinstance(self.trainable, str):
            raise ConfigError(
                f"trainable must be a collection of names, got {self.trainable!r}. Write "
                f"[{self.trainable!r}]."
            )
        if self.max_cancellation is not None and not self.max_cancellation >= 1:
            raise ConfigError(
                f"max_cancellation must be >= 1, got {self.max_cancellation:g}. Steps are at least as long "
                "as their sum; use None for no limit."
            )

    def of_report(self, claimed: float, gradient_norms: FloatArray, num_samples: int) -> str | None:
        """Return whether the contribution is that of the reported norms and samples, Eq. (21)."""
        norms = np.asarray(gradient_norms, dtype=np.float64)
        point = self.similarity_penalty + self.variance_penalty / math.sqrt(num_samples)
        with np.errstate(over="ignore"):
            expected = float(
                contribution(
                    norms[None, :],
                    [num_samples],
                    similarity_penalty=self.similarity_penalty,
                    variance_penalty=self.variance_penalty,
                )[0]
            )
            size = float(np.sum(norms * (norms + 2.0 * point)))  # of the terms: they may cancel in u
        if math.isfinite(size) and abs(claimed - expected) <= self.tolerance * size:
            return None
        return f"contribution {claimed:g} is not that of its gradient norms, {expected:g}"

    def of_upload(self, gradient_norms: FloatArray, step_norm: float, model_norm: float) -> str | None:
        """Return whether the model moved as far as the reported norms say.

        ``step_norm`` is ||theta - theta_i||, ``model_norm`` is ||theta_i||, which decides on the rounding.
        """
        norms = np.asarray(gradient_norms, dtype=np.float64)
        total, longest = float(norms.sum()), float(norms.max())
        moved = step_norm / self.meta_lr  # ||g_1 + ... + g_tau||
        slack = self.tolerance * total + len(norms) * FLOAT32_ROUNDING * model_norm / self.meta_lr
        least = max(2.0 * longest - total, 0.0)  # the longest step less all others: the norm itself for one
        if self.max_cancellation is not None:
            least = max(least, total / self.max_cancellation)
        if least - slack <= moved <= total + slack:
            return None
        allowed = f"{total:g}" if len(norms) == 1 else f"{least:g} to {total:g}"
        return f"the model moved by a gradient of norm {moved:g}, the report allows {allowed}"

    def require_names_of(self, model: Collection[str]) -> None:
        """Raise if the audit names an array that the model does not have."""
        named = set(model if self.trainable is None else self.trainable)
        if not named or named - set(model):
            raise ConfigError(
                f"trainable must name arrays of the model, got {shown(sorted(named - set(model)))}. Give the "
                "names of its parameters, such as dict(net.named_parameters())."
            )

    def norms(
        self, before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]
    ) -> tuple[float, float]:
        """Return ||theta - theta_i|| and ||theta_i|| over the trainable arrays, in double precision."""
        names = list(after) if self.trainable is None else list(self.trainable)
        with np.errstate(over="ignore"):
            steps = [np.asarray(after[name], np.float64) - before[name] for name in names]
            return _norm(steps), _norm([np.asarray(after[name], np.float64) for name in names])


def _norm(arrays: Sequence[NDArray[Any]]) -> float:
    return math.sqrt(sum(float(np.sum(array * array)) for array in arrays))
