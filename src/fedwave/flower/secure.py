"""Phase 2 by Flower's secure aggregation: the server learns the mean of the chosen models, and no single one.

SecAgg+ is a workflow of Flower's older interface. What it asks for (a strategy that names clients, results in
the older form) is given to it here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from logging import WARNING
from types import SimpleNamespace
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common import FitIns, FitRes, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.serverapp import Grid
from flwr.supercore import log

from fedwave.flower.checks import mean_change_of
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import Grant, printable, to_arrays
from fedwave.flower.nodes import Nodes
from fedwave.flower.parameters import to_parameters
from fedwave.learning import Parameters

_NOTHING = ndarrays_to_parameters([])


class SecureSum:
    """Runs SecAgg+ among the chosen nodes. Give the workflow ``max_weight=1``: all models weigh the same."""

    def __init__(self, workflow: SecAggPlusWorkflow) -> None:
        self.workflow = workflow

    def model(
        self,
        grid: Grid,
        grant_of_node: Mapping[int, Grant],
        sent: ArrayRecord,
        nodes: Nodes,
        message_log: MessageLog,
    ) -> Parameters | None:
        """Return theta plus the mean of the chosen changes; None if too few stayed to the end."""
        chosen = _Chosen(grant_of_node)
        state = RecordDict({MAIN_PARAMS_RECORD: ArrayRecord()})
        state[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: message_log.round_index})
        context = Context(run_id=0, node_id=0, node_config={}, state=state, run_config={})
        watched: Any = SimpleNamespace(send_and_receive=partial(_counted, grid, message_log))
        legacy = LegacyContext(context=context, strategy=chosen)  # type: ignore[arg-type]
        before, changes = to_arrays(sent), None
        try:
            self.workflow(watched, legacy)
            if chosen.mean is not None:
                changes = mean_change_of(chosen.mean, before)
        except Exception as error:  # it believes what nodes send; one that is broken must not end the run
            log(WARNING, "the secure aggregation failed: %s: %s", type(error).__name__, printable(error))
        if changes is None:
            return None
        device_of_node = {nodes.node_of(device): device for device in nodes.devices.tolist()}
        message_log.received = sorted(device_of_node[node] for node in chosen.nodes)
        return to_parameters(
            {name: (value + changes[name]).astype(value.dtype) for name, value in before.items()}
        )


def _counted(
    grid: Grid, message_log: MessageLog, messages: Iterable[Message], *, timeout: float | None = None
) -> list[Message]:
    """Send and receive, and count the bytes of each."""
    outgoing = list(messages)
    message_log.sent("upload", outgoing)
    replies = list(grid.send_and_receive(outgoing, timeout=timeout))
    message_log.came("upload", replies)
    return replies


class _Chosen:
    """A strategy as the workflow asks one: who takes part, and where the result goes."""

    def __init__(self, grant_of_node: Mapping[int, Grant]) -> None:
        self._grant_of_node = grant_of_node
        self.mean: list[Any] | None = None
        self.nodes: list[int] = []

    def configure_fit(self, *_: object) -> list[tuple[Any, FitIns]]:
        return [
            (SimpleNamespace(node_id=node), FitIns(_NOTHING, dict(grant.to_config())))
            for node, grant in self._grant_of_node.items()
        ]

    def aggregate_fit(
        self, _: int, results: list[tuple[Any, FitRes]], __: object
    ) -> tuple[None, dict[str, Any]]:
        self.nodes = [proxy.node_id for proxy, _ in results]
        self.mean = parameters_to_ndarrays(results[0][1].parameters)
        return None, {}
