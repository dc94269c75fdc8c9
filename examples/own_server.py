"""A server of your own that lets fedwave decide: who computes, who uploads, on which block, at what power.

Only numpy and scipy are needed; no deep-learning framework, no simulation. What your devices report, and the
channel that your base station measures, are random numbers here.
"""

from __future__ import annotations

import numpy as np

from fedwave.selection import TopContribution
from fedwave.server import (
    CellPlanner,
    ContributionScale,
    Outcome,
    PolicyRunner,
    RadioTerms,
    Reports,
    RoundAims,
    Work,
)
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw

NUM_DEVICES, NUM_BLOCKS = 12, 4


def main() -> None:
    rng = np.random.default_rng(0)
    num_samples = rng.integers(5, 30, NUM_DEVICES)
    planner = CellPlanner(
        runner=PolicyRunner(TopContribution(NUM_DEVICES), num_samples, seed=0),  # problem (P) decides: URAL
        fleet=Fleet(
            max_power_w=np.full(NUM_DEVICES, 0.2),
            max_frequency_hz=rng.uniform(0.5e9, 2e9, NUM_DEVICES),
            capacitance=np.full(NUM_DEVICES, 1e-28),
            cycles_per_sample=np.full(NUM_DEVICES, 1e7),
        ),
        terms=RadioTerms(num_blocks=NUM_BLOCKS, bandwidth_hz=180e3, noise_psd_w_per_hz=4e-21),
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0, scale=ContributionScale("normalised")),
        work=Work(model_bits=1e6, num_local_steps=1, num_samples=num_samples),
        method="optimal",
    )
    state = planner.initial_state()  # arrays by name: keep them wherever you keep your checkpoints
    for round_index in range(3):
        asked = planner.ask(round_index, state)
        reports = Reports(  # what these devices send you: a few numbers each
            device_index=asked,
            contribution=rng.uniform(0, 10, len(asked)),
            loss=rng.uniform(0, 2, len(asked)),
            num_samples=num_samples[asked],
            gradient_norms=rng.uniform(1, 4, (len(asked), 1)),
        )
        channel = ChannelDraw(
            channel_gain=rng.exponential(1e-11, (NUM_DEVICES, NUM_BLOCKS)),
            interference_w=np.zeros(NUM_BLOCKS),
        )
        plan = planner.plan(round_index, asked, reports, channel, state)
        assert plan.allocation is not None
        for device in plan.selected:
            block = plan.allocation.block_of_device[device]
            power_mw = 1e3 * plan.allocation.transmit_power_w[device]
            print(f"round {round_index}: device {device} uploads on block {block} at {power_mw:.1f} mW")
        print(f"  {plan.allocation.status.value}, the round takes {plan.allocation.delay_s:.2f} s")
        # Say what became of the plan: here every upload has arrived, and nobody counts what it cost.
        outcome = Outcome(plan.selected, np.full(len(plan.selected), UploadFate.ARRIVED, dtype=np.int64))
        state = planner.after(round_index, reports, plan, outcome, state)


if __name__ == "__main__":
    main()
