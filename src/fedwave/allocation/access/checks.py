"""What each access has a proof for: everything else is refused in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedwave.errors import ProblemError, shown

if TYPE_CHECKING:
    from fedwave.allocation.problem import AllocationProblem

ACCESSES = ("one-block", "shared-band", "blocks", "tdma")
"""How devices may share the M blocks, see docs/allocation-accesses.md."""


def check_access(problem: AllocationProblem) -> None:
    """Refuse what the chosen access has no proof for."""
    if problem.access not in ACCESSES:
        raise ProblemError(f"access must be one of {', '.join(ACCESSES)}, got {shown(problem.access)}.")
    most = problem.max_uploads
    if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0):
        raise ProblemError(f"max_uploads must be a whole number >= 0, got {shown(most)}. None: no limit.")
    if problem.access == "one-block":
        if problem.has_own_bits:
            name = "device_bits" if problem.device_bits is not None else "offer_bits"
            raise ProblemError(
                f'{name} needs an access in which SNRs need not be common, got "one-block". Set access to '
                '"shared-band", "blocks" or "tdma", or give one model_bits for all.'
            )
        return
    if problem.is_frequency_selective or bool((problem.block_noise_w != problem.block_noise_w[:1]).any()):
        raise ProblemError(
            f'access "{problem.access}" needs blocks that are alike, got gains or interference that differ '
            "between them. Give one gain per device and one interference, or use one-block."
        )
    if problem.has_own_deadlines or isinstance(problem.radio.circuit_power_w, np.ndarray):
        name = "max_delay_s" if problem.has_own_deadlines else "radio.circuit_power_w"
        raise ProblemError(
            f'access "{problem.access}" needs one {name} for all, got one for each device. Give one number, '
            "or use one-block."
        )
    if problem.max_total_energy_j is not None:
        raise ProblemError(
            f'access "{problem.access}" has no proof with max_total_energy_j, got one. Use one-block, or '
            "max_energy_j for the upload alone."
        )
    has_circuit = problem.radio.has_circuit
    if problem.waterfall > 0.0:
        raise ProblemError(
            f'access "{problem.access}" has no proof with packet errors, got packet_error_waterfall = '
            f"{problem.waterfall:g}. Leave it out, or use one-block."
        )
    if problem.min_snr > problem.rate.max_snr:
        raise ProblemError(
            f'access "{problem.access}" needs min_snr below {problem.rate.max_snr:g}, where the rate is '
            f"capped, got {problem.min_snr:g}. Lower it, or use one-block."
        )
    if problem.access == "shared-band" and has_circuit and problem.max_energy_j is not None:
        raise ProblemError(
            'access "shared-band" has no proof with circuit_power_w and max_energy_j together, got both. '
            'Use "blocks" or "tdma", or set one of them to 0 or None.'
        )
    if problem.access == "tdma" and has_circuit and problem.has_prices:
        raise ProblemError(
            'access "tdma" needs one energy_weight where circuit_power_w > 0, got a price per device. '
            "Give one number, or set circuit_power_w to 0."
        )
    is_free = problem.max_delay_s is None and problem.max_round_delay_s is None
    if problem.delay_weight == 0.0 and is_free:
        raise ProblemError(
            f'access "{problem.access}" needs a delay_weight > 0 or a deadline, got neither. Set max_delay_s.'
        )
