"""One round's allocation problem (P): who uploads, on which block, at what power and CPU frequency."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedwave.allocation.access.checks import check_access
from fedwave.allocation.problem_fields import checked_array, first_index, length_of, one_number
from fedwave.errors import ProblemError, naming_fields
from fedwave.units import FloatArray, IntArray, real_array
from fedwave.wireless.link import IDEAL_RADIO, SHANNON, uplink_rate_bps, uplink_snr
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.sanity import UnitWarning, power_warnings

_PER_DEVICE = (
    "channel_gain",
    "max_power_w",
    "workload_cycles",
    "max_frequency_hz",
    "capacitance",
    "static_power_w",
    "joules_per_cycle",
)


@naming_fields
@dataclass(frozen=True, kw_only=True, eq=False)
class AllocationProblem:
    """The data of problem (P): maximise U - eta_1 E - eta_2 T, Eq. (30)-(35), for n devices and M blocks.

    Per-device values may be scalars, and so may the interference where gains say how many blocks there are.
    Arrays are kept as read-only views, never copied or modified. From ``rate`` on all fields go past the
    paper; by their defaults (P) is the paper's. A power that looks like dBm gives a ``UnitWarning``.
    """

    contribution: FloatArray  # u, (n,); may be negative
    channel_gain: FloatArray  # h, (n,), or (n, M) for frequency-selective channels
    interference_w: FloatArray  # I, (M,)
    max_power_w: FloatArray  # p_max, (n,)
    workload_cycles: FloatArray  # tau c D, (n,)
    max_frequency_hz: FloatArray  # nu_max, (n,)
    capacitance: FloatArray  # iota, (n,)
    model_bits: float  # S
    bandwidth_hz: float  # B of one block
    noise_psd_w_per_hz: float  # N0
    energy_weight: FloatArray | float  # eta_1 [1/J]; (n,): a price of each device's joules
    delay_weight: float  # eta_2 [1/s]
    max_delay_s: FloatArray | float | None = None  # hard deadline for the upload; (n,): of each; inf: none
    max_energy_j: FloatArray | float | None = None  # hard limit on each device's upload energy; inf: none
    max_total_energy_j: FloatArray | float | None = None  # the same on computing and upload together
    max_compute_delay_s: float | None = None  # hard deadline for the local update
    rate: RateModel = SHANNON  # what the modem makes of an SNR; Shannon's rate, Eq. (25)
    radio: RadioPower = IDEAL_RADIO  # what sending drains; the transmit power alone, Eq. (29)
    min_snr: float = 0.0  # linear; an upload below is not decoded: outage threshold times margin
    packet_error_waterfall: float | None = None  # m: an upload at SNR x arrives with probability e^(-m/x)
    min_frequency_hz: FloatArray | float | None = None  # nu_min, of those that compute
    static_power_w: FloatArray | float = 0.0  # P_0, drawn while computing, whatever the frequency
    joules_per_cycle: FloatArray | float = 0.0  # energy of computing that no frequency changes
    max_round_delay_s: float | None = None  # hard deadline for computing, fixed_delay_s and upload together
    fixed_delay_s: float = 0.0  # what else the round takes, e.g. for reports; counts for that deadline alone
    access: str = "one-block"  # how the blocks are shared, one of ACCESSES; (P) is the paper's with one-block
    max_uploads: int | None = None  # at most so many devices upload
    device_bits: FloatArray | None = None  # (n,): S of each device's own upload; None: model_bits for all
    offer_contribution: FloatArray | None = None  # (n, L): u of further offers, of which a plan takes one
    offer_bits: FloatArray | None = None  # (n, L) or (L,): S of each of them

    def __post_init__(self) -> None:
        for name in ("model_bits", "bandwidth_hz"):
            self._set_scalar(name, must_be_positive=True)
        for name in ("noise_psd_w_per_hz", "delay_weight", "min_snr", "fixed_delay_s"):
            self._set_scalar(name, must_be_positive=False)
        if self.packet_error_waterfall is not None:
            self._set_scalar("packet_error_waterfall", must_be_positive=False)
        for name, kind in (("rate", RateModel), ("radio", RadioPower)):
            if not isinstance(getattr(self, name), kind):
                got = type(getattr(self, name)).__name__
                raise ProblemError(f"{name} must be a {kind.__name__}, got {got}. See fedwave.wireless.rate.")
        for name in ("max_delay_s", "max_compute_delay_s", "max_round_delay_s"):
            value = getattr(self, name)
            if value is not None and not (name == "max_delay_s" and np.ndim(value)):
                self._set_scalar(name, must_be_positive=True)
        self._set_array("contribution", (length_of(self.contribution, "contribution"),), may_be_negative=True)
        gain = real_array(self.channel_gain, "channel_gain")
        if gain.ndim == 2 and np.ndim(self.interference_w) == 0:
            self._set_array("interference_w", (gain.shape[1],))
        self._set_array("interference_w", (length_of(self.interference_w, "interference_w"),))
        if np.ndim(self.energy_weight):
            self._set_array("energy_weight", (self.num_devices,))
        else:
            self._set_scalar("energy_weight", must_be_positive=False)
        self._set_own_limits()
        for name in _PER_DEVICE:
            shape: tuple[int, ...] = (self.num_devices,)
            if name == "channel_gain" and gain.ndim == 2:
                shape += (self.num_blocks,)
            self._set_array(name, shape)
        for name in ("max_energy_j", "max_total_energy_j"):
            if getattr(self, name) is not None:
                self._set_array(name, (self.num_devices,), may_be_infinite=True)
        if self.min_frequency_hz is not None:
            self._set_array("min_frequency_hz", (self.num_devices,))
        self._set_offers()
        self._check_combinations()
        check_access(self)
        for warning in self.warnings:
            warnings.warn(warning, UnitWarning, stacklevel=4)  # where the problem is made: not the dataclass

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return one line for each number that looks like a slip of units; none where nothing has units."""
        return power_warnings(
            float(self.max_power_w.max(initial=0.0)),
            bandwidth_hz=self.bandwidth_hz,
            noise_psd_w_per_hz=self.noise_psd_w_per_hz,
        )

    @property
    def num_devices(self) -> int:
        """Return n."""
        return int(self.contribution.shape[0])

    @property
    def has_offers(self) -> bool:
        """Return whether devices offer several pairs (u, S), of which a plan takes one."""
        return self.offer_contribution is not None

    @property
    def has_own_bits(self) -> bool:
        """Return whether uploads differ in size, between devices or offers."""
        return self.has_offers or self.device_bits is not None

    def bits_of(self, device: IntArray) -> FloatArray | float:
        """Return S of each of these devices' (first) offer, or the one number of all."""
        return self.model_bits if self.device_bits is None else self.device_bits[device]

    def taking(self, offer_of_device: IntArray | None) -> AllocationProblem:
        """Return the problem in which each device has the one offer that it takes, or its first if none."""
        if self.offer_contribution is None or self.offer_bits is None or offer_of_device is None:
            return self
        device = np.flatnonzero(offer_of_device > 0)
        offer = np.asarray(offer_of_device)[device] - 1
        contribution, bits = self.contribution.copy(), np.full(self.num_devices, self.model_bits)
        if self.device_bits is not None:
            bits[:] = self.device_bits
        contribution[device] = self.offer_contribution[device, offer]
        bits[device] = self.offer_bits[device, offer]
        return replace(
            self, contribution=contribution, device_bits=bits, offer_contribution=None, offer_bits=None
        )

    @property
    def num_blocks(self) -> int:
        """Return M."""
        return int(self.interference_w.shape[0])

    @property
    def most_uploads(self) -> int:
        """Return how many devices may upload: one a block, where each has one, and within ``max_uploads``."""
        most = self.num_blocks if self.access in ("one-block", "blocks") else self.num_devices
        return most if self.max_uploads is None else min(most, int(self.max_uploads))

    @property
    def has_prices(self) -> bool:
        """Return whether each device has an energy weight of its own."""
        return isinstance(self.energy_weight, np.ndarray)

    @cached_property
    def counts_energy(self) -> bool:
        """Return whether anybody's joules cost anything."""
        if isinstance(self.energy_weight, np.ndarray):
            return bool(self.energy_weight.any())
        return self.energy_weight > 0.0

    @property
    def has_own_deadlines(self) -> bool:
        """Return whether each device's upload has a deadline of its own."""
        return isinstance(self.max_delay_s, np.ndarray)

    @cached_property
    def longest_delay_s(self) -> float | None:
        """Return the upload deadline, of several the latest; None: there is none."""
        if not isinstance(self.max_delay_s, np.ndarray):
            return self.max_delay_s
        longest_s = float(self.max_delay_s.max(initial=0.0))
        return longest_s if 0.0 < longest_s < math.inf else None

    def deadline_of(self, device: IntArray) -> FloatArray | float:
        """Return the upload deadline of each of these devices, or the one of all; infinite: none."""
        if isinstance(self.max_delay_s, np.ndarray):
            return self.max_delay_s[device]
        return math.inf if self.max_delay_s is None else self.max_delay_s

    def circuit_power_of(self, device: IntArray) -> FloatArray | float:
        """Return what the circuit of each of these devices draws, or the one number of all [W]."""
        circuit_w = self.radio.circuit_power_w
        return circuit_w[device] if isinstance(circuit_w, np.ndarray) else circuit_w

    def price_of(self, device: IntArray) -> FloatArray | float:
        """Return eta_1 of each of these devices, or the one number of all."""
        return (
            self.energy_weight[device] if isinstance(self.energy_weight, np.ndarray) else self.energy_weight
        )

    def energy_cost(self, energy_j: FloatArray) -> float:
        """Return what each device's joules cost together; a price of 0 ignores even endless ones."""
        if not isinstance(self.energy_weight, np.ndarray):
            return self.energy_weight * float(energy_j.sum()) if self.energy_weight else 0.0
        is_paid = self.energy_weight > 0
        return float(np.dot(self.energy_weight[is_paid], energy_j[is_paid]))

    @property
    def is_frequency_selective(self) -> bool:
        """Return whether the gain differs between blocks, h[i, m]."""
        return self.channel_gain.ndim == 2

    @cached_property
    def block_noise_w(self) -> FloatArray:
        """Return the noise and interference of each block, I_m + B N0 of Eq. (25); read-only."""
        noise_w = self.interference_w + self.bandwidth_hz * self.noise_psd_w_per_hz
        noise_w.flags.writeable = False
        return noise_w

    @property
    def nat_delay_s(self) -> float:
        """Return s = S ln 2 / B, the unit of the upload delay: delta = s / ln(1 + SNR), Eq. (25), (28).

        A modem that reaches a share of Shannon's rate takes as long as for a model larger by that share.
        """
        nat_delay_s = self.model_bits / self.bandwidth_hz * math.log(2.0)
        return nat_delay_s if self.rate.efficiency == 1.0 else nat_delay_s / self.rate.efficiency

    @property
    def waterfall(self) -> float:
        """Return m of the packet error rate 1 - e^(-m/x); 0 without packet errors."""
        return self.packet_error_waterfall or 0.0

    @property
    def has_risks(self) -> bool:
        """Return whether an upload may be lost: in an outage, by a packet error or at the round's end."""
        return self.min_snr > 0.0 or self.waterfall > 0.0 or self.max_round_delay_s is not None

    @property
    def without_risks(self) -> AllocationProblem:
        """Return the problem as a method sees it that plans for no losses."""
        if not self.has_risks:
            return self
        # Without a delay weight the slowest upload would be the cheapest: the round's end bounds it.
        free = self.max_round_delay_s if self.delay_weight == 0.0 else None
        return replace(
            self,
            min_snr=0.0,
            packet_error_waterfall=None,
            max_round_delay_s=None,
            max_delay_s=self.max_delay_s if self.max_delay_s is not None else free,
        )

    @cached_property
    def fastest_compute_s(self) -> float:
        """Return when all have computed if all run at full frequency; infinite if one never ends."""
        is_busy = self.workload_cycles > 0
        workload, fastest = self.workload_cycles[is_busy], self.max_frequency_hz[is_busy]
        if workload.size == 0:
            return 0.0
        with np.errstate(over="ignore"):
            return math.inf if fastest.min() == 0.0 else float((workload / fastest).max())

    @property
    def compute_deadline_s(self) -> float:
        """Return the time that the CPUs may take, or what their slowest needs if that is more; else infinite.

        With delay_weight 0 nothing else hurries them, so the upload's deadline then holds for computing, too,
        unless there is one for the whole round.
        """
        deadline_s = math.inf if self.max_compute_delay_s is None else self.max_compute_delay_s
        if self.max_round_delay_s is not None:
            return min(deadline_s, self.max_round_delay_s - self.fixed_delay_s)
        if deadline_s == math.inf and self.delay_weight == 0.0 and self.longest_delay_s is not None:
            return self.longest_delay_s
        return deadline_s

    def gain_of(self, device: IntArray, block: IntArray) -> FloatArray:
        """Return h of each (device, block) pair."""
        return self.channel_gain[device, block] if self.is_frequency_selective else self.channel_gain[device]

    def snr_of(self, device: IntArray, block: IntArray, power_w: FloatArray) -> FloatArray:
        """Return the SNR of each (device, block) pair at the given power, p h / (I + B N0)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(uplink_snr(power_w, self.gain_of(device, block), self.block_noise_w[block]))

    def rate_bps_of(self, device: IntArray, block: IntArray, power_w: FloatArray) -> FloatArray:
        """Return the uplink rate of each (device, block) pair at the given power, Eq. (25)."""
        with np.errstate(over="ignore", under="ignore"):
            return uplink_rate_bps(
                power_w,
                self.gain_of(device, block),
                interference_w=self.interference_w[block],
                bandwidth_hz=self.bandwidth_hz,
                noise_psd_w_per_hz=self.noise_psd_w_per_hz,
                rate_model=self.rate,
            )

    def upload_energy_j(self, device: IntArray, power_w: FloatArray, delay_s: FloatArray) -> FloatArray:
        """Return what uploads drain from batteries: T (p / xi + P_circuit); by default T p, Eq. (29)."""
        return self.radio.of(device).drain_w(power_w) * delay_s

    def energy_limit_of(self, device: IntArray) -> FloatArray:
        """Return each device's upload energy limit in joules, infinite where there is none."""
        if self.max_energy_j is None:
            return np.full(np.shape(device), np.inf)
        return np.asarray(self.max_energy_j)[device]

    def _set_own_limits(self) -> None:
        """Keep deadlines and circuit powers of each device, if they are arrays, with one value for each."""
        if self.max_delay_s is not None and np.ndim(self.max_delay_s):
            self._set_array("max_delay_s", (self.num_devices,), may_be_infinite=True)
            own_s = np.asarray(self.max_delay_s)
            if own_s.size and own_s.min() <= 0:
                device = int(np.argmin(own_s))
                raise ProblemError(
                    f"max_delay_s must be > 0, got {own_s[device]:g} at index {device}. Check its unit."
                )
        circuit_w = self.radio.circuit_power_w
        if isinstance(circuit_w, np.ndarray) and circuit_w.shape != (self.num_devices,):
            raise ProblemError(
                f"radio.circuit_power_w must have shape ({self.num_devices},), got {circuit_w.shape}. Give "
                "one value for each device, or one number."
            )

    def _set_offers(self) -> None:
        """Keep own sizes and further offers with one value for each device, and sizes above 0."""
        if self.device_bits is not None:
            self._set_array("device_bits", (self.num_devices,))
        if (self.offer_contribution is None) != (self.offer_bits is None):
            given = "offer_bits" if self.offer_contribution is None else "offer_contribution"
            raise ProblemError(
                f"offer_contribution and offer_bits go together, got {given} alone. Give a u and a size S "
                "of each further offer."
            )
        if self.offer_contribution is not None:
            shape = np.shape(self.offer_contribution)
            if len(shape) != 2 or shape[0] != self.num_devices or shape[1] == 0:
                raise ProblemError(
                    f"offer_contribution must have shape ({self.num_devices}, L), got {shape}. Give a row "
                    "for each device; use 0 where a device has no such offer."
                )
            self._set_array("offer_contribution", shape, may_be_negative=True)
            bits = real_array(self.offer_bits, "offer_bits")
            if bits.shape == shape[1:]:
                object.__setattr__(self, "offer_bits", np.broadcast_to(bits, shape))
            self._set_array("offer_bits", shape)
        for name in ("device_bits", "offer_bits"):
            sizes = getattr(self, name)
            if sizes is not None and sizes.size and sizes.min() == 0:
                device = first_index(sizes == 0)[0]
                raise ProblemError(
                    f"{name} must be > 0, got 0 at device {device}. Give the size of an upload in bits."
                )

    def _set_scalar(self, name: str, *, must_be_positive: bool) -> None:
        number = one_number(name, getattr(self, name), must_be_positive=must_be_positive)
        object.__setattr__(self, name, number)

    def _set_array(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        may_be_negative: bool = False,
        may_be_infinite: bool = False,
    ) -> None:
        array = real_array(getattr(self, name), name)
        if array.ndim == 0:
            array = np.broadcast_to(array, shape)
        if array.shape != shape:
            allowed = f"({self.num_devices},)" if len(shape) == 1 else str(shape)
            if name == "channel_gain":
                allowed = f"({self.num_devices},)"
                allowed += f" or ({self.num_devices}, {self.num_blocks})"
            raise ProblemError(
                f"{name} must have shape {allowed}, got {array.shape}. There are {self.num_devices} devices "
                f"(from contribution) and {self.num_blocks} blocks (from interference_w)."
            )
        checked = checked_array(name, array, may_be_negative=may_be_negative, may_be_infinite=may_be_infinite)
        object.__setattr__(self, name, checked)

    def _check_combinations(self) -> None:
        noise = self.block_noise_w
        if noise.size and noise.min() <= 0:
            block = int(np.argmin(noise))
            raise ProblemError(
                f"interference_w + bandwidth_hz * noise_psd_w_per_hz must be > 0, got 0 on block {block}. "
                "Without noise the rate is infinite; give noise_psd_w_per_hz (thermal noise is 4e-21 W/Hz)."
            )
        is_unhurried = self._may_wait and self.max_round_delay_s is None
        if self.delay_weight == 0 and self.counts_energy and is_unhurried:
            raise ProblemError(
                "delay_weight must be > 0 when there is no max_delay_s, got 0. The slowest upload is then "
                "the cheapest, so no best delay exists; set max_delay_s (of each) or a delay_weight > 0."
            )
        if self.min_frequency_hz is not None:
            is_above = np.asarray(self.min_frequency_hz) > self.max_frequency_hz
            if is_above.any():
                device = int(np.argmax(is_above))
                raise ProblemError(
                    f"min_frequency_hz must be <= max_frequency_hz, got "
                    f"{np.asarray(self.min_frequency_hz)[device]:g} > {self.max_frequency_hz[device]:g} at "
                    f"device {device}. Lower it there."
                )

    @property
    def _may_wait(self) -> bool:
        """Return whether somebody's upload has no deadline."""
        return self.max_delay_s is None or bool(np.isinf(self.max_delay_s).any())
