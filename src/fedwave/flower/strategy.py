"""NUFM's two-phase round as a Flower strategy, for anybody's ``ServerApp``.

Flower's own loop asks for training messages, sends them, and hands over the replies. Phase 1 therefore goes
on while it asks: ``configure_train`` lets everybody compute and report, plans, and returns messages to the
chosen alone. What Flower wraps around strategies (differential privacy) works on phase 2 as on any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from logging import INFO, WARNING
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from flwr.supercore import log

from fedwave.devices.divergence import require_finite_model
from fedwave.errors import ConfigError, DivergenceError, RunError
from fedwave.flower.checks import figures_of, usable_replies
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import EVALUATE, message_to, to_arrays, to_record
from fedwave.flower.nodes import Nodes, greet, wait_for_nodes
from fedwave.flower.parameters import from_parameters, to_parameters
from fedwave.flower.phases import checked_models, gather_reports, grants_of, upload_messages
from fedwave.flower.planning import Told, plan_round
from fedwave.flower.secure import SecureSum
from fedwave.learning import Parameters
from fedwave.learning.parameters import distance
from fedwave.metric import Metric
from fedwave.runs.folder import RunFolder
from fedwave.runs.lock import locked
from fedwave.runs.tables import ROUNDS
from fedwave.server import ContributionAudit, Outcome
from fedwave.server.exclusion import exclude, excluded_until, still_excluded
from fedwave.simulation.columns import record_round
from fedwave.simulation.facts import RoundFacts, RunFrame
from fedwave.simulation.round import Federation, close_round, take_models
from fedwave.simulation.state import State
from fedwave.units import IntArray
from fedwave.wireless.delivery import UploadFate

NO_METRIC = Metric("metric", higher_is_better=True, is_share=False)  # nodes evaluate, or nobody does


class TwoPhase(Strategy):
    """Everybody reports a few numbers, the plan's devices send their model.

    ``num_devices`` are the places that the planner plans for; nodes may come and go among them. What is
    mutable here says where Flower's loop stands, which calls one method after the other.
    """

    def __init__(
        self,
        federation: Federation,
        *,
        num_devices: int,
        num_local_steps: int = 1,  # tau
        min_nodes: int = 1,  # to wait for before the first round
        report_timeout_s: float = 600.0,  # phase 1 goes on without those that take longer
        min_reports: int = 1,  # a round with fewer is skipped
        max_report_bytes: int = 65_536,
        audit: ContributionAudit | None = None,  # None: reports are believed; for plain gradient steps alone
        exclude_rounds: int = 10,  # how long, if an upload does not fit its report
        evaluate_every: int = 0,  # rounds between evaluations on the nodes; 0: never
        checkpoint: Path | str | None = None,  # a folder, of tables too; a server that starts there goes on
        identity: str = "fedwave.flower",  # what the checkpoint must belong to
        secure_sum: SecureSum | None = None,  # phase 2 by secure aggregation
        frame: RunFrame | None = None,  # what the tables call devices and metric; None: places, no metric
    ) -> None:
        if secure_sum is not None and federation.server_step.needs_each_model:
            raise ConfigError(
                "secure aggregation gives the mean of the models and no single one, got a server step that "
                f"needs each, {type(federation.server_step).__name__}. Use mean or momentum, or leave out "
                "secure_sum."
            )
        if federation.power is not None:
            raise ConfigError(
                "a federation of real devices cannot live on simulated batteries, got cell.battery. Leave it "
                "out; a device whose battery is flat does not answer."
            )
        self.federation = federation
        self.num_local_steps = num_local_steps
        self.min_nodes = min_nodes
        self.report_timeout_s = report_timeout_s
        self.min_reports = max(min_reports, 1)
        self.max_report_bytes = max_report_bytes
        self.audit = audit
        self.exclude_rounds = exclude_rounds
        self.evaluate_every = evaluate_every
        self.identity = identity
        self.secure_sum = secure_sum
        self.frame = frame or RunFrame(
            device_ids=np.arange(num_devices), metric=NO_METRIC, traits=federation.traits
        )
        self._folder = None if checkpoint is None else RunFolder(Path(checkpoint))
        self._nodes = Nodes(num_devices)
        self._state: State | None = None
        self._sent = ArrayRecord()  # the global model of the round
        self._planner = federation.planner  # for the devices of the round
        self._facts: RoundFacts | None = None  # of the round at hand; None: it has no plan
        self._closed: RoundFacts | None = None  # of the round at hand, until its rows are written
        self._secure_model: Parameters | None = None
        self._asked: Sequence[Message] = ()  # those of this phase
        self._absent: set[int] = set()  # devices that a plan named and nobody is
        self._has_used_uploads = False  # in this start, or before the checkpoint
        self._message_log = MessageLog(0)
        self._began = 0.0
        self._has_waited = False
        self._timeout_s: float | None = None  # of phase 2, as far as we know it

    # The loop is Flower's; before it, a checkpoint is looked for -----------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train for ``num_rounds`` rounds, those of an earlier start that left a checkpoint included."""
        self._timeout_s = timeout
        if self._folder is not None:
            self._folder.path.mkdir(parents=True, exist_ok=True)
        with nullcontext() if self._folder is None else locked(self._folder.path):
            arrays, done = self.restore(initial_arrays)
            shown = None if evaluate_fn is None else lambda number, model: evaluate_fn(done + number, model)
            left = max(num_rounds - done, 0)
            result = super().start(grid, arrays, left, timeout, train_config, evaluate_config, shown)
        if num_rounds > 0 and not self._has_used_uploads:
            why = self._message_log.skipped or "the rounds before this start had none"
            raise RunError(
                f"nothing was learned, as no upload could be used in {num_rounds} rounds, got {why}. The log "
                "says of every reply that was dropped why: mend the devices, or the settings."
            )
        _count_from(result, done)
        if not result.arrays:  # no round changed the model
            result.arrays = arrays
        return result

    def restore(self, initial_arrays: ArrayRecord) -> tuple[ArrayRecord, int]:
        """Return the model and the number of rounds of the checkpoint, or the given model and 0.

        ``start`` calls it. Call it yourself where another strategy is wrapped around this one.
        """
        if self.audit is not None:
            self.audit.require_names_of(initial_arrays)
        if self._folder is None:
            return initial_arrays, 0
        self._folder.path.mkdir(parents=True, exist_ok=True)
        saved = self._folder.load_checkpoint(self.identity)
        if saved is None and (self._folder.path / ROUNDS).exists():
            raise RunError(
                f"{self._folder.path} holds {ROUNDS} and no checkpoint: it is not this server's folder. Give "
                "another as checkpoint."
            )
        if saved is None or saved.next_round == 0:
            self._folder.save_checkpoint(self._state_with(initial_arrays), self.identity)
            self._folder.cut_tables()
            return initial_arrays, 0
        log(INFO, "the checkpoint has %d rounds: going on from there", saved.next_round)
        self._folder.cut_tables()
        self._state = saved
        arrays = to_record(from_parameters(saved.parameters), order=initial_arrays)
        self._has_used_uploads = any(arrays[name].data != initial_arrays[name].data for name in arrays)
        return arrays, saved.next_round

    # Phase 1 ------------------------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let everybody compute and report, plan, and return the messages to the chosen."""
        # Later, for one at least: without anybody, all rounds that are left would be skipped in no time.
        wait_for_nodes(grid, 1 if self._has_waited else self.min_nodes)
        self._has_waited = True
        self._began = time.perf_counter()
        state = self._state_with(arrays)
        k = state.next_round
        self._sent, self._facts, self._message_log = arrays, None, MessageLog(k)
        self._state = replace(state, next_round=k + 1)  # whatever becomes of the round
        greet(grid, self._nodes, config, timeout_s=self.report_timeout_s, message_log=self._message_log)
        present = self._nodes.devices
        present = present[excluded_until(state.planner, self._nodes.num_devices)[present] <= k]
        planner = self.federation.planner.with_devices(present=present, num_samples=self._nodes.num_samples)
        asked = np.intersect1d(planner.ask(k, state.planner), present) if len(present) else present
        channel = self.federation.world.channel(k)
        reports, radios = gather_reports(
            grid,
            {device: self._nodes.node_of(device) for device in asked.tolist()},
            arrays,
            {**config, "round": k},
            num_local_steps=self.num_local_steps,
            num_blocks=1 if self.federation.shows_shares else planner.num_blocks,  # blocks that are alike
            must_tell_radio=channel is None,
            timeout_s=self.report_timeout_s,
            max_bytes=self.max_report_bytes,
            audit=self.audit,
            message_log=self._message_log,
        )
        if len(reports) < self.min_reports:
            self._message_log.skip(
                f"{len(reports)} of {len(asked)} devices reported, {self.min_reports} needed"
            )
            return []
        told = Told(
            reports=reports,
            radios=radios,
            channel=channel,
            present=present,
            num_samples=self._nodes.num_samples,
        )
        self._facts = facts = self._decide(state, asked, told)
        if facts is None:
            return []
        if len(facts.outcome.received) == 0:
            self._message_log.skip(facts.plan.reason or "no upload of the plan arrives")
            return []
        grants = {self._nodes.node_of(device): grant for device, grant in grants_of(facts).items()}
        if self.secure_sum is not None:
            self._secure_model = self.secure_sum.model(grid, grants, arrays, self._nodes, self._message_log)
            return []
        self._asked = upload_messages(grants, config, ttl_s=self._timeout_s)
        self._message_log.sent("upload", self._asked)
        return self._asked

    def _decide(self, state: State, asked: IntArray, told: Told) -> RoundFacts | None:
        """Return who uploads and how; None if no plan can be made of what the devices told."""
        planned = plan_round(
            self.federation,
            state,
            asked,
            told,
            absent=self._say_absent,
            message_log=self._message_log,
        )
        if planned is None:
            return None
        self._planner, facts = planned
        if self.secure_sum is not None and facts.plan.weights is not None:
            raise ConfigError(
                "secure aggregation gives the plain mean of the models, got a plan with weights. Use a "
                "planner without weights, or leave out secure_sum."
            )
        self._message_log.selected = facts.plan.selected.tolist()
        return facts

    def _say_absent(self, device: int) -> None:
        """Say, once for each device, that a plan named it and it has not reported."""
        if device not in self._absent:
            self._absent.add(device)
            text = "round %d: the plan names device %d, which has not reported: it counts as absent"
            log(WARNING, text, self._message_log.round_index, device)

    # Phase 2 ------------------------------------------------------------------------------------------

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check the uploads, make the next global model of those that can be used, and close the round."""
        message_log, facts = self._message_log, self._facts
        if facts is None or self._state is None:
            return None, message_log.to_metrics()  # phase 1 has said why
        models = self._models(list(replies), facts)
        received = np.array(message_log.received, dtype=np.int64)
        facts = replace(facts, outcome=_as_received(facts, received))
        state = self._close(self._state, facts)
        self._state = state
        if not models:
            if not message_log.skipped:
                message_log.skip("no upload can be used")
            return None, message_log.to_metrics()
        weights = None if self.secure_sum is not None else facts.plan.weights_of(received)
        try:
            after = _with_types_of(state, take_models(self.federation, state, models, weights))
            require_finite_model(facts.round_index, after.parameters)
        except DivergenceError as error:
            message_log.skip(str(error))
            return None, message_log.to_metrics()
        self._state, self._has_used_uploads = after, True
        return to_record(from_parameters(after.parameters), order=self._sent), message_log.to_metrics()

    def _models(self, replies: list[Message], facts: RoundFacts) -> list[Parameters]:
        """Return the models for the server's step, and let the log say whose they are."""
        if len(facts.outcome.received) == 0:
            return []
        if self.secure_sum is not None:
            return [] if self._secure_model is None else [self._secure_model]
        self._message_log.came("upload", replies)
        device_of_node = {self._nodes.node_of(device): device for device in facts.outcome.received.tolist()}
        models = checked_models(
            self._asked,
            replies,
            device_of_node,
            self._sent,
            facts.reports,
            audit=self.audit,
            message_log=self._message_log,
        )
        return list(models.values())

    def _close(self, state: State, facts: RoundFacts) -> State:
        """Return the state but for its model, with whoever lied excluded; the round's rows are ready."""
        closed = close_round(replace(self.federation, planner=self._planner), state, facts)
        planner = still_excluded(state.planner, closed.planner)
        if liars := self._message_log.excluded:  # their models do not fit their reports
            until = facts.round_index + 1 + self.exclude_rounds
            planner = exclude(planner, liars, until=until, num_devices=self._nodes.num_devices)
        wall_time_s = time.perf_counter() - self._began
        self._closed = replace(facts, ledger=closed.ledger, wall_time_s=wall_time_s, frame=self.frame)
        return replace(closed, planner=planner)

    # Evaluation, and the end of a round -----------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Write rows and state, with the model as a wrapper may have changed it; evaluate if that is due."""
        self._state = self._state_with(arrays)
        if self._folder is not None:
            self._folder.path.mkdir(parents=True, exist_ok=True)
            if self._closed is not None:  # rows first: what a checkpoint counts on is there
                moved = distance(to_parameters(to_arrays(self._sent)), self._state.parameters)
                self._folder.append(record_round(replace(self._closed, update_norm=moved)))
                self._closed = None
            self._folder.save_checkpoint(self._state, self.identity)
        self._asked = ()
        if self.evaluate_every == 0 or self._state.next_round % self.evaluate_every:
            return []
        values = {**config, "round": self._state.next_round - 1}
        nodes = [self._nodes.node_of(device) for device in self._nodes.devices.tolist()]
        ttl_s = self._timeout_s
        self._asked = [
            message_to(node, EVALUATE, arrays=arrays, config=values, ttl_s=ttl_s) for node in nodes
        ]
        return self._asked

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the mean over the nodes of each figure that they report."""
        by_node = usable_replies(
            self._asked,
            replies,
            lambda _, reply: figures_of(reply, self.max_report_bytes),
            phase="evaluation",
            missed="no answer in time",
            message_log=self._message_log,
        )
        figures: dict[str, list[float]] = {}
        for own in by_node.values():
            for name, value in own.items():
                figures.setdefault(name, []).append(value)
        means = {name: float(np.mean(values)) for name, values in figures.items()}
        return MetricRecord(dict(means)) if means else None

    def summary(self) -> None:
        """Say how the strategy is set up."""
        planner = type(self.federation.planner).__name__
        log(INFO, "\t├──> two phases: everybody reports, the chosen upload")
        log(INFO, "\t├──> planner: %s, places for %d devices", planner, self._nodes.num_devices)
        log(INFO, "\t└──> reports are %s", "believed" if self.audit is None else "compared with the uploads")

    def _state_with(self, arrays: ArrayRecord) -> State:
        """Return the state with the model that Flower's loop has: it may have passed through a wrapper."""
        parameters = to_parameters(to_arrays(arrays))
        if self._state is not None:
            return replace(self._state, parameters=parameters)
        step, planner = self.federation.server_step, self.federation.planner
        return State(0, parameters, step.initial_state(parameters), planner.initial_state())


def _with_types_of(before: State, after: State) -> State:
    """Return the state with the types of the model before: a server's step may make fractions of counters."""
    types = {name: value.dtype for name, value in before.parameters.items()}
    return replace(
        after, parameters={name: value.to(types[name]) for name, value in after.parameters.items()}
    )


def _as_received(facts: RoundFacts, received: IntArray) -> Outcome:
    """Return the outcome as it was: who sent nothing that can be used counts as having dropped out."""
    selected, fate = facts.plan.selected, facts.outcome.fate.copy()
    fate[(fate == UploadFate.ARRIVED) & ~np.isin(selected, received)] = UploadFate.DROPPED_OUT
    return replace(facts.outcome, received=received, fate=fate)


def _count_from(result: Result, done: int) -> None:
    """Let the rounds of a result go on from those of earlier starts."""
    for records in (
        result.train_metrics_clientapp,
        result.evaluate_metrics_clientapp,
        result.evaluate_metrics_serverapp,
    ):
        shifted = {done + number: record for number, record in records.items()}
        records.clear()
        records.update(shifted)
