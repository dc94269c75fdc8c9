"""A federated training run, round by round: everything that a round depends on but its state."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from fedwave.devices.base import Devices
from fedwave.devices.divergence import require_finite_evaluation, require_finite_model
from fedwave.devices.pool import DevicePool
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.learning import Model, Parameters, Task
from fedwave.rng import Stream, generator
from fedwave.selection import turning_point
from fedwave.server.local_steps import next_steps
from fedwave.simulation.columns import record_round
from fedwave.simulation.facts import RunFrame
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.round import Federation, play_round
from fedwave.simulation.state import State
from fedwave.simulation.stop import NEVER, StopRule


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """A federation, its devices, and when the model is evaluated."""

    federation: Federation
    local: LocalWork
    evaluation: EvaluationWork
    executor: Callable[[LocalWork, EvaluationWork], Devices]  # starts the threads or joins the cluster
    num_rounds: int
    evaluate_every: int
    evaluate_training: bool = False  # the training devices too
    stop: StopRule = NEVER  # what ends the run before its last round
    warm_start: Callable[[], Parameters] | None = None  # reads theta^0; None: it is drawn from the seed
    model_seed: int | None = None  # of the random first model; None: the run's own
    warnings: tuple[str, ...] = ()  # what looks wrong in the settings, for the user to read

    @property
    def model(self) -> Model:
        """What is trained."""
        return self.local.model

    @property
    def task(self) -> Task:
        """What it is trained for."""
        return self.local.task

    @property
    def train(self) -> DevicePool:
        """The devices that train."""
        return self.local.pool

    @property
    def heldout(self) -> DevicePool:
        """The devices that the model is evaluated on."""
        return self.evaluation.pool

    def open_devices(self) -> Devices:
        """Start the executor; the caller closes it."""
        return self.executor(self.local, self.evaluation)

    def initial_state(self) -> State:
        """Return theta^0, given by a warm start or drawn from the seed, and every part's first state."""
        return self.fresh_state() if self.warm_start is None else self._first_state(self.warm_start())

    def fresh_state(self) -> State:
        """Return the first state of a run that starts from a random model."""
        seed = self.local.seed if self.model_seed is None else self.model_seed
        return self._first_state(self.model.initial_parameters(generator(seed, Stream.MODEL_INIT)))

    def _first_state(self, parameters: Parameters) -> State:
        # Sorted by name, as a checkpoint gives them back: the order of a sum decides its last bits.
        parameters = {name: parameters[name] for name in sorted(parameters)}
        steps = self.federation.local_steps
        return State(
            0,
            parameters,
            self.federation.server_step.initial_state(parameters),
            self.federation.planner.initial_state(),
            charge=None if self.federation.power is None else self.federation.power.initial(),
            penalties=None if self.federation.penalties is None else self.federation.penalties.initial(),
            local_steps={} if steps is None else steps.initial_state(),
        ).to(self.train.torch_device)

    def run_round(self, state: State, devices: Devices) -> tuple[State, RoundRecord]:
        """Return the state after one round of Alg. 1, evaluated where it is due, and the record of it."""
        start = time.perf_counter()
        after, facts = play_round(self.federation, devices, state)
        require_finite_model(facts.round_index, after.parameters)
        is_last = after.next_round == self.num_rounds or self._is_spent(after)
        is_due = after.next_round % self.evaluate_every == 0 or is_last
        heldout = devices.evaluate(after.parameters) if is_due else None
        is_training_due = is_due and self.evaluate_training
        training = devices.evaluate(after.parameters, on_training=True) if is_training_due else None
        if heldout is not None:
            require_finite_evaluation(facts.round_index, heldout)
        if training is not None:
            require_finite_evaluation(facts.round_index, training, who="training")
        facts = replace(facts, heldout=heldout, training=training, frame=self.frame)
        return after, record_round(replace(facts, wall_time_s=time.perf_counter() - start))

    def _is_spent(self, state: State) -> bool:
        """Return whether a budget ends the run with the round before this state."""
        row: dict[str, float] = {}
        if state.ledger is not None:
            row = {"cumulative_energy_j": state.ledger.energy_j, "cumulative_delay_s": state.ledger.elapsed_s}
        if state.charge is not None and self.federation.power is not None:
            awake = self.federation.power.batteries.is_awake(state.charge.charge_j)
            row |= {"clock_s": state.charge.clock_s, "num_awake": float(awake.sum())}
        if self.federation.local_steps is not None:
            row["next_local_steps"] = float(next_steps(state.local_steps))
        return self.stop.reason(row) is not None

    @property
    def frame(self) -> RunFrame:
        """What the tables say alike in all rounds."""
        return RunFrame(
            device_ids=self.train.device_ids,
            metric=self.task.metric,
            turning_point=turning_point(
                self.train.num_samples,
                similarity_penalty=self.local.similarity_penalty,
                variance_penalty=self.local.variance_penalty,
            ),
            traits=self.federation.traits,
        )
