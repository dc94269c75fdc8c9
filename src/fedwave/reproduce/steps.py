"""What NUFM does, told apart from how far it steps: arms that choose otherwise, or step as far as another.

In every round all training devices compute, an arm chooses some, and the global model moves to the mean of
theirs: by its own length, or rescaled to the length of the leader's step in the same round. How a model
serves the training devices is what they report of it in the next round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedwave.devices.base import Devices, HeldOutResult
from fedwave.devices.divergence import require_finite_evaluation, require_finite_model
from fedwave.errors import DivergenceError, RunError
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation
from fedwave.experiments.schema import PolicyPart
from fedwave.learning import Parameters
from fedwave.learning.parameters import distance
from fedwave.reproduce.single_run import CURVES, SeenRounds, dataset_of, made_with
from fedwave.rng import Stream, generator
from fedwave.runs.kept_runs import KeptRun, KeptRuns
from fedwave.runs.provenance import processor, run_key
from fedwave.server import Reports
from fedwave.simulation.round import close_round, decide_round, take_models
from fedwave.simulation.simulation import Simulation
from fedwave.units import FloatArray, IntArray

NUM_SKETCHED = 64  # numbers that herding knows of each gradient
STEP_CURVES = (*CURVES, "gain_correlation", "mean_cosine")


@dataclass(frozen=True, eq=False)
class Situation:
    """What an arm chooses by."""

    planned: IntArray  # whom the policy of the settings chooses
    changes: Tensor  # theta - theta_i of every device, flat: its gradients times beta
    products: FloatArray  # of every two of them
    last_step: Tensor | None  # the global model's last change, likewise; None in the first round
    num_selected: int
    rng: np.random.Generator  # of the round's sketches


Choose = Callable[[Situation], IntArray]


def as_planned(now: Situation) -> IntArray:
    """Return the policy's choice."""
    return now.planned


def everybody(now: Situation) -> IntArray:
    """Return all devices."""
    return np.arange(len(now.changes), dtype=np.int64)


def aligned(now: Situation) -> IntArray:
    """Return those with the largest first-order gain, g_i times the mean gradient of all."""
    return _largest(now.products.mean(1), now.num_selected)


def along_last_step(now: Situation) -> IntArray:
    """Return those with the largest inner product with the last global step; first the policy's choice."""
    if now.last_step is None:
        return now.planned
    return _largest((now.changes @ now.last_step).numpy().astype(np.float64), now.num_selected)


def herding(now: Situation) -> IntArray:
    """Return a set whose mean gradient is near everybody's: one by one, by sketches of the gradients."""
    sketches = sketch(now.changes, rng=now.rng)
    aim, total = sketches.mean(0), np.zeros(sketches.shape[1])
    chosen: list[int] = []
    for count in range(1, now.num_selected + 1):
        gaps = np.linalg.norm((total + sketches) / count - aim, axis=1)
        gaps[chosen] = np.inf
        chosen.append(int(np.argmin(gaps)))
        total += sketches[chosen[-1]]
    return np.sort(np.array(chosen, dtype=np.int64))


def sketch(rows: Tensor, *, rng: np.random.Generator) -> FloatArray:
    """Return 64 numbers for each row, whose inner products are about those of the rows.

    Every coordinate goes with a random sign into one random place (a count sketch).
    """
    length = rows.shape[1]
    places = torch.from_numpy(rng.integers(NUM_SKETCHED, size=length))
    signs = torch.from_numpy(rng.choice(np.array([-1.0, 1.0], dtype=np.float32), size=length))
    sketched = torch.zeros(len(rows), NUM_SKETCHED).index_add_(1, places, rows * signs)
    return sketched.numpy().astype(np.float64)


@dataclass(frozen=True)
class Arm:
    """Who is chosen, and whose norms the updates get: "" their own."""

    choose: Choose
    leader: str = ""
    policy: str = "uniform"


