"""What the theory says of a run at some of its models: constants, penalties, promised and seen falls of F."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from fedwave.devices.base import Devices
from fedwave.devices.work import LocalWork, as_float64
from fedwave.errors import RunError
from fedwave.experiments.build import build_simulation, load_experiment_dataset, load_split
from fedwave.experiments.schema import GIVEN, Experiment
from fedwave.learning import Parameters
from fedwave.learning.parameters import stack_copies
from fedwave.rng import Stream, generator
from fedwave.runs.checks import require_fitting_state
from fedwave.runs.folder import ENVIRONMENT, RunFolder
from fedwave.runs.provenance import identity, require_same_run
from fedwave.runs.theory_rows import Snapshot
from fedwave.selection import Penalties
from fedwave.simulation.facts import RoundFacts
from fedwave.simulation.round import play_round
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State
from fedwave.theory import (
    Constants,
    corollary_1_bound,
    largest_meta_lr,
    meta_dissimilarity,
    meta_smoothness,
    similarity_penalty,
    theorem_1_bound,
    variance_penalty,
)
from fedwave.theory.curvature import as_rows
from fedwave.theory.estimates import Effort, LocalEstimates, estimate_constants
from fedwave.theory.learner import Learner
from fedwave.units import FloatArray

MAX_PAIRWISE = 200  # devices whose meta-gradients are compared with each other


def open_run(path: Path, *, data_dir: Path | None = None) -> tuple[Experiment, Simulation, list[State]]:
    """Return a run's settings, its simulation, its first state and the one that it came to."""
    folder = RunFolder.open(path)
    experiment = folder.experiment()
    data = load_experiment_dataset(experiment, data_dir=data_dir)
    own = load_split(experiment, data) if experiment.partition.kind == GIVEN else None
    require_same_run(folder.path, folder.read_json(ENVIRONMENT), experiment, data, own)
    simulation = build_simulation(experiment, dataset=data, split=own)
    state = folder.load_checkpoint(identity(experiment, data, own))
    if state is None:
        raise RunError(f"{path} has no checkpoint yet. Let the run come to its first round.")
    require_fitting_state(path, state, simulation)
    last = state.to(simulation.train.torch_device)
    return experiment, simulation, [simulation.initial_state(), *([last] if last.next_round else [])]


def played_states(simulation: Simulation, devices: Devices, *, last: int, every: int) -> Iterator[State]:
    """Yield the states before rounds 0, ``every``, … up to ``last``, as the run comes to them."""
    state = simulation.initial_state()
    while True:
        if state.next_round % every == 0:
            yield state
        if state.next_round >= last:
            return
        state, _ = play_round(simulation.federation, devices, state)


def take_snapshots(
    experiment: Experiment, simulation: Simulation, states: Sequence[State] | None, *, effort: Effort,
    last: int = 0, every: int = 1,
) -> Iterator[Snapshot]:  # fmt: skip
    """Yield a snapshot at each of the states, or at those that the run comes to, see ``played_states``."""
    algorithm = experiment.algorithm
    learner = Learner.of(simulation.local, inner_lr=algorithm.inner_lr, meta_lr=algorithm.meta_lr)
    with closing(simulation.open_devices()) as devices:
        for state in states or played_states(simulation, devices, last=last, every=every):
            yield take_snapshot(simulation, devices, state, learner=learner, effort=effort)


def take_snapshot(
    simulation: Simulation, devices: Devices, state: State, *, learner: Learner, effort: Effort
) -> Snapshot:
    """Return what the theory says of a model, and what becomes of it in the round that follows."""
    local, k, theta = simulation.local, state.next_round, state.parameters
    estimates = estimate_constants(
        local.model, local.task, local.pool, theta, step_length=learner.meta_lr, effort=effort,
        rng=generator(local.seed, Stream.THEORY, k), chunk_samples=local.chunk_samples,
    )  # fmt: skip
    gradients, losses = meta_gradients(local, k, theta, meta_lr=learner.meta_lr)
    after, facts = play_round(simulation.federation, devices, state)
    learner = replace(learner, num_local_steps=facts.reports.gradient_norms.shape[1])  # of this round
    _, later = meta_gradients(local, k, after.parameters, meta_lr=learner.meta_lr)
    own = local.similarity_penalty, local.variance_penalty
    used = Penalties(*own) if facts.penalties is None else facts.penalties.used
    return Snapshot(
        round=k,
        **_of_constants(estimates, learner),
        **_of_penalties(estimates.constants(), learner, used, gradients, local),
        **_of_gradients(gradients),
        **_promises(estimates.constants(), learner, used, facts),
        seen=float(losses.mean() - later.mean()),
    )


