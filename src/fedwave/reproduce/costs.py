"""What runs cost on this machine: from finished ones, and where there are none from a round that is timed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from fedwave.experiments import Experiment, load_experiment
from fedwave.reproduce.result import Result
from fedwave.reproduce.trial import run_trial

# Seconds of a round of NUFM with one local step on one core of the machine that the docs were made on, to
# begin with. What is measured here takes their place.
FIRST_GUESS = {"fashion-mnist": 1.3, "cifar-10": 1.8, "cifar-100": 1.9, "tiny-imagenet": 7.0, "digits": 0.1}
# Shares of that round: the computing of all training devices, and the evaluation.
COMPUTING, EVALUATION = 0.75, 0.25
PLAIN = 0.65  # an ordinary gradient beside a meta-gradient
SHARED = 0.35  # what a run over a cell costs beside one alone, before any is measured
STARTING_S = 1.5  # to build a run


def relative_cost(experiment: Experiment) -> float:
    """Return about how many rounds of NUFM with one local step the run costs."""
    selection, algorithm = experiment.selection, experiment.algorithm
    is_everyone = selection.policy != "uniform" or selection.everyone_computes
    few = selection.num_selected if isinstance(selection.num_selected, int) else 20
    if experiment.cell is not None and selection.num_selected == "auto":
        few = experiment.cell.num_blocks
    share = 1.0 if is_everyone else min(1.0, few / 50)
    step = {"plain": PLAIN, "first-order": 0.7, "hessian-free": 2.0}.get(algorithm.gradient, 1.0)
    computing = COMPUTING * share * step * algorithm.num_local_steps
    return experiment.num_rounds * (computing + EVALUATION / experiment.evaluation.every)


@dataclass
class Costs:
    """Estimates seconds of runs; every finished one makes it better."""

    seconds_of_a_round: dict[str, list[float]] = field(default_factory=dict)  # by dataset
    shared: list[float] = field(default_factory=list)  # measured share of what a run over a cell would cost

    def learn(self, experiment: Experiment, result: Result) -> None:
        """Take a finished run into account."""
        alone = relative_cost(experiment)
        known = self.seconds_of_a_round.setdefault(experiment.data.dataset, [])
        if result.num_remembered == 0:
            known.append(max(result.seconds - STARTING_S, 0.01) / alone)
        if experiment.cell is not None and known:
            self.shared.append(min(result.seconds / (alone * statistics.median(known)), 1.5))

    def estimate_s(self, experiment: Experiment) -> float:
        """Return the seconds that a run takes on one core, as far as is known."""
        dataset = experiment.data.dataset
        known = self.seconds_of_a_round.get(dataset)
        one = statistics.median(known) if known else FIRST_GUESS.get(dataset, 1.0)
        alone = STARTING_S + one * relative_cost(experiment)
        if experiment.cell is None:
            return alone
        return alone * (statistics.mean(self.shared) if self.shared else SHARED)

    def measure(self, family: str, datasets: Iterable[str]) -> None:
        """Time a round of NUFM on every dataset of which nothing is known."""
        for dataset in datasets:
            if dataset not in self.seconds_of_a_round:
                settings = [f"data.dataset={dataset}", "num_rounds=2", "execution.workers=1"]
                result = run_trial(load_experiment(f"{family}/nufm", settings))
                self.seconds_of_a_round[dataset] = [result.figures["cpu_time_s"]]
