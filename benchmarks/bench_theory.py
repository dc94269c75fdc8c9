"""What estimating the penalties costs, as a share of the training between two estimates.

    python benchmarks/bench_theory.py [PRESET] [KEY=VALUE ...]

Rounds of paper/nufm on Fashion-MNIST (50 training devices, the paper's CNN; FEDWAVE_DATA says where the data
are) and estimates at their models, in turn: processor seconds of both, the medians of seven. The goal is less
than 20 % if an estimate is made every five rounds, printed as met or missed: a busy machine moves it.
Asserted: an estimate made twice is the same to the last bit.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import closing
from dataclasses import replace

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.simulation.round import play_round

NUM_ROUNDS = 7
GOAL = 0.20


def main() -> None:
    """Time rounds and estimates in turn."""
    preset, settings = (sys.argv[1] if len(sys.argv) > 1 else "paper/nufm"), sys.argv[2:]
    experiment = load_experiment(preset, ["execution.workers=1", "selection.penalties=estimated", *settings])
    simulation = build_simulation(experiment)
    penalties = simulation.federation.penalties
    assert penalties is not None
    every = penalties.rule.every
    rounds: list[float] = []
    bare: list[float] = []
    estimates: list[float] = []
    state = simulation.initial_state()
    # Rounds with fixed penalties, so that nothing but the round itself is timed.
    federation = replace(simulation.federation, penalties=None)
    with closing(simulation.open_devices()) as devices:
        _, facts = play_round(federation, devices, state)  # warms up
        for k in range(NUM_ROUNDS):
            start = time.process_time()
            found = penalties.estimate(k, state.parameters, facts.reports)
            estimates.append(time.process_time() - start)
            start = time.process_time()
            state, facts = play_round(federation, devices, state)
            bare.append(time.process_time() - start)
            start = time.process_time()
            devices.evaluate(state.parameters)
            rounds.append(bare[-1] + time.process_time() - start)
        again = penalties.estimate(NUM_ROUNDS, state.parameters, facts.reports)
        assert again == penalties.estimate(NUM_ROUNDS, state.parameters, facts.reports) != found
    estimate, with_evaluation, alone = (statistics.median(own) for own in (estimates, rounds, bare))
    print(
        f"CPU seconds: an estimate {estimate:.3f}, a round {alone:.3f}, with evaluation {with_evaluation:.3f}"
    )
    for what, one in (("with evaluation after every round", with_evaluation), ("without evaluation", alone)):
        share = estimate / (every * one)
        verdict = "met" if share < GOAL else "missed"
        print(
            f"every {every} rounds, {what}: {100 * share:.1f} % of the training time (below 20 %: {verdict})"
        )


if __name__ == "__main__":
    main()