def meta_gradients(
    local: LocalWork, round_index: int, parameters: Parameters, *, meta_lr: float
) -> tuple[FloatArray, FloatArray]:
    """Return every device's gradient at the global model, (n, numbers), and its loss: F_i of a meta-learner.

    Both are of its whole sets, also where it draws batches. A local step of plain descent goes by beta times
    the gradient, so that the step says what it was.
    """
    one_step = replace(local, num_local_steps=1, query_batch_size=None)
    found: dict[int, tuple[FloatArray, float]] = {}
    for chunk in local.chunks(np.arange(len(local.pool), dtype=np.int64)):
        done = one_step.compute(round_index, parameters, chunk)
        moved = as_rows(stack_copies(parameters, len(chunk))).double() - as_rows(done.parameters).double()
        rows = as_float64(moved) / meta_lr
        found |= {int(at): (rows[row], float(done.loss[row])) for row, at in enumerate(chunk)}
    ordered = [found[at] for at in range(len(local.pool))]
    return np.array([row for row, _ in ordered]), np.array([loss for _, loss in ordered])


def _of_constants(estimates: LocalEstimates, learner: Learner) -> dict[str, float]:
    constants, medians = estimates.constants(), estimates.medians()
    limit = largest_meta_lr(constants, inner_lr=learner.inner_lr, num_local_steps=learner.num_local_steps)
    return {
        **asdict(constants),
        **{f"{name}_median": value for name, value in asdict(medians).items()},
        "num_gradients": float(estimates.num_gradients),
        "num_products": float(estimates.num_products),
        "seconds": estimates.seconds,
        "meta_smoothness": meta_smoothness(constants, inner_lr=learner.inner_lr),
        "meta_dissimilarity": meta_dissimilarity(constants, inner_lr=learner.inner_lr),
        "rate_over_limit": learner.meta_lr / limit,
    }


def _of_penalties(
    constants: Constants, learner: Learner, used: Penalties, gradients: FloatArray, local: LocalWork
) -> dict[str, float]:
    noise = learner.meta_noise(constants)
    options = {"inner_lr": learner.inner_lr, "meta_lr": learner.meta_lr}
    printed, corrected = (
        similarity_penalty(
            constants, noise, num_local_steps=learner.num_local_steps, as_printed=as_printed, **options
        )
        for as_printed in (True, False)
    )
    variance = variance_penalty(constants, inner_lr=learner.inner_lr)
    norms, samples = np.linalg.norm(gradients, axis=1), local.pool.num_samples

    def below(penalties: Penalties) -> float:
        return float(np.mean(norms < penalties.turning_point(samples)))

    return {
        "similarity_printed": printed,
        "similarity_corrected": corrected,
        "similarity_used": used.similarity,
        "variance": variance,
        "variance_used": used.variance,
        "below_printed": below(Penalties(printed, variance)),
        "below_corrected": below(Penalties(corrected, variance)),
        "below_used": below(used),
    }


def _of_gradients(gradients: FloatArray) -> dict[str, float]:
    """Return what needs no constants: lengths, distances, and how lengths go with first-order gains."""
    norms, mean = np.linalg.norm(gradients, axis=1), gradients.mean(0)
    gains = gradients @ mean
    away = np.linalg.norm(gradients - mean, axis=1)
    some = gradients[np.linspace(0, len(gradients) - 1, min(len(gradients), MAX_PAIRWISE)).astype(np.int64)]
    squares = (some**2).sum(1)
    apart = squares[:, None] + squares - 2.0 * some @ some.T
    is_flat = norms.std() == 0.0 or gains.std() == 0.0
    return {
        "norm_min": float(norms.min()),
        "norm_median": float(np.median(norms)),
        "norm_max": float(norms.max()),
        "global_norm": float(np.linalg.norm(mean)),
        "largest_distance": math.sqrt(max(float(apart.max()), 0.0)),
        "within_30_degrees": float(np.mean(norms > 2.0 * away)),
        "correlation": math.nan if is_flat else float(np.corrcoef(norms, gains)[0, 1]),
    }


def _promises(constants: Constants, learner: Learner, used: Penalties, facts: RoundFacts) -> dict[str, float]:
    """Return the falls of F that Theorem 1 and Corollary 1 promise of the devices whose uploads arrived."""
    received = facts.outcome.received
    reports = facts.reports.of(received)
    promised = dict.fromkeys(("promised_printed", "promised_corrected", "promised_used"), math.nan)
    if len(reports) == 0:
        return promised
    promised["promised_used"] = corollary_1_bound(
        reports.gradient_norms, reports.num_samples, similarity_penalty=used.similarity,
        variance_penalty=used.variance, meta_lr=learner.meta_lr,
    )  # fmt: skip
    if learner.num_local_steps == 1:
        noise = np.sqrt(learner.meta_variances(constants))[received]
        for name in ("printed", "corrected"):
            promised[f"promised_{name}"] = theorem_1_bound(
                reports.gradient_norms[:, 0], noise, constants=constants, inner_lr=learner.inner_lr,
                meta_lr=learner.meta_lr, as_printed=name == "printed",
            )  # fmt: skip
    return promised
