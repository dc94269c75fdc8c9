"""Does memory grow with the number of selected devices, not of all devices?

    python benchmarks/bench_memory.py [DEVICES ...]

One NUFM round of the paper's CNN on synthetic data, each in a process of its own, at 100, 1,000 and 10,000
training devices. Prints the peak resident memory and asserts that it stays under 4 GB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from contextlib import closing

LIMIT_GB = 4.0
SAMPLES_PER_DEVICE = 22  # the paper's partition takes 14 on average; the rest is slack for the random classes


def one_round(num_devices: int) -> None:
    from fedwave.experiments import load_experiment
    from fedwave.experiments.build import build_simulation

    experiment = load_experiment(
        "scale/synthetic-10k",
        [
            f"partition.num_devices={num_devices}",
            f"data.dataset.num_samples={max(4000, SAMPLES_PER_DEVICE * num_devices)}",
        ],
    )
    simulation = build_simulation(experiment)
    start = time.perf_counter()
    with closing(simulation.open_devices()) as devices:
        state, record = simulation.run_round(simulation.initial_state(), devices)
    seconds = time.perf_counter() - start
    assert state.next_round == 1
    assert record.columns["num_computed"] == num_devices
    assert record.columns["num_received"] == 20
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{num_devices:>7,} devices  peak memory {peak_gb:.2f} GB  one round {seconds:.1f} s", flush=True)
    assert peak_gb < LIMIT_GB, f"peak memory {peak_gb:.2f} GB, must stay under {LIMIT_GB} GB"


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one_round(int(sys.argv[2]))
        return
    for num_devices in [int(text) for text in sys.argv[1:]] or [100, 1_000, 10_000]:
        subprocess.run([sys.executable, __file__, "--one", str(num_devices)], check=True)


if __name__ == "__main__":
    main()
