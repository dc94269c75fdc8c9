"""What do the robust server steps cost where nobody lies? Paired runs over seeds on the small digits.

    python benchmarks/robust_steps.py [--seeds 5] [--rounds 50]

Every seed is run with each step from the same start, data and streams. Printed: the final held-out accuracy
and its difference to that of the mean, both as means with 95 % intervals (Student's t).
"""

from __future__ import annotations

import argparse
from contextlib import closing

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.intervals import interval

STEPS = ("mean", "clip-norm", "trimmed-mean", "median")  # with their default options


def final_accuracy(step: str, seed: int, num_rounds: int) -> float:
    """Return the held-out accuracy after the last round."""
    settings = [f"seed={seed}", f"num_rounds={num_rounds}", f"algorithm.server_step={step}"]
    simulation = build_simulation(load_experiment("digits/nufm", settings))
    state = simulation.initial_state()
    with closing(simulation.open_devices()) as devices:
        for _ in range(num_rounds):
            state, _ = simulation.run_round(state, devices)
        result = devices.evaluate(state.parameters)
    assert result is not None
    return result.mean_metric


def main() -> None:
    """Run all, print a row for each step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    plain: list[float] = []
    for step in STEPS:
        found = [100 * final_accuracy(step, seed, options.rounds) for seed in range(options.seeds)]
        plain = plain or found
        difference = interval([own - other for own, other in zip(found, plain, strict=True)])
        accuracy = interval(found)
        print(
            f"{step:13} {accuracy.mean:.1f} ± {accuracy.half_width:.1f} %, "
            f"to the mean {difference.mean:+.1f} ± {difference.half_width:.1f} points",
            flush=True,
        )
        assert accuracy.mean > 30  # it learns: a tenth is chance, before adaptation


if __name__ == "__main__":
    main()
