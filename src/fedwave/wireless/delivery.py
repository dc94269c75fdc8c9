"""Which uploads arrive: dropout, outage, packet errors, deadline. Needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class UploadRisks:
    """What can keep an upload from arriving. By default nothing does, as in the paper."""

    outage_snr: float | None = None  # linear; an upload below this SNR cannot be decoded
    packet_error_waterfall: float | None = None  # m of Chen et al.: error 1 - exp(-m / SNR)
    dropout_probability: float = 0.0  # a device leaves between its report and its upload
    outage_margin: float = 1.0  # linear; how far above that SNR a planner stays
    deadline_s: float | None = None  # since the round began; later uploads are discarded

    def __post_init__(self) -> None:
        if not 0.0 <= self.dropout_probability <= 1.0:
            raise ProblemError(
                f"dropout_probability must lie in 0 to 1, got {self.dropout_probability:g}. Use 0 for none."
            )
        for name in ("outage_snr", "packet_error_waterfall", "deadline_s"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise ProblemError(f"{name} must be > 0, got {value:g}. Use None for none.")
        if not self.outage_margin >= 1.0:
            raise ProblemError(
                f"outage_margin must be >= 1, got {self.outage_margin:g}. Use 1 to plan without a margin."
            )

    @property
    def planned_min_snr(self) -> float:
        """The SNR that a planner keeps, the threshold times the margin; 0 without a threshold."""
        return 0.0 if self.outage_snr is None else self.outage_snr * self.outage_margin


class UploadFate(IntEnum):
    """What became of an upload. The first cause that applies is named, in this order."""

    ARRIVED = 0
    DROPPED_OUT = 1  # the device left after its report: it never transmitted
    OUTAGE = 2  # SNR below the decoder's threshold
    PACKET_ERROR = 3
    LATE = 4  # finished after the deadline, or broken off at a limit of its own
    FLAT = 5  # its battery ran out in the round, whatever else would have become of the upload


@dataclass(frozen=True, eq=False)
class UploadOutcome:
    """One entry per uploading device, in the order given."""

    fate: IntArray  # UploadFate values

    @property
    def arrived(self) -> BoolArray:
        """Whether the server has the device's model."""
        return np.asarray(self.fate == UploadFate.ARRIVED)

    @property
    def transmitted(self) -> BoolArray:
        """Whether the device spent radio time and energy; only those that dropped out did not."""
        return np.asarray(self.fate != UploadFate.DROPPED_OUT)


def packet_error_probability(snr: FloatArray, *, waterfall: float) -> FloatArray:
    """Return 1 - exp(-m / SNR), the packet error rate of Chen et al. 2020 with waterfall threshold m.

    It is the average over Rayleigh fading of an error that is certain below an SNR of m, so ``snr`` should be
    the mean SNR: with a channel that fades by itself the fading counts twice. No signal is a certain error.
    """
    probability = np.ones_like(snr)
    has_signal = snr > 0
    with np.errstate(over="ignore"):  # a vanishing SNR is a certain error as well
        exponent = np.divide(waterfall, snr, out=np.full_like(snr, np.inf), where=has_signal)
    probability[has_signal] = -np.expm1(-exponent[has_signal])
    return probability


def success_probability(snr: FloatArray, *, waterfall: float) -> FloatArray:
    """Return e^(-m/x), how likely an upload at SNR x arrives, Chen et al. 2020; 1 without packet errors."""
    if waterfall == 0.0:
        return np.ones(np.shape(snr))
    snr = np.asarray(snr, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        exponent = np.divide(waterfall, snr, out=np.full(snr.shape, np.inf), where=snr > 0)
        return np.asarray(np.exp(-exponent))


def upload_outcome(
    risks: UploadRisks,
    *,
    device_index: IntArray,
    num_devices: int,
    snr: FloatArray,
    finish_time_s: FloatArray,
    rng: np.random.Generator,
    is_broken_off: BoolArray | None = None,
) -> UploadOutcome:
    """Return what becomes of each upload.

    ``device_index``, ``snr`` (linear, at the power used) and ``finish_time_s`` (since the round began) have
    one entry per uploading device. Chance is drawn for all devices of the cell, so whether a device drops out
    does not depend on who else was selected: two allocators compared on one seed meet the same luck.
    ``is_broken_off`` says which uploads ended at a limit of their own before they were done.
    """
    dropout_luck, packet_luck = rng.random((2, num_devices))[:, device_index]
    fate = np.full(len(device_index), UploadFate.ARRIVED, dtype=np.int64)
    # From the last cause to the first: an earlier cause overwrites a later one.
    if is_broken_off is not None:
        fate[is_broken_off] = UploadFate.LATE
    if risks.deadline_s is not None:
        fate[finish_time_s > risks.deadline_s] = UploadFate.LATE
    if risks.packet_error_waterfall is not None:
        error = packet_error_probability(snr, waterfall=risks.packet_error_waterfall)
        fate[packet_luck < error] = UploadFate.PACKET_ERROR
    if risks.outage_snr is not None:
        fate[snr < risks.outage_snr] = UploadFate.OUTAGE
    fate[dropout_luck < risks.dropout_probability] = UploadFate.DROPPED_OUT
    return UploadOutcome(fate)
