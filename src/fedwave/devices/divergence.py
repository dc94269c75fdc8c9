"""Training that runs away: say so at once, in one line, before a number that is not finite spreads."""

from __future__ import annotations

import numpy as np
import torch

from fedwave.devices.base import HeldOutResult
from fedwave.errors import DivergenceError
from fedwave.learning import Parameters
from fedwave.units import FloatArray, IntArray


def require_finite_reports(
    round_index: int, device_ids: IntArray, gradient_norms: FloatArray, loss: FloatArray
) -> None:
    """Raise if a device's loss or gradient norm is not finite."""
    bad = np.flatnonzero(~np.isfinite(loss) | ~np.isfinite(gradient_norms).all(1))
    if bad.size:
        first = int(bad[0])
        norms = f" with gradient norms {gradient_norms[first].tolist()}"
        raise _divergence(round_index, f"device {device_ids[first]}", f"{loss[first]}{norms}")


def require_finite_evaluation(round_index: int, result: HeldOutResult, *, who: str = "held-out") -> None:
    """Raise if the loss of an evaluated device is not finite."""
    bad = np.flatnonzero(~np.isfinite(result.loss))
    if bad.size:
        first = int(bad[0])
        where = f"{who} device {result.device_ids[first]}"
        raise _divergence(round_index, where, str(result.loss[first]))


def require_finite_model(round_index: int, parameters: Parameters) -> None:
    """Raise if the global model holds a value that is not finite: it must not reach a checkpoint."""
    for name, value in parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise DivergenceError(
                f"the global model is not finite after round {round_index}: {name} has "
                f"{int((~torch.isfinite(value)).sum())} values that overflowed. Lower algorithm.meta_lr; the "
                "last good checkpoint is kept."
            )


def _divergence(round_index: int, where: str, got: str) -> DivergenceError:
    return DivergenceError(
        f"the loss is not finite in round {round_index} on {where}, got {got}. "
        "Lower algorithm.inner_lr or algorithm.meta_lr; the last good checkpoint is kept."
    )
