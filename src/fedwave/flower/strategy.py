"""NUFM's two-phase round as a Flower strategy, for anybody's ``ServerApp``.

Flower's own loop asks for training messages, sends them, and hands over the replies. Phase 1 therefore goes
on while it asks: ``configure_train`` lets everybody compute and report, plans, and returns messages to the
chosen alone. What Flower wraps around strategies (differential privacy) works on phase 2 as on any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from logging import INFO
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from flwr.supercore import log

from fedwave.devices.divergence import require_finite_model
from fedwave.errors import DivergenceError
from fedwave.flower.account import RoundAccount
from fedwave.flower.checks import BadReply, metrics_of
from fedwave.flower.messages import EVALUATE, message_to, to_arrays, to_record
from fedwave.flower.nodes import Nodes, greet, wait_for_nodes
from fedwave.flower.parameters import from_parameters, to_parameters
from fedwave.flower.phase_one import gather_reports
from fedwave.flower.phase_two import checked_models, grants_of, upload_messages
from fedwave.flower.secure import SecureSum
from fedwave.learning import Parameters
from fedwave.runs.folder import RunFolder
from fedwave.runs.lock import locked
from fedwave.server import CellPlanner, ContributionAudit, Planner, Reports
from fedwave.server.exclusion import exclude, excluded_until, still_excluded
from fedwave.server.real_devices import CellReports, reachable, told_of_fleet
from fedwave.simulation.round import Federation, RoundEvents, decide_round, take_models
from fedwave.simulation.state import State
from fedwave.units import FloatArray
from fedwave.wireless.channel_draw import ChannelDraw


class TwoPhase(Strategy):
    """Everybody reports a few numbers, the plan's devices send their model.

    ``num_devices`` are the places that the planner plans for; nodes may come and go among them.
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
        audit: ContributionAudit | None = None,  # None: reports are believed
        exclude_rounds: int = 10,  # how long, if an upload does not fit its report
        evaluate_every: int = 0,  # rounds between evaluations on the nodes; 0: never
        checkpoint: Path | str | None = None,  # a folder; a server that starts there again goes on
        identity: str = "fedwave.flower",  # what the checkpoint must belong to
        secure_sum: SecureSum | None = None,  # phase 2 by secure aggregation
    ) -> None:
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
        self._folder = None if checkpoint is None else RunFolder(Path(checkpoint))
        self._nodes = Nodes(num_devices)
        self._state: State | None = None
        self._sent = ArrayRecord()  # the global model of the round
        self._events: RoundEvents | None = None  # None: nobody uploads in this round
        self._secure_model: Parameters | None = None
        self._account = RoundAccount(0)
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
        _count_from(result, done)
        if not result.arrays:  # no round changed the model
            result.arrays = arrays
        return result

    def restore(self, initial_arrays: ArrayRecord) -> tuple[ArrayRecord, int]:
        """Return the model and the number of rounds of the checkpoint, or the given model and 0.

        ``start`` calls it. Call it yourself where another strategy is wrapped around this one.
        """
        saved = None if self._folder is None else self._folder.load_checkpoint(self.identity)
        if saved is None:
            return initial_arrays, 0
        log(INFO, "the checkpoint has %d rounds: going on from there", saved.next_round)
        self._state = saved
        return to_record(from_parameters(saved.parameters), order=initial_arrays), saved.next_round

    # Phase 1 ------------------------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let everybody compute and report, plan, and return the messages to the chosen."""
        # Later, for one at least: without anybody, all rounds that are left would be skipped in no time.
        wait_for_nodes(grid, 1 if self._has_waited else self.min_nodes)
        self._has_waited = True
        state = self._state_with(arrays)
        k = state.next_round
        self._sent, self._events, self._account = arrays, None, RoundAccount(k)
        self._state = replace(state, next_round=k + 1)  # whatever becomes of the round
        greet(grid, self._nodes, config, timeout_s=self.report_timeout_s, account=self._account)
        present = self._nodes.devices
        present = present[excluded_until(state.planner, self._nodes.num_devices)[present] <= k]
        planner = reachable(self.federation.planner, present=present, num_samples=self._nodes.num_samples)
        asked = np.intersect1d(planner.ask(k, state.planner), present).tolist() if len(present) else []
        reports, told = gather_reports(
            grid,
            {device: self._nodes.node_of(device) for device in asked},
            arrays,
            {**config, "round": k},
            num_local_steps=self.num_local_steps,
            timeout_s=self.report_timeout_s,
            max_bytes=self.max_report_bytes,
            audit=self.audit,
            account=self._account,
        )
        if len(reports) < self.min_reports:
            self._account.skip(f"{len(reports)} of {len(asked)} devices reported, {self.min_reports} needed")
            return []
        events = self._decide(state, planner, reports, told)
        if len(events.outcome.received) == 0:
            self._account.skip(events.plan.reason or "no upload of the plan arrives")
            return []
        self._events = events
        grants = {self._nodes.node_of(device): grant for device, grant in grants_of(events).items()}
        if self.secure_sum is not None:
            self._secure_model = self.secure_sum.model(grid, grants, arrays, self._nodes, self._account)
            return []
        messages = upload_messages(grants, config, ttl_s=self._timeout_s)
        self._account.sent("upload", messages)
        return messages

    def _decide(
        self, state: State, planner: Planner, reports: Reports, told: CellReports | None
    ) -> RoundEvents:
        """Return who uploads and how; the state then lacks the next model alone."""
        channel = self.federation.world.channel(state.next_round)
        if told is not None:
            planner = told_of_fleet(planner, told)
            channel = told.channel(self._nodes.num_devices, _interference_w(planner, channel))
        after, events = decide_round(replace(self.federation, planner=planner), state, reports, channel)
        self._state = replace(after, planner=still_excluded(state.planner, after.planner))
        self._account.selected = events.plan.selected.tolist()
        return events

    # Phase 2 ------------------------------------------------------------------------------------------

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check the uploads, and make the next global model of those that can be used."""
        account, events = self._account, self._events
        if events is None or self._state is None:
            return None, account.to_metrics()  # phase 1 has said why
        models = self._models(list(replies), events)
        if not models:
            account.skip("no upload can be used")
            return None, account.to_metrics()
        try:
            after = take_models(self.federation, self._state, models)
            require_finite_model(events.round_index, after.parameters)
        except DivergenceError as error:
            account.skip(str(error))
            return None, account.to_metrics()
        self._state = after
        return to_record(from_parameters(after.parameters), order=self._sent), account.to_metrics()

    def _models(self, replies: list[Message], events: RoundEvents) -> list[Parameters]:
        """Return the models for the server's step; whose model does not fit its report is excluded."""
        if self.secure_sum is not None:
            return [] if self._secure_model is None else [self._secure_model]
        assert self._state is not None  # aggregate_train
        self._account.came("upload", replies)
        device_of_node = {self._nodes.node_of(device): device for device in events.outcome.received.tolist()}
        models = checked_models(
            replies, device_of_node, self._sent, events.reports, audit=self.audit, account=self._account
        )
        if liars := self._account.excluded:
            until = events.round_index + 1 + self.exclude_rounds
            excluded = exclude(self._state.planner, liars, until=until, num_devices=self._nodes.num_devices)
            self._state = replace(self._state, planner=excluded)
        return list(models.values())

    # Evaluation, and the end of a round -----------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Save the state, with the model as a wrapper may have changed it; ask for evaluations if due."""
        self._state = self._state_with(arrays)
        if self._folder is not None:
            self._folder.path.mkdir(parents=True, exist_ok=True)
            self._folder.save_checkpoint(self._state, self.identity)
        if self.evaluate_every == 0 or self._state.next_round % self.evaluate_every:
            return []
        values = {**config, "round": self._state.next_round - 1}
        nodes = [self._nodes.node_of(device) for device in self._nodes.devices.tolist()]
        ttl_s = self._timeout_s
        return [message_to(node, EVALUATE, arrays=arrays, config=values, ttl_s=ttl_s) for node in nodes]

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the mean over the nodes of each figure that they report."""
        figures: dict[str, list[float]] = {}
        for reply in replies:
            try:
                for name, value in metrics_of(reply, self.max_report_bytes).items():
                    if isinstance(value, int | float) and np.isfinite(value) and name != "num-examples":
                        figures.setdefault(name, []).append(float(value))
            except BadReply as why:
                self._account.drop(reply.metadata.src_node_id, "evaluation", why)
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


def _interference_w(planner: Planner, channel: ChannelDraw | None) -> FloatArray:
    """Return what the server's own receiver measures on each block: the world's, or none."""
    if channel is not None:
        return channel.interference_w
    return np.zeros(planner.num_blocks if isinstance(planner, CellPlanner) else 1)


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
