"""Who sends when over how many hertz: the uploads of a round as a picture of blocks over time. Numpy alone.

Blocks that fall free can go on to others. Whoever takes them keeps its power per block as long as its peak
power allows it, so it sends no bit for more energy than before, and nobody ends later than it would have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import FloatArray, IntArray
from fedwave.wireless.rate import RadioPower, RateModel

_LITTLE = 1e-12  # relative: an end that is earlier by less is no gain


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadSchedule:
    """Pieces of uploads: each a device on some hertz from one time to another, at one power."""

    device: IntArray
    first_hz: FloatArray  # where its hertz begin, from the lower end of the band
    width_hz: FloatArray
    start_s: FloatArray  # after uploads begin
    end_s: FloatArray
    power_w: FloatArray

    def end_of_device_s(self, num_devices: int) -> FloatArray:
        """Return when each device has sent its last piece; 0 without one."""
        end_s = np.zeros(num_devices)
        np.maximum.at(end_s, self.device, self.end_s)
        return end_s

    def energy_j(self, num_devices: int, *, radio: RadioPower, until_s: float = np.inf) -> FloatArray:
        """Return what each device's battery gives for its pieces, cut off at a time: T (p / xi + P_circuit).

        Pieces of a device at the same time are counted with one circuit.
        """
        time_s = np.maximum(np.minimum(self.end_s, until_s) - self.start_s, 0.0)
        sent_j = np.zeros(num_devices)
        np.add.at(sent_j, self.device, self.power_w * time_s / radio.amplifier_efficiency)
        on_s = np.zeros(num_devices)
        order = np.lexsort((self.start_s, self.device))
        seen_s = np.zeros(num_devices)  # each device's time that is counted already
        for k in order:
            i, end = self.device[k], min(float(self.end_s[k]), until_s)
            begin = max(float(self.start_s[k]), float(seen_s[i]))
            on_s[i] += max(end - begin, 0.0)
            seen_s[i] = max(float(seen_s[i]), end)
        return np.asarray(sent_j + radio.circuit_power_w * on_s)


def schedule_of(
    *,
    device: IntArray,
    first_hz: FloatArray,
    width_hz: FloatArray,
    start_s: FloatArray,
    time_s: FloatArray,
    power_w: FloatArray,
) -> UploadSchedule:
    """Return the schedule in which each device holds its hertz once; who does not send is left out."""
    sends = time_s > 0.0
    return UploadSchedule(
        device=device[sends],
        first_hz=first_hz[sends],
        width_hz=width_hz[sends],
        start_s=start_s[sends],
        end_s=(start_s + time_s)[sends],
        power_w=power_w[sends],
    )


def hand_on_blocks(
    *,
    device: IntArray,
    num_held: IntArray,
    power_w: FloatArray,
    max_power_w: FloatArray,
    gain: FloatArray,
    block_noise_w: float,
    bandwidth_hz: float,
    num_blocks: int,
    model_bits: float | FloatArray,
    rate: RateModel,
    min_snr: float = 0.0,
    first_block: IntArray | None = None,
) -> UploadSchedule:
    """Return the schedule in which no block is idle that somebody can use; arrays have an entry per upload.

    Each begins with ``num_held`` blocks from its ``first_block`` on; None: side by side from block 0.

    Whenever blocks are free, one after another goes to whoever would end last, or to the next who gains:
    whose rate grows, and whose SNR stays at ``min_snr`` and above what the modem needs. Blocks are alike.
    """
    count = device.size
    density_w = power_w / np.maximum(num_held, 1)
    floor = max(min_snr, rate.min_snr)

    def link(i: int, held: int) -> tuple[float, float, float]:
        """Return power, SNR and rate of an upload on so many blocks."""
        watts = min(float(density_w[i]) * held, float(max_power_w[i]))
        snr = watts * float(gain[i]) / (block_noise_w * held)
        return watts, snr, held * bandwidth_hz * float(rate.spectral_efficiency(np.array(snr)))

    def gains(i: int) -> bool:
        """Return whether one block more makes an upload faster, and is still decoded."""
        _, snr, faster = link(i, len(blocks[i]) + 1)
        return bool(faster > speed[i] * (1.0 + _LITTLE) and snr >= floor)

    begin = np.cumsum(num_held) - num_held if first_block is None else first_block
    blocks = [list(range(int(begin[i]), int(begin[i] + num_held[i]))) for i in range(count)]
    free = sorted(set(range(num_blocks)).difference(*blocks))
    bits = np.full(count, model_bits)
    left_bits = bits.copy()
    speed = np.array([link(i, len(blocks[i]))[2] for i in range(count)])
    active = {i for i in range(count) if speed[i] > 0.0}
    rows: list[tuple[int, int, float, float, float]] = []
    now = 0.0
    began = np.zeros(count)

    def close(i: int, at_s: float) -> None:
        """Write down what an upload held since it last changed."""
        watts = link(i, len(blocks[i]))[0] / len(blocks[i])
        if at_s > began[i]:
            rows.extend((int(device[i]), block, float(began[i]), at_s, watts) for block in blocks[i])
        began[i] = at_s

    while active:
        while free:
            waiting = sorted(active, key=lambda i: (-left_bits[i] / speed[i], i))
            taker = next((i for i in waiting if gains(i)), None)
            if taker is None:
                break
            close(taker, now)
            blocks[taker].append(free.pop(0))
            speed[taker] = link(taker, len(blocks[taker]))[2]
        first = min(active, key=lambda i: (left_bits[i] / speed[i], i))
        step_s = float(left_bits[first] / speed[first])
        now += step_s
        for i in active:
            left_bits[i] -= speed[i] * step_s
        done = [i for i in active if i == first or left_bits[i] <= _LITTLE * bits[i]]
        for i in sorted(done):
            close(i, now)
            free = sorted([*free, *blocks[i]])
            active.remove(i)
    found = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return UploadSchedule(
        device=found[:, 0].astype(np.int64),
        first_hz=found[:, 1] * bandwidth_hz,
        width_hz=np.full(len(rows), bandwidth_hz),
        start_s=found[:, 2],
        end_s=found[:, 3],
        power_w=found[:, 4],
    )