NUFM, UNIFORM = "NUFM", "uniform"
# Leaders come before those that follow them. Uniform drawing is Per-FedAvg's, with the same draws.
ARMS: dict[str, Arm] = {
    NUFM: Arm(as_planned, policy="top-contribution"),
    UNIFORM: Arm(as_planned),
    "uniform at NUFM's norms": Arm(as_planned, NUFM),
    "NUFM at uniform's norms": Arm(as_planned, UNIFORM, policy="top-contribution"),
    "last step at NUFM's norms": Arm(along_last_step, NUFM),
    "aligned at NUFM's norms": Arm(aligned, NUFM),
    "herding at NUFM's norms": Arm(herding, NUFM),
    "everybody at NUFM's norms": Arm(everybody, NUFM),
    "herding": Arm(herding),
    "everybody": Arm(everybody),
}


def arm_key(experiment: Experiment, arm: str) -> str:
    """Return the key of an arm's run, which is known beforehand; all arms have the same settings."""
    return run_key(experiment, "steps", arm)


def leader_norms(experiment: Experiment, arm: str, kept: KeptRuns) -> list[float] | None:
    """Return how far the arm's leader stepped in each round; None if the arm has none."""
    leader = ARMS[arm].leader
    if not leader:
        return None
    run = kept.find(arm_key(experiment, leader), curves=("update_norm",), processor=processor())
    if run is None:
        raise RunError(f'"{arm}" needs the finished run of {leader}, got none. Run the item from its start.')
    return list(run.curves["update_norm"])


def arm_run(
    experiment: Experiment,
    arm: str,
    *,
    norms: Sequence[float] | None = None,
    command: str = "",
    data_dir: Path | None = None,
) -> KeptRun:
    """Return what is kept of an arm's run; ``norms`` of each round are those of its leader, if it has one."""
    start = time.perf_counter()
    simulation = build_simulation(
        _with_policy(experiment, ARMS[arm].policy), dataset=dataset_of(experiment, data_dir)
    )
    seen = SeenRounds(experiment, len(simulation.train))
    last: _Played | None = None  # it is seen when the training devices have said how it serves them
    with closing(simulation.open_devices()) as devices:
        with suppress(DivergenceError):
            for played in _rounds(simulation, devices, ARMS[arm], norms):
                if last is not None:
                    last.tell(seen, as_evaluated(simulation, played.reports))
                last = played
        training = None if last is None else devices.evaluate(last.parameters, on_training=True)
        if last is not None and training is not None and np.isfinite(training.loss).all():
            last.tell(seen, training)
    return KeptRun(
        key=arm_key(experiment, arm),
        command=command,
        made_with=made_with(),
        num_rounds=experiment.num_rounds,
        seconds=time.perf_counter() - start,
        num_remembered=0,
        figures=seen.figures(is_timed=True),
        curves=seen.curves(STEP_CURVES),
    )


def _with_policy(experiment: Experiment, policy: str) -> Experiment:
    selection = experiment.selection.model_copy(
        update={"policy": PolicyPart(kind=policy), "everyone_computes": True}
    )
    return experiment.model_copy(update={"selection": selection})


@dataclass(frozen=True, eq=False)
class _Played:
    """A round of an arm: what the devices reported before it, and the model after it."""

    reports: Reports
    parameters: Parameters
    chosen: IntArray
    heldout: HeldOutResult
    row: Mapping[str, float]

    def tell(self, seen: SeenRounds, training: HeldOutResult) -> None:
        """Let the round be seen, with how its model serves the training devices."""
        row = {
            "training_loss": training.mean_loss,
            "training_loss_weighted": training.pooled_loss,
            "training_accuracy": training.mean_metric,
        }
        seen.add({**self.row, **row}, self.chosen, self.heldout)


