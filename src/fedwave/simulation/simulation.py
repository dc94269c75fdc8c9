"""Federated training, round by round: the loop of Alg. 1 with its parts put in from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedwave.errors import DivergenceError
from fedwave.learning import Batch, LocalUpdate, Model, Parameters, average, evaluate, local_update
from fedwave.learning.quantise import received_model
from fedwave.rng import Stream, generator
from fedwave.selection import contribution, turning_point
from fedwave.simulation.device_pool import DevicePool
from fedwave.simulation.ledger import Ledger, RoundCosts
from fedwave.simulation.model_store import ModelStore
from fedwave.simulation.records import HeldOut, RoundRecord
from fedwave.simulation.scheduler import Reports, Schedule, Scheduler
from fedwave.simulation.workers import Workers
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class State:
    """All that the next round needs. Every random draw is a function of the seed and the round."""

    next_round: int
    parameters: Parameters
    ledger: Ledger | None = None  # None without a radio cell


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a device updates the model and scores its update."""

    gradient: str  # a meta-gradient method, or "plain" for FedAvg
    inner_lr: float
    meta_lr: float
    num_local_steps: int
    similarity_penalty: float
    variance_penalty: float
    query_batch_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Testing:
    """How the global model is tested on held-out devices."""

    every: int
    num_steps: int
    inner_lr: float


