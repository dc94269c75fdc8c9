"""What does a GPU make of a round? For users who have one: the authors had none, and never ran this on one.

    python benchmarks/bench_gpu.py [cuda]

One NUFM round of the paper's setting (50 devices) and one of 500 devices, on the CPU and on the GPU,
through the same code; in float32 and, where the GPU has it, in bfloat16. Asserted: the GPU's model is the
CPU's but for rounding. Please report what it prints, with the name of the card. Without a GPU it says so
and ends.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import closing
from dataclasses import replace

import torch

from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning import Parameters
from fedwave.learning.precision import require_precision

REPEATS = 5


def round_on(device: str, num_devices: int, precision: str) -> tuple[float, Parameters]:
    """Return the median seconds of a round, and the model after it, on the CPU."""
    experiment = load_experiment(
        "paper/nufm",
        [
            "data.dataset=synthetic",
            f"data.dataset.num_samples={400 * num_devices}",
            "data.dataset.shape=[1, 28, 28]",
            f"partition.num_devices={2 * num_devices}",
            "evaluation.every=1000",
            "selection.policy=uniform",  # the same devices upload, whatever the last bits
            f"execution.device={device}",
        ],
    )
    sim = build_simulation(experiment)
    sim = replace(sim, local=replace(sim.local, precision=precision))
    state = sim.initial_state().to(sim.train.torch_device)
    seconds = []
    with closing(sim.open_devices()) as devices:
        for _ in range(REPEATS + 1):
            start = time.perf_counter()
            after, _ = sim.run_round(state, devices)
            after = after.to(torch.device("cpu"))  # waits for the GPU
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:]), after.parameters


def main() -> None:
    name = sys.argv[1] if sys.argv[1:] else "cuda"
    if torch.device(name).type == "cuda" and not torch.cuda.is_available():
        print("torch sees no GPU here: nothing was measured.")
        return
    device = torch.device(name)
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else name
    print(f"torch {torch.__version__} on {card}")
    for num_devices in (50, 500):
        cpu_seconds, expected = round_on("cpu", num_devices, "float32")
        seconds, got = round_on(name, num_devices, "float32")
        for key, value in expected.items():
            torch.testing.assert_close(got[key], value, rtol=1e-3, atol=1e-5)
        print(
            f"{num_devices} devices: CPU {cpu_seconds:.3f} s, {name} {seconds:.3f} s, equal but for rounding"
        )
        try:
            require_precision("bfloat16", device)
        except ConfigError as error:
            print(f"bfloat16: {error}")
            continue
        rounded, _ = round_on(name, num_devices, "bfloat16")
        print(f"{num_devices} devices: in bfloat16 {rounded:.3f} s, {seconds / rounded:.2f} times as fast")


if __name__ == "__main__":
    main()