def _rounds(
    simulation: Simulation, devices: Devices, arm: Arm, norms: Sequence[float] | None
) -> Iterator[_Played]:
    """Yield an arm's rounds; ``norms`` are the lengths of its leader's steps, if it has one."""
    federation, everyone = simulation.federation, np.arange(len(simulation.train), dtype=np.int64)
    state, last_step = simulation.initial_state(), None
    for k in range(simulation.num_rounds):
        start, before = time.process_time(), state.parameters
        reports = devices.report(k, before, everyone, max_models=len(everyone))
        models = list(devices.collect(everyone))
        facts = decide_round(federation, state, everyone, reports, None)
        changes = torch.stack([flat_change(before, model) for model in models])
        now = Situation(
            planned=facts.plan.selected,
            changes=changes,
            products=(changes @ changes.T).numpy().astype(np.float64),
            last_step=last_step,
            num_selected=len(facts.plan.selected),
            rng=generator(simulation.local.seed, Stream.SKETCHES, k),
        )
        chosen = arm.choose(now)
        state = take_models(federation, state, [models[i] for i in chosen], None)
        if norms is not None:
            state = replace(state, parameters=rescaled(before, state.parameters, norms[k]))
        require_finite_model(k, state.parameters)
        heldout = devices.evaluate(state.parameters)
        assert heldout is not None  # every item holds devices out
        require_finite_evaluation(k, heldout)
        row = {
            "heldout_loss": heldout.mean_loss,
            "heldout_accuracy": heldout.mean_metric,
            "heldout_accuracy_pooled": heldout.pooled_metric,
            **alikeness(now.products),
            "train_loss": float(reports.loss.mean()),
            "gradient_norm_mean": float(reports.gradient_norms[:, 0].mean()),
            "num_received": len(chosen),
            "update_norm": distance(before, state.parameters),
            "cpu_time_s": time.process_time() - start,
        }
        yield _Played(reports, state.parameters, chosen, heldout, row)
        state, last_step = close_round(federation, state, facts), flat_change(before, state.parameters)


def as_evaluated(simulation: Simulation, reports: Reports) -> HeldOutResult:
    """Return how the model that all training devices report on serves them: an evaluation of it is spared.

    What a device descends is its query loss after adaptation, Eq. (1). How often it is right it does not say.
    """
    pool, unknown = simulation.train, np.full(len(reports.loss), math.nan)
    return HeldOutResult(pool.device_ids, pool.num_query, reports.loss, unknown, simulation.task.metric)


def flat_change(before: Parameters, after: Parameters) -> Tensor:
    """Return how far a model went down, as one row."""
    return torch.cat([(before[name] - after[name]).flatten() for name in sorted(before)])


def rescaled(before: Parameters, after: Parameters, norm: float) -> Parameters:
    """Return the model in the direction of ``after`` whose distance is ``norm``."""
    if not math.isfinite(norm):
        raise DivergenceError(f"the leader's step is not finite, got {norm}. It diverged.")
    length = distance(before, after)
    factor = norm / length if length > 0.0 else 0.0
    return {
        name: (value.double() + factor * (after[name].double() - value.double())).to(value.dtype)
        for name, value in before.items()
    }


def alikeness(products: FloatArray) -> dict[str, float]:
    """Return how gradients hang together: of their norms and gains the correlation, and the mean cosine.

    The gain of a device is the inner product of its gradient with the mean of all.
    """
    norms = np.sqrt(np.diag(products))
    gains = products.mean(1)
    if np.ptp(norms) == 0.0 or np.ptp(gains) == 0.0 or norms.min() == 0.0:
        return {"gain_correlation": math.nan, "mean_cosine": math.nan}
    cosines = products / np.outer(norms, norms)
    pairs = ~np.eye(len(norms), dtype=bool)
    return {
        "gain_correlation": float(np.corrcoef(norms, gains)[0, 1]),
        "mean_cosine": float(cosines[pairs].mean()),
    }


def _largest(scores: FloatArray, count: int) -> IntArray:
    return np.sort(np.argsort(-scores, kind="stable")[:count]).astype(np.int64)