@dataclass(frozen=True, eq=False)
class _ComputedChunk:
    positions: IntArray
    update: LocalUpdate
    gradient_norms: FloatArray
    loss: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """A federation, a model and the rules of training: everything that a round depends on but its state."""

    model: Model
    train: DevicePool
    heldout: DevicePool
    scheduler: Scheduler
    training: Training
    testing: Testing
    num_rounds: int
    seed: int
    chunk_samples: int
    bits_per_parameter: int = 32  # of an upload
    warnings: tuple[str, ...] = ()  # what looks wrong in the settings, for the user to read

    def initial_state(self) -> State:
        """Return theta^0, drawn from the seed."""
        parameters = self.model.initial_parameters(generator(self.seed, Stream.MODEL_INIT))
        device = self.train.torch_device
        # Sorted by name, as a checkpoint gives them back: the order of a sum decides its last bits.
        return State(0, {name: parameters[name].to(device) for name in sorted(parameters)})

    def run_round(self, state: State, workers: Workers) -> tuple[State, RoundRecord]:
        """Return the state after one round of Alg. 1, and what happened in it."""
        start = time.perf_counter()
        k = state.next_round
        computing = self.scheduler.computing(k)
        norms = np.full((len(self.train), self.training.num_local_steps), np.nan)
        losses = np.full(len(self.train), np.nan)
        scores = np.full(len(self.train), np.nan)
        store = ModelStore(self.scheduler.max_models)
        for chunk in self._updates(state, computing, workers):  # Alg. 1, lines 3-10
            at = chunk.positions
            norms[at], losses[at] = chunk.gradient_norms, chunk.loss
            scores[at] = contribution(
                norms[at],
                self.train.num_samples[at],
                similarity_penalty=self.training.similarity_penalty,
                variance_penalty=self.training.variance_penalty,
            )
            store.offer(at, scores[at], chunk.update.parameters)
        schedule = self.scheduler.schedule(k, Reports(computing, scores[computing]))  # Alg. 1, line 12
        parameters = self._aggregate(state, schedule, store, workers)  # Alg. 1, line 13
        before = state.ledger or Ledger.empty(len(self.train))
        ledger = None if schedule.costs is None else before.after(schedule.costs)
        after = State(k + 1, parameters, ledger)
        is_tested = (k + 1) % self.testing.every == 0 or k + 1 == self.num_rounds
        tested = self.test(parameters, workers) if is_tested and len(self.heldout) else None
        if tested is not None and not np.isfinite(tested.loss).all():
            first = int(np.argmin(np.isfinite(tested.loss)))
            raise _divergence(k, f"held-out device {tested.device_ids[first]}", str(tested.loss[first]))
        wall_time_s = time.perf_counter() - start
        return after, self._record(k, norms, losses, scores, schedule, ledger, tested, wall_time_s)

    def test(self, parameters: Parameters, workers: Workers) -> HeldOut:
        """Return the held-out devices' results with the given global model."""
        pool = self.heldout
        everyone = np.arange(len(pool), dtype=np.int64)
        loss, accuracy = np.zeros(len(pool)), np.zeros(len(pool))

        def test_chunk(positions: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
            outcome = evaluate(
                self.model,
                parameters,
                pool.support(positions),
                pool.query(positions),
                num_steps=self.testing.num_steps,
                inner_lr=self.testing.inner_lr,
            )
            return positions, _float64(outcome.loss), _float64(outcome.accuracy)

        for at, own_loss, own_accuracy in workers.map(
            test_chunk, pool.chunks(everyone, max_samples=self.chunk_samples)
        ):
            loss[at], accuracy[at] = own_loss, own_accuracy
        num_query = np.array([len(device.query) for device in pool.devices], dtype=np.int64)
        return HeldOut(pool.device_ids, num_query, loss, accuracy)

    def _updates(self, state: State, positions: IntArray, workers: Workers) -> Iterator[_ComputedChunk]:
        """Yield the local updates of the given devices, chunk by chunk, in a fixed order."""
        chunks = self.train.chunks(positions, max_samples=self.chunk_samples)
        for chunk in workers.map(partial(self._update_chunk, state), chunks):
            bad = np.flatnonzero(~np.isfinite(chunk.loss) | ~np.isfinite(chunk.gradient_norms).all(1))
            if bad.size:
                device = int(self.train.device_ids[chunk.positions[bad[0]]])
                norms = f" with gradient norms {chunk.gradient_norms[bad[0]].tolist()}"
                raise _divergence(state.next_round, f"device {device}", f"{chunk.loss[bad[0]]}{norms}")
            yield chunk

    def _update_chunk(self, state: State, positions: IntArray) -> _ComputedChunk:
        rules = self.training
        is_plain = rules.gradient == "plain"
        update = local_update(
            self.model,
            state.parameters,
            None if is_plain else self.train.support(positions),
            self._local_batches(state.next_round, positions),
            inner_lr=rules.inner_lr,
            meta_lr=rules.meta_lr,
            method="first-order" if is_plain else rules.gradient,
        )
        return _ComputedChunk(positions, update, _float64(update.gradient_norms), _float64(update.loss))

    def _local_batches(self, round_index: int, positions: IntArray) -> list[Batch]:
        """Return the batch D' of each local step; FedAvg takes support and query together."""
        rules = self.training
        is_plain = rules.gradient == "plain"
        if rules.query_batch_size is None:
            whole = self.train.everything(positions) if is_plain else self.train.query(positions)
            return [whole] * rules.num_local_steps
        ids = self.train.device_ids[positions].tolist()
        batches = []
        for step in range(rules.num_local_steps):
            rngs = [generator(self.seed, Stream.LOCAL_BATCHES, round_index, i, step) for i in ids]
            batches.append(self.train.drawn(positions, rules.query_batch_size, rngs, with_support=is_plain))
        return batches

    def _aggregate(self, state: State, schedule: Schedule, store: ModelStore, workers: Workers) -> Parameters:
        """Return the mean of the models that arrive, Eq. (6); the old model if none does."""
        if len(schedule.received) == 0:
            return state.parameters
        forgotten = np.array(store.missing(schedule.received.tolist()), dtype=np.int64)
        recomputed = ModelStore(len(forgotten))
        for chunk in self._updates(state, forgotten, workers):  # chosen in spite of a small contribution
            recomputed.offer(chunk.positions, np.zeros(len(chunk.positions)), chunk.update.parameters)
        again = set(forgotten.tolist())
        models = (
            next((recomputed if position in again else store).models([position]))
            for position in schedule.received.tolist()
        )
        return average(received_model(state.parameters, own, self.bits_per_parameter) for own in models)

    def _record(
        self,
        round_index: int,
        norms: FloatArray,
        losses: FloatArray,
        scores: FloatArray,
        schedule: Schedule,
        ledger: Ledger | None,
        tested: HeldOut | None,
        wall_time_s: float,
    ) -> RoundRecord:
        ids = self.train.device_ids
        computed = np.isfinite(losses)
        first = norms[computed, 0]
        below = first < turning_point(
            self.train.num_samples[computed],
            similarity_penalty=self.training.similarity_penalty,
            variance_penalty=self.training.variance_penalty,
        )
        columns: dict[str, Any] = {
            "train_loss": float(losses[computed].mean()),
            "heldout_loss": tested.mean_loss if tested else None,
            "heldout_accuracy": tested.mean_accuracy if tested else None,
            "heldout_accuracy_pooled": tested.pooled_accuracy if tested else None,
            "num_computed": int(computed.sum()),
            "num_selected": len(schedule.selected),
            "num_received": len(schedule.received),
            "selected_devices": " ".join(map(str, ids[schedule.selected].tolist())),
            "gradient_norm_min": float(first.min()),
            "gradient_norm_mean": float(first.mean()),
            "gradient_norm_max": float(first.max()),
            "share_below_turning_point": float(below.mean()),
            **schedule.round_columns,
            **_account_columns(schedule.costs, ledger),
            "wall_time_s": wall_time_s,
        }
        is_selected = np.zeros(len(ids), dtype=np.int64)
        is_selected[schedule.selected] = 1
        device_columns = {
            "train_loss": losses,
            **{f"gradient_norm_{step}": norms[:, step] for step in range(norms.shape[1])},
            "contribution": scores,
            "is_selected": is_selected,
            **schedule.device_columns,
            **_device_account_columns(schedule.costs, ledger),
        }
        return RoundRecord(round_index, columns, ids, device_columns, tested)


def _divergence(round_index: int, where: str, got: str) -> DivergenceError:
    return DivergenceError(
        f"the loss is not finite in round {round_index} on {where}, got {got}. "
        "Lower algorithm.inner_lr or algorithm.meta_lr; the last good checkpoint is kept."
    )


def _account_columns(costs: RoundCosts | None, ledger: Ledger | None) -> dict[str, Any]:
    if costs is None or ledger is None:
        return {}
    return {
        **costs.round_columns(),
        "cumulative_energy_j": ledger.energy_j,
        "cumulative_delay_s": ledger.elapsed_s,
    }


def _device_account_columns(costs: RoundCosts | None, ledger: Ledger | None) -> dict[str, Any]:
    if costs is None or ledger is None:
        return {}
    return {**costs.device_columns(), "cumulative_energy_j": ledger.device_energy_j}


def _float64(tensor: Any) -> FloatArray:
    values: FloatArray = tensor.detach().cpu().numpy().astype(np.float64)
    return values
